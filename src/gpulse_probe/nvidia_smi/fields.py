"""Which text of an nvidia-smi document is which field of the schema, and how it is read."""

from gpulse_probe.nvidia_smi.failures import NO_VALUE, plain

_BYTES = {"MiB": 1 << 20, "KiB": 1 << 10, "GiB": 1 << 30}
_RATES = {"KB/s": 1000, "MB/s": 10**6, "GB/s": 10**9}
_HERTZ = {"MHz": 10**6}
_WATTS = {"W": 1}
_CELSIUS = {"C": 1}
_PERCENT = {"%": 1}
_NONE = {"": 1}

# Numbers past this are no readings, and JSON readers would round them.
_LARGEST = 1 << 62

_JOINED = "completed"

_FABRIC_STATES = ("not_started", "in_progress", _JOINED)
# Where a fault of the fabric stands, what stands there when it is one, and its name.
_FABRIC_FAULTS = (
    ("bandwidth", "Degraded", "degraded_bandwidth"),
    ("route_recovery_in_progress", "True", "route_recovery"),
    ("route_unhealthy", "True", "route_unhealthy"),
    ("access_timeout_recovery", "True", "access_timeout_recovery"),
)

_COMPUTE_MODES = ("default", "exclusive_thread", "prohibited", "exclusive_process")

# A reason's name and the ends of the elements that tell of it: some were renamed.
THROTTLE_REASONS = (
    ("gpu_idle", ("gpu_idle",)),
    ("applications_clocks_setting", ("applications_clocks_setting", "user_defined_clocks")),
    ("sw_power_cap", ("sw_power_cap",)),
    ("hw_slowdown", ("hw_slowdown",)),
    ("sync_boost", ("sync_boost",)),
    ("sw_thermal_slowdown", ("sw_thermal_slowdown",)),
    ("hw_thermal_slowdown", ("hw_thermal_slowdown",)),
    ("hw_power_brake_slowdown", ("hw_power_brake_slowdown", "hw_power_brake")),
    ("display_clock_setting", ("display_clocks_setting", "display_clock_setting")),
)


def text_of(text):
    """The text itself; None where it only says that there is none."""
    return None if plain(text) in NO_VALUE else text


def _number(text, units):
    amount, _, unit = text.partition(" ")
    if unit not in units or len(amount) > 20:
        return None
    try:
        number = int(amount) if amount.isdigit() else float(amount)
    except ValueError:
        return None
    number *= units[unit]
    # Written so that NaN does not pass.
    return number if -_LARGEST < number < _LARGEST else None


def count(text):
    number = _number(text, _NONE)
    return int(number) if number is not None and number >= 0 else None


def _bytes(text):
    number = _number(text, _BYTES)
    return int(number) if number is not None and number >= 0 else None


def _bytes_per_second(text):
    number = _number(text, _RATES)
    return float(number) if number is not None and number >= 0 else None


def _hertz(text):
    number = _number(text, _HERTZ)
    return int(number) if number is not None and number >= 0 else None


def _watts(text):
    number = _number(text, _WATTS)
    return float(number) if number is not None and number >= 0 else None


def _celsius(text):
    number = _number(text, _CELSIUS)
    return int(number) if number is not None else None


def _ratio(text):
    number = _number(text, _PERCENT)
    return number / 100.0 if number is not None and 0 <= number <= 1000 else None


def _lanes(text):
    return count(text[:-1]) if text.endswith("x") else None


def _switch(text):
    return {"Enabled": True, "Disabled": False, "Yes": True, "No": False}.get(text)


def _fabric_state(text):
    state = text.lower().replace(" ", "_")
    return state if state in _FABRIC_STATES else None


def _compute_mode(text):
    mode = text.lower().replace(" ", "_")
    return mode if mode in _COMPUTE_MODES else None


def _performance_state(text):
    return text if text[:1] == "P" and count(text[1:]) is not None else None


def _pci_bus_id(text):
    """Domain of eight digits, as the driver writes it today; very old ones wrote four."""
    domain, _, place = text.partition(":")
    return f"{domain.rjust(8, '0')}:{place}".upper() if place and text_of(text) else None


def _program(text):
    """The program's name alone: drivers since 525 print whole command lines, and those hold secrets."""
    if text_of(text) is None:
        return None
    program = text.rpartition("\\")[2] if text[1:3] == ":\\" else text.partition(" ")[0].rstrip("/").rpartition("/")[2]
    return program[:256] or None


_MEMORY = (
    ("memory_total_bytes", _bytes, ("fb_memory_usage/total",)),
    ("memory_used_bytes", _bytes, ("fb_memory_usage/used",)),
    ("memory_reserved_bytes", _bytes, ("fb_memory_usage/reserved",)),
)

_LINK = "pci/pci_gpu_link_info/"


def _power(name):
    """Where a power figure stands: gpu_power_readings is what drivers since 535 have."""
    return ("gpu_power_readings/" + name, "power_readings/" + name)


# A field, how it is read, and the paths it may have, the best first.
CARD = (
    *_MEMORY,
    ("uuid", text_of, ("uuid",)),
    ("fabric_state", _fabric_state, ("fabric/state",)),
    ("mig_enabled", _switch, ("mig_mode/current_mig",)),
    ("name", text_of, ("product_name",)),
    ("serial", text_of, ("serial",)),
    ("pci_bus_id", _pci_bus_id, ("pci/pci_bus_id", "@id")),
    ("minor_number", count, ("minor_number",)),
    ("compute_mode", _compute_mode, ("compute_mode",)),
    ("persistence", _switch, ("persistence_mode",)),
    ("utilization_ratio", _ratio, ("utilization/gpu_util",)),
    ("memory_utilization_ratio", _ratio, ("utilization/memory_util",)),
    ("encoder_utilization_ratio", _ratio, ("utilization/encoder_util",)),
    ("decoder_utilization_ratio", _ratio, ("utilization/decoder_util",)),
    ("temperature_celsius", _celsius, ("temperature/gpu_temp",)),
    ("memory_temperature_celsius", _celsius, ("temperature/memory_temp",)),
    ("temperature_slowdown_celsius", _celsius, ("temperature/gpu_temp_slow_threshold",)),
    ("temperature_shutdown_celsius", _celsius, ("temperature/gpu_temp_max_threshold",)),
    ("fan_ratio", _ratio, ("fan_speed",)),
    # The first two are what NVML calls the power usage; the third is another quantity.
    ("power_watts", _watts, _power("power_draw") + _power("average_power_draw") + _power("instant_power_draw")),
    (
        "power_limit_watts",
        _watts,
        _power("enforced_power_limit") + _power("current_power_limit") + _power("power_limit"),
    ),
    ("power_limit_default_watts", _watts, _power("default_power_limit")),
    ("power_limit_max_watts", _watts, _power("max_power_limit")),
    ("performance_state", _performance_state, ("performance_state", *_power("power_state"))),
    ("clock_graphics_hertz", _hertz, ("clocks/graphics_clock",)),
    ("clock_sm_hertz", _hertz, ("clocks/sm_clock",)),
    ("clock_memory_hertz", _hertz, ("clocks/mem_clock",)),
    ("clock_video_hertz", _hertz, ("clocks/video_clock",)),
    ("clock_graphics_max_hertz", _hertz, ("max_clocks/graphics_clock",)),
    ("clock_sm_max_hertz", _hertz, ("max_clocks/sm_clock",)),
    ("clock_memory_max_hertz", _hertz, ("max_clocks/mem_clock",)),
    ("clock_video_max_hertz", _hertz, ("max_clocks/video_clock",)),
    ("ecc_enabled", _switch, ("ecc_mode/current_ecc",)),
    ("remapped_rows_corrected_total", count, ("remapped_rows/remapped_row_corr",)),
    ("remapped_rows_uncorrected_total", count, ("remapped_rows/remapped_row_unc",)),
    ("remapped_rows_pending", _switch, ("remapped_rows/remapped_row_pending",)),
    ("remapped_rows_failed", _switch, ("remapped_rows/remapped_row_failure",)),
    ("retired_pages_corrected_total", count, ("retired_pages/multiple_single_bit_retirement/retired_count",)),
    ("retired_pages_uncorrected_total", count, ("retired_pages/double_bit_retirement/retired_count",)),
    ("retired_pages_pending", _switch, ("retired_pages/pending_retirement", "retired_pages/pending_blacklist")),
    ("pcie_generation", count, (_LINK + "pcie_gen/current_link_gen",)),
    ("pcie_generation_max", count, (_LINK + "pcie_gen/max_link_gen",)),
    ("pcie_width", _lanes, (_LINK + "link_widths/current_link_width",)),
    ("pcie_width_max", _lanes, (_LINK + "link_widths/max_link_width",)),
    ("pcie_sent_bytes_per_second", _bytes_per_second, ("pci/tx_util",)),
    ("pcie_received_bytes_per_second", _bytes_per_second, ("pci/rx_util",)),
    ("pcie_replays_total", count, ("pci/replay_counter",)),
)

INSTANCE = (
    *_MEMORY,
    ("uuid", text_of, ("uuid",)),
    ("mig_index", count, ("index",)),
    ("gpu_instance_id", count, ("gpu_instance_id",)),
    ("compute_instance_id", count, ("compute_instance_id",)),
    ("ecc_uncorrected_volatile_total", count, ("ecc_error_count/volatile_count/sram_uncorrectable",)),
)

PROCESS = (
    ("memory_bytes", _bytes, ("used_memory",)),
    ("name", _program, ("process_name",)),
)

# A GPU of which none of these can be read is not alive.
LIVE = ("memory_used_bytes", "utilization_ratio", "temperature_celsius", "power_watts", "clock_sm_hertz")

_ECC = (
    ("ecc_corrected_volatile_total", "ecc_errors/volatile/", "single_bit/total", "_correctable"),
    ("ecc_uncorrected_volatile_total", "ecc_errors/volatile/", "double_bit/total", "_uncorrectable"),
    ("ecc_corrected_aggregate_total", "ecc_errors/aggregate/", "single_bit/total", "_correctable"),
    ("ecc_uncorrected_aggregate_total", "ecc_errors/aggregate/", "double_bit/total", "_uncorrectable"),
)


def fields(table, values, record, note):
    """Fill a record by a table; note(field, text) is told what stood in place of a value."""
    for field, convert, paths in table:
        for path in paths:
            text = values.get(path)
            if text is None:
                continue
            value = convert(text)
            if value is not None:
                record[field] = value
                break
            note(field, text)


def fabric(values, record):
    """Fill in what is known of the fabric once the card has joined it, or failed to."""
    if record.get("fabric_state") != _JOINED:
        return
    for field, convert, name in (
        ("fabric_status", text_of, "status"),
        ("fabric_cluster_uuid", text_of, "clusterUuid"),
        ("fabric_clique_id", count, "cliqueId"),
    ):
        value = convert(values.get("fabric/" + name, ""))
        if value is not None:
            record[field] = value
    told = [(text_of(values.get("fabric/health/" + name, "")), text, fault) for name, text, fault in _FABRIC_FAULTS]
    configuration = values.get("fabric/health/incorrect_configuration", "")
    # "None" is an answer here: nothing is wrong.
    if configuration == "None" or text_of(configuration):
        told.append((configuration, None if configuration == "None" else configuration, "incorrect_configuration"))
    if any(answer for answer, _text, _fault in told):
        record["fabric_faults"] = [fault for answer, text, fault in told if answer and answer == text]


def ecc_totals(values, record):
    """Cards before Ampere give a total; later ones a count for each kind of memory, which are added up."""
    for field, section, old_total, kind in _ECC:
        parts = [count(values.get(section + old_total, ""))]
        if parts == [None]:
            sram = count(values.get(section + "sram" + kind, ""))
            parts = [sram, count(values.get(section + "dram" + kind, ""))]
            # Drivers since 545 tell how an error of the SRAM was found instead of their number.
            if sram is None and kind == "_uncorrectable":
                parts += [count(values.get(section + "sram_uncorrectable_" + how, "")) for how in ("parity", "secded")]
        known = [part for part in parts if part is not None]
        if known:
            record[field] = sum(known)
