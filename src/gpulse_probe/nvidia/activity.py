"""True activity of a card or MIG instance (NVML GPM, Hopper and later): how much of it works, not just whether."""

from ctypes import byref, c_void_p

from gpulse_probe.nvidia import binding
from gpulse_probe.nvidia.library import NEVER, Refused

_METRICS = (
    (binding.NVML_GPM_METRIC_SM_UTIL, "sm_active_ratio"),
    (binding.NVML_GPM_METRIC_SM_OCCUPANCY, "sm_occupancy_ratio"),
    (binding.NVML_GPM_METRIC_ANY_TENSOR_UTIL, "tensor_active_ratio"),
    (binding.NVML_GPM_METRIC_DRAM_BW_UTIL, "dram_active_ratio"),
    (binding.NVML_GPM_METRIC_FP64_UTIL, "fp64_active_ratio"),
    (binding.NVML_GPM_METRIC_FP32_UTIL, "fp32_active_ratio"),
    (binding.NVML_GPM_METRIC_FP16_UTIL, "fp16_active_ratio"),
)
# Closer samples than this give no sound figure.
_SHORTEST_SECONDS = 0.1


def supported(library, gpu, handle):
    """Whether a card has GPM, and so its instances. Raises library.Refused where the driver knows nothing of it."""
    support = binding.c_nvmlGpmSupport_t()
    support.version = binding.NVML_GPM_SUPPORT_VERSION
    library.function("nvmlGpmQueryDeviceSupport", gpu)(handle, byref(support))
    return bool(support.isSupportedDevice)


class Activity:
    """Figures over the time between two samples, so the first tick has none."""

    def __init__(self, library, gpu, handle, instance=None):
        self._handle = handle
        self._instance = instance
        self._take_sample = library.function("nvmlGpmSampleGet" if instance is None else "nvmlGpmMigSampleGet", gpu)
        self._evaluate = library.function("nvmlGpmMetricsGet", gpu)
        self._free = library.function("nvmlGpmSampleFree", gpu)
        allocate = library.function("nvmlGpmSampleAlloc", gpu)
        self._samples = []
        try:
            for _ in range(2):
                sample = c_void_p()
                allocate(byref(sample))
                self._samples.append(sample)
        except Refused:
            self.close()
            raise
        self._taken = None
        self._request = binding.c_nvmlGpmMetricsGet_t()
        self._request.version = binding.NVML_GPM_METRICS_GET_VERSION
        self._request.numMetrics = len(_METRICS)
        for metric, (number, _field) in zip(self._request.metrics, _METRICS):
            metric.metricId = number

    def ask(self, now, values, failed):
        """Put the figures into `values`, and what could not be read this time into `failed`, with its refusal."""
        if self._taken is not None and now - self._taken < _SHORTEST_SECONDS:
            return
        older, newer = self._samples
        if self._instance is None:
            self._take_sample(self._handle, newer)
        else:
            self._take_sample(self._handle, self._instance, newer)
        had_one = self._taken is not None
        self._taken = now
        self._samples = [newer, older]
        if not had_one:
            return
        self._request.sample1 = older
        self._request.sample2 = newer
        self._evaluate(byref(self._request))
        for index, (_number, field) in enumerate(_METRICS):
            metric = self._request.metrics[index]
            # A card that cannot count something answers with NaN, which is unequal to itself.
            if metric.nvmlReturn == 0 and metric.value == metric.value:
                values[field] = round(metric.value / 100.0, 4)
            elif metric.nvmlReturn and metric.nvmlReturn not in NEVER and field not in failed:
                failed[field] = Refused(metric.nvmlReturn, "nvmlGpmMetricsGet")

    def close(self):
        for sample in self._samples:
            try:
                self._free(sample)
            except Refused:
                # The driver that had it is gone, and the sample with it: nothing is left to be done or told.
                continue
        self._samples = []
