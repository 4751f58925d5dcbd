"""The door to NVML: loads the library, names each call before it is made, and tells what a refusal means."""

from ctypes import CDLL

from gpulse_probe.nvidia import binding

# What a return code means for the probe; a code in neither set costs one field at one tick.
NEVER = frozenset(
    (
        binding.NVML_ERROR_NOT_SUPPORTED,
        binding.NVML_ERROR_NO_PERMISSION,
        binding.NVML_ERROR_INVALID_ARGUMENT,
        binding.NVML_ERROR_FUNCTION_NOT_FOUND,
        25,  # argument version mismatch; 26: deprecated. Older bindings have no name for them.
        26,
    )
)
CARD_LOST = frozenset((binding.NVML_ERROR_GPU_IS_LOST, binding.NVML_ERROR_RESET_REQUIRED))
DRIVER_GONE = frozenset(
    (
        binding.NVML_ERROR_UNINITIALIZED,
        binding.NVML_ERROR_DRIVER_NOT_LOADED,
        binding.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
    )
)
# Nothing to monitor here, rather than something broken.
NO_LIBRARY = binding.NVML_ERROR_LIBRARY_NOT_FOUND
NO_DRIVER = binding.NVML_ERROR_DRIVER_NOT_LOADED

_TEXTS = {
    0: "Success",
    binding.NVML_ERROR_NOT_SUPPORTED: "Not Supported",
    binding.NVML_ERROR_NO_PERMISSION: "Insufficient Permissions",
    binding.NVML_ERROR_NOT_FOUND: "Not Found",
    binding.NVML_ERROR_DRIVER_NOT_LOADED: "NVIDIA driver is not loaded",
    binding.NVML_ERROR_TIMEOUT: "Timeout",
    binding.NVML_ERROR_IRQ_ISSUE: "Interrupt Request Issue",
    binding.NVML_ERROR_LIBRARY_NOT_FOUND: "NVML Shared Library Not Found",
    binding.NVML_ERROR_CORRUPTED_INFOROM: "Corrupted infoROM",
    binding.NVML_ERROR_GPU_IS_LOST: "GPU is lost",
    binding.NVML_ERROR_RESET_REQUIRED: "GPU requires reset",
    binding.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "driver/library version mismatch",
    binding.NVML_ERROR_UNKNOWN: "Unknown Error",
}


def code_text(code):
    """Return NVIDIA's words for a return code."""
    return _TEXTS.get(code) or "NVML error %d" % code


class Refused(Exception):
    """A call of NVML that did not succeed."""

    def __init__(self, code, function):
        Exception.__init__(self, code, function)
        self.code = code
        self.function = function

    @property
    def text(self):
        return code_text(self.code)

    def __str__(self):
        return "%s: %s" % (self.function, self.text)


class Library:
    """NVML, loaded and initialised; Refused where it cannot be."""

    def __init__(self, page):
        self._page = page
        try:
            self._library = CDLL("libnvidia-ml.so.1")
        except OSError:
            raise Refused(binding.NVML_ERROR_LIBRARY_NOT_FOUND, "libnvidia-ml.so.1")
        self.function("nvmlInit_v2")()

    def function(self, name, gpu=None):
        """A function of the library, which raises Refused instead of returning a code.

        The call is noted on the page before it is made. A driver too old to have the function refuses it.
        """
        label = self._page.label(name if gpu is None else "GPU %d: %s" % (gpu, name))
        note = self._page.note_label
        try:
            function = getattr(self._library, name)
        except AttributeError:

            def function(*_arguments):
                return binding.NVML_ERROR_FUNCTION_NOT_FOUND

        def call(*arguments):
            note(label)
            code = function(*arguments)
            if code:
                raise Refused(code, name)

        return call
