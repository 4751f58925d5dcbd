"""NVML's numbered field values: many counters of a card by one call."""

from collections import namedtuple
from ctypes import c_int

from gpulse_probe.nvidia import binding
from gpulse_probe.nvidia.library import NEVER, Refused

_FieldValue = binding.c_nvmlFieldValue_t
# The member of the value's union, by NVML's number of its type.
_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
_ALL_LINKS = 0xFFFFFFFF
_FUNCTION = "nvmlDeviceGetFieldValues"

# add: fields that several numbers sum up to.
Numbered = namedtuple("Numbered", "id scope field convert add")


def _numbered(number, field, convert=int, scope=0, add=False):
    return Numbered(number, scope, field, convert, add)


def _kibibytes(value):
    return int(value) * 1024


def _joules(millijoules):
    return millijoules / 1000.0


def _temperature(celsius):
    # A memory without a sensor reads 0 on some boards.
    return int(celsius) or None


EVERY_TICK = (
    _numbered(binding.NVML_FI_DEV_MEMORY_TEMP, "memory_temperature_celsius", _temperature),
    _numbered(binding.NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, "energy_joules_total", _joules),
    _numbered(197, "pcie_sent_bytes_total"),
    _numbered(198, "pcie_received_bytes_total"),
    _numbered(binding.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, "nvlink_sent_bytes_total", _kibibytes, _ALL_LINKS),
    _numbered(binding.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, "nvlink_received_bytes_total", _kibibytes, _ALL_LINKS),
)
NOW_AND_THEN = (
    _numbered(binding.NVML_FI_DEV_ECC_SBE_VOL_TOTAL, "ecc_corrected_volatile_total"),
    _numbered(binding.NVML_FI_DEV_ECC_DBE_VOL_TOTAL, "ecc_uncorrected_volatile_total"),
    _numbered(binding.NVML_FI_DEV_ECC_SBE_AGG_TOTAL, "ecc_corrected_aggregate_total"),
    _numbered(binding.NVML_FI_DEV_ECC_DBE_AGG_TOTAL, "ecc_uncorrected_aggregate_total"),
    _numbered(binding.NVML_FI_DEV_RETIRED_SBE, "retired_pages_corrected_total"),
    _numbered(binding.NVML_FI_DEV_RETIRED_DBE, "retired_pages_uncorrected_total"),
    _numbered(binding.NVML_FI_DEV_RETIRED_PENDING, "retired_pages_pending", bool),
    _numbered(binding.NVML_FI_DEV_REMAPPED_COR, "remapped_rows_corrected_total"),
    _numbered(binding.NVML_FI_DEV_REMAPPED_UNC, "remapped_rows_uncorrected_total"),
    _numbered(binding.NVML_FI_DEV_REMAPPED_PENDING, "remapped_rows_pending", bool),
    _numbered(binding.NVML_FI_DEV_REMAPPED_FAILURE, "remapped_rows_failed", bool),
    _numbered(binding.NVML_FI_DEV_PCIE_REPLAY_COUNTER, "pcie_replays_total"),
    _numbered(binding.NVML_FI_DEV_NVLINK_LINK_COUNT, "nvlink_links"),
    _numbered(binding.NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, "nvlink_errors_total", add=True),
    _numbered(binding.NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, "nvlink_errors_total", add=True),
    _numbered(binding.NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL, "nvlink_errors_total", add=True),
)


class FieldBatch:
    """The numbered fields of one device; those it does not have are left out from then on."""

    def __init__(self, library, gpu, handle, numbered):
        self._function = library.function(_FUNCTION, gpu)
        self._handle = handle
        self._prepare(numbered)

    def _prepare(self, numbered):
        self._numbered = list(numbered)
        self._values = (_FieldValue * len(self._numbered))()
        for value, wanted in zip(self._values, self._numbered):
            value.fieldId = wanted.id
            value.scopeId = wanted.scope
        self._arguments = (self._handle, c_int(len(self._numbered)), self._values)

    def ask(self, values, failed):
        """Put what the card has into `values`, and what it could not read this time into `failed`, with its refusal.

        Raises library.Refused where the whole call is refused.
        """
        if not self._numbered:
            return
        self._function(*self._arguments)
        missing = []
        for value, wanted in zip(self._values, self._numbered):
            code = value.nvmlReturn
            if code:
                if code in NEVER:
                    missing.append(wanted)
                else:
                    failed[wanted.field] = Refused(code, _FUNCTION)
                continue
            kind = value.valueType
            if kind >= len(_MEMBERS):
                missing.append(wanted)
                continue
            result = wanted.convert(getattr(value.value, _MEMBERS[kind]))
            if result is not None:
                values[wanted.field] = values.get(wanted.field, 0) + result if wanted.add else result
        for field in failed:
            # A sum without one of its parts is no sum.
            values.pop(field, None)
        if missing:
            self._prepare([wanted for wanted in self._numbered if wanted not in missing])

    def give_up(self):
        """The device has none of them."""
        self._prepare(())

    def fields(self):
        return [wanted.field for wanted in self._numbered]

    def has(self, field):
        return any(wanted.field == field for wanted in self._numbered)
