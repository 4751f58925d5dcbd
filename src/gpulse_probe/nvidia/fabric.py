"""The NVSwitch fabric a card belongs to: NVML's structure for it, and what its numbers mean."""

from ctypes import Structure, c_int, c_ubyte, c_uint

from gpulse_probe.nvidia.library import code_text

FIELDS = ("fabric_state", "fabric_status", "fabric_cluster_uuid", "fabric_clique_id", "fabric_faults")
_STATES = {1: "not_started", 2: "in_progress", 3: "completed"}
_COMPLETED = 3
# Where each pair of bits of the mask begins: 1 is true, 2 is false, 0 unknown.
_HEALTH = (
    (0, "degraded_bandwidth"),
    (2, "route_recovery"),
    (4, "route_unhealthy"),
    (6, "access_timeout_recovery"),
)
# Four bits from here: 0 is unknown, 1 that all is well, more is what is wrong.
_CONFIGURATION = 8


class _Info(Structure):
    """nvmlGpuFabricInfo_v3_t; the second version is the same without its end. Older bindings have neither."""

    _fields_ = (
        ("version", c_uint),
        ("clusterUuid", c_ubyte * 16),
        ("status", c_int),
        ("cliqueId", c_uint),
        ("state", c_ubyte),
        ("healthMask", c_uint),
        ("healthSummary", c_ubyte),
    )


def new_v3():
    return _Info(version=0x03000028)


def new_v2():
    return _Info(version=0x02000024)


def store(values, info):
    """Put what the driver answered into the schema's fields; a card outside any fabric has none of them."""
    state = _STATES.get(info.state)
    if state is None:
        return
    values["fabric_state"] = state
    if info.state != _COMPLETED:
        return
    values["fabric_status"] = code_text(info.status)
    digits = "".join("%02x" % byte for byte in info.clusterUuid)
    values["fabric_cluster_uuid"] = "-".join(
        digits[start:end] for start, end in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))
    )
    values["fabric_clique_id"] = info.cliqueId
    faults = _faults(info.healthMask)
    if faults is not None:
        values["fabric_faults"] = faults


def _faults(mask):
    """The faults a health mask names; None where the driver knows about none of them."""
    told = [(mask >> shift & 3, name) for shift, name in _HEALTH]
    configuration = mask >> _CONFIGURATION & 0xF
    if not configuration and not any(answer for answer, _ in told):
        return None
    faults = [name for answer, name in told if answer == 1]
    if configuration > 1:
        faults.append("incorrect_configuration")
    return faults
