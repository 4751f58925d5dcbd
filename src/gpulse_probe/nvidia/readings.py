"""What is asked of a card: one line per NVML call, with the schema's fields it gives."""

from collections import namedtuple
from ctypes import byref, c_int, c_uint, c_ulonglong, create_string_buffer

from gpulse_probe.nvidia import binding, fabric

# fields: the schema's fields it gives; function: NVML's name of the call, made as function(device, *arguments, pointer
# to result); store(values, result): puts the result into the fields; instead: what older drivers have in its place.
Reading = namedtuple("Reading", "fields function arguments results store instead")

THROTTLE_REASONS = (
    (0x001, "gpu_idle"),
    (0x002, "applications_clocks_setting"),
    (0x004, "sw_power_cap"),
    (0x008, "hw_slowdown"),
    (0x010, "sync_boost"),
    (0x020, "sw_thermal_slowdown"),
    (0x040, "hw_thermal_slowdown"),
    (0x080, "hw_power_brake_slowdown"),
    (0x100, "display_clock_setting"),
    (0x200, "board_limit"),
    (0x400, "reliability"),
)
COMPUTE_MODES = {0: "default", 1: "exclusive_thread", 2: "prohibited", 3: "exclusive_process"}
# NVML's words for "I do not know" in results that have no error code of their own.
UNKNOWN_64 = 0xFFFFFFFFFFFFFFFF


def _reading(fields, function, arguments, results, store, instead=None):
    return Reading(fields, function, arguments, results, store, instead)


def bind(reading, library, gpu, handle):
    """The reading for one device: ask(values), which raises library.Refused."""
    function = library.function(reading.function, gpu)
    if reading.results is None:
        (size,) = reading.arguments
        results = (create_string_buffer(size),)
        arguments = (handle, results[0], c_uint(size))
    else:
        results = tuple(new() for new in reading.results)
        arguments = (handle, *reading.arguments, *(byref(result) for result in results))
    store = reading.store

    def ask(values):
        function(*arguments)
        store(values, *results)

    return ask


def number(field, function, *arguments, **options):
    """A reading whose one result is a number."""
    convert = options.get("convert", int)

    def store(values, result):
        values[field] = convert(result.value)

    return _reading((field,), function, arguments, (c_uint,), store, options.get("instead"))


def text(field, function, size=96):
    """A reading whose result is a string, written into a buffer of a given size."""

    def store(values, result):
        value = result.value.decode("utf-8", "replace").strip()
        if value and value not in ("N/A", "[N/A]"):
            values[field] = value

    # A string is told the size of its buffer after the buffer.
    return Reading((field,), function, (size,), None, store, None)


def ratio(percent):
    return percent / 100.0


def watts(milliwatts):
    return milliwatts / 1000.0


def hertz(megahertz):
    return megahertz * 1000000


def _utilization(values, result):
    values["utilization_ratio"] = result.gpu / 100.0
    values["memory_utilization_ratio"] = result.memory / 100.0


def _memory_v2(values, result):
    values["memory_total_bytes"] = result.total
    values["memory_used_bytes"] = result.used
    values["memory_reserved_bytes"] = result.reserved


def _memory(values, result):
    values["memory_total_bytes"] = result.total
    values["memory_used_bytes"] = result.used


_MemoryV2 = binding.c_nvmlMemory_v2_t


def _new_memory_v2():
    result = _MemoryV2()
    result.version = binding.nvmlMemory_v2
    return result


def _throttle(values, result):
    mask = result.value
    values["throttle_reasons"] = [name for bit, name in THROTTLE_REASONS if mask & bit] if mask else []


def _first_in_percent(field, function):
    def store(values, result, _period):
        values[field] = result.value / 100.0

    return _reading((field,), function, (), (c_uint, c_uint), store)


def _performance_state(values, result):
    if 0 <= result.value <= 15:
        values["performance_state"] = "P%d" % result.value


def _pci(values, result):
    values["pci_bus_id"] = result.busId.decode("ascii", "replace")


def _capability(values, major, minor):
    values["compute_capability"] = "%d.%d" % (major.value, minor.value)


def _compute_mode(values, result):
    if result.value in COMPUTE_MODES:
        values["compute_mode"] = COMPUTE_MODES[result.value]


def _current_mode(field):
    def store(values, current, _pending):
        values[field] = bool(current.value)

    return store


def _power_constraints(values, _lowest, highest):
    values["power_limit_max_watts"] = watts(highest.value)


_MEMORY_FIELDS = ("memory_total_bytes", "memory_used_bytes", "memory_reserved_bytes")
MEMORY = _reading(
    _MEMORY_FIELDS,
    "nvmlDeviceGetMemoryInfo_v2",
    (),
    (_new_memory_v2,),
    _memory_v2,
    _reading(_MEMORY_FIELDS[:2], "nvmlDeviceGetMemoryInfo", (), (binding.c_nvmlMemory_t,), _memory),
)
_GRAPHICS, _SM, _MEMORY, _VIDEO = range(4)
_SLOWDOWN, _SHUTDOWN = 1, 0

EVERY_TICK = (
    _reading(
        ("utilization_ratio", "memory_utilization_ratio"),
        "nvmlDeviceGetUtilizationRates",
        (),
        (binding.c_nvmlUtilization_t,),
        _utilization,
    ),
    MEMORY,
    number("temperature_celsius", "nvmlDeviceGetTemperature", 0),
    number("power_watts", "nvmlDeviceGetPowerUsage", convert=watts),
    number("clock_graphics_hertz", "nvmlDeviceGetClockInfo", _GRAPHICS, convert=hertz),
    number("clock_sm_hertz", "nvmlDeviceGetClockInfo", _SM, convert=hertz),
    number("clock_memory_hertz", "nvmlDeviceGetClockInfo", _MEMORY, convert=hertz),
    number("clock_video_hertz", "nvmlDeviceGetClockInfo", _VIDEO, convert=hertz),
    number("fan_ratio", "nvmlDeviceGetFanSpeed", convert=ratio),
    _reading(("performance_state",), "nvmlDeviceGetPerformanceState", (), (c_int,), _performance_state),
    _reading(
        ("throttle_reasons",),
        "nvmlDeviceGetCurrentClocksEventReasons",
        (),
        (c_ulonglong,),
        _throttle,
        _reading(("throttle_reasons",), "nvmlDeviceGetCurrentClocksThrottleReasons", (), (c_ulonglong,), _throttle),
    ),
    _first_in_percent("encoder_utilization_ratio", "nvmlDeviceGetEncoderUtilization"),
    _first_in_percent("decoder_utilization_ratio", "nvmlDeviceGetDecoderUtilization"),
    number("pcie_generation", "nvmlDeviceGetCurrPcieLinkGeneration"),
    number("pcie_width", "nvmlDeviceGetCurrPcieLinkWidth"),
)

# What changes only when somebody changes the set-up, or seldom: asked every ten seconds.
NOW_AND_THEN = (
    number(
        "power_limit_watts",
        "nvmlDeviceGetEnforcedPowerLimit",
        convert=watts,
        instead=number("power_limit_watts", "nvmlDeviceGetPowerManagementLimit", convert=watts),
    ),
    number("persistence", "nvmlDeviceGetPersistenceMode", convert=bool),
    _reading(("compute_mode",), "nvmlDeviceGetComputeMode", (), (c_uint,), _compute_mode),
    _reading(("ecc_enabled",), "nvmlDeviceGetEccMode", (), (c_uint, c_uint), _current_mode("ecc_enabled")),
    _reading(
        fabric.FIELDS,
        "nvmlDeviceGetGpuFabricInfoV",
        (),
        (fabric.new_v3,),
        fabric.store,
        _reading(fabric.FIELDS, "nvmlDeviceGetGpuFabricInfoV", (), (fabric.new_v2,), fabric.store),
    ),
)

# What cannot change while the driver is loaded.
ONCE = (
    text("name", "nvmlDeviceGetName"),
    text("uuid", "nvmlDeviceGetUUID"),
    text("serial", "nvmlDeviceGetSerial", 30),
    _reading(("pci_bus_id",), "nvmlDeviceGetPciInfo_v3", (), (binding.nvmlPciInfo_t,), _pci),
    number("minor_number", "nvmlDeviceGetMinorNumber"),
    _reading(("compute_capability",), "nvmlDeviceGetCudaComputeCapability", (), (c_int, c_int), _capability),
    number("temperature_slowdown_celsius", "nvmlDeviceGetTemperatureThreshold", _SLOWDOWN),
    number("temperature_shutdown_celsius", "nvmlDeviceGetTemperatureThreshold", _SHUTDOWN),
    number("power_limit_default_watts", "nvmlDeviceGetPowerManagementDefaultLimit", convert=watts),
    _reading(
        ("power_limit_max_watts",),
        "nvmlDeviceGetPowerManagementLimitConstraints",
        (),
        (c_uint, c_uint),
        _power_constraints,
    ),
    number("clock_graphics_max_hertz", "nvmlDeviceGetMaxClockInfo", _GRAPHICS, convert=hertz),
    number("clock_sm_max_hertz", "nvmlDeviceGetMaxClockInfo", _SM, convert=hertz),
    number("clock_memory_max_hertz", "nvmlDeviceGetMaxClockInfo", _MEMORY, convert=hertz),
    number("clock_video_max_hertz", "nvmlDeviceGetMaxClockInfo", _VIDEO, convert=hertz),
    number("pcie_generation_max", "nvmlDeviceGetMaxPcieLinkGeneration"),
    number("pcie_width_max", "nvmlDeviceGetMaxPcieLinkWidth"),
)

MIG_ONCE = (text("name", "nvmlDeviceGetName"),)
# What tells an instance from the one that had its place before.
MIG_IDENTITY = (
    text("uuid", "nvmlDeviceGetUUID"),
    number("gpu_instance_id", "nvmlDeviceGetGpuInstanceId"),
    number("compute_instance_id", "nvmlDeviceGetComputeInstanceId"),
)
MIG_EVERY_TICK = (MEMORY,)
