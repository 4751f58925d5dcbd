"""What nvidia-smi prints on stdout when it fails as a whole."""

import pytest

from gpulse_probe.nvidia_smi.document import read

# errors.md of the recorded outputs, section 2: what is printed, and the start of what we say.
FAILURES = [
    (
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.161\n",
        "nvidia-smi: driver/library version mismatch: "
        "reload the NVIDIA kernel module or reboot the node (NVML 535.161)",
    ),
    (
        "Failed to initialize NVML: Driver/library version mismatch\n",
        "nvidia-smi: driver/library version mismatch: reload the NVIDIA kernel module or reboot the node",
    ),
    (
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
        "Make sure that the latest NVIDIA driver is installed and running.\n",
        "nvidia-smi: the NVIDIA driver does not answer",
    ),
    (
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA\ndriver. Make sure that the latest "
        "NVIDIA driver is installed and\nrunning.\n",
        "nvidia-smi: the NVIDIA driver does not answer",
    ),
    (
        "Failed to initialize NVML: Unknown Error\n",
        "nvidia-smi: NVML cannot be initialised (Unknown Error): a container",
    ),
    (
        "Failed to initialize NVML: Insufficient Permissions\n",
        "nvidia-smi: NVML cannot be initialised (Insufficient Permissions)",
    ),
    (
        "Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.  "
        "Reboot the system to recover this GPU\n",
        "GPU 0000:02:00.0: GPU is lost: it fell off the bus; look for its Xid in dmesg and reboot the node",
    ),
    (
        "Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost. Reboot the system to\n"
        "recover this GPU\n",
        "GPU 0000:02:00.0: GPU is lost: it fell off the bus",
    ),
    (
        "Unable to determine the device handle for GPU 0000:0B:00.0: Unknown Error\n",
        "GPU 0000:0B:00.0: Unknown Error: look for its Xid in dmesg",
    ),
    (
        "Unable to determine the device handle for GPU0000:07:00.0: Unknown Error\n",
        "GPU 0000:07:00.0: Unknown Error: look for its Xid in dmesg",
    ),
    (
        "Unable to determine the device handle for gpu 0000:01:00.0: Not Found\n",
        "GPU 0000:01:00.0: Not Found: look for its messages in dmesg",
    ),
    (
        "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that the NVIDIA Display "
        "Driver is properly installed and present in your system.\nPlease also try adding directory that contains "
        "libnvidia-ml.so to your system PATH.\n",
        "nvidia-smi: libnvidia-ml.so was not found: install",
    ),
    (
        "Mismatch in versions between nvidia-smi and NVML.\n"
        "Are you sure you are using nvidia-smi provided with the driver?\n",
        "nvidia-smi: nvidia-smi and libnvidia-ml.so are of different versions: use those of one driver",
    ),
    (
        'Field "cuda_version" is not a valid field to query.\n',
        'nvidia-smi printed no document but: Field "cuda_version" is not a valid field to query.',
    ),
    (
        "Nvlink queries are not supported for Devices in MIG mode\n",
        "nvidia-smi printed no document but: Nvlink queries are not supported",
    ),
    (
        "Error: Failed to initialize NVML\n",
        "nvidia-smi printed no document but: Error: Failed to initialize NVML",
    ),
    (
        "nvidia-container-cli: initialization error: nvml error: insufficient permissions: unknown.\n",
        "nvidia-smi printed no document but: nvidia-container-cli: initialization error",
    ),
    ("WARNING: infoROM is corrupted at gpu 0000:B3:00.0\n", "nvidia-smi printed no document but: WARNING: infoROM"),
    ("", "nvidia-smi printed nothing"),
]


@pytest.mark.parametrize(("printed", "message"), FAILURES)
def test_a_failure_is_one_clear_report(printed, message):
    reading = read(printed.encode())
    assert reading.gpus is None
    assert reading.uses is None
    assert len(reading.reports) == 1
    assert reading.reports[0].startswith(message)


@pytest.mark.parametrize(
    "printed",
    [
        "No devices were found\n",
        "Failed to initialize NVML: No supported GPUs were found\nUnable to determine the number of GPUs\n",
    ],
)
def test_no_gpu_is_not_a_failure(printed):
    assert read(printed.encode()) == ([], [], [])
