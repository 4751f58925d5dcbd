"""What `nvidia-smi -q -x` prints, of nodes without Python."""

import msgspec

from gpulse.transport.without_python import snapshot
from gpulse_probe.nvidia_smi import document
from tests.fuzz.looking import Looking

_HEAD = b'<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n<nvidia_smi_log>'
_GPU = b"""<driver_version>535.1</driver_version><cuda_version>12.2</cuda_version><attached_gpus>1</attached_gpus>
<gpu id="00000000:3B:00.0"><product_name>NVIDIA A</product_name><uuid>GPU-0</uuid><minor_number>0</minor_number>
<mig_mode><current_mig>Enabled</current_mig></mig_mode><mig_devices><mig_device><index>0</index>
<gpu_instance_id>1</gpu_instance_id><compute_instance_id>0</compute_instance_id>
<fb_memory_usage><total>9856 MiB</total><used>12 MiB</used></fb_memory_usage></mig_device></mig_devices>
<fb_memory_usage><total>40960 MiB</total><used>5 MiB</used></fb_memory_usage><fan_speed>N/A</fan_speed>
<utilization><gpu_util>5 %</gpu_util><memory_util>[Unknown Error]</memory_util></utilization>
<temperature><gpu_temp>45 C</gpu_temp></temperature><clocks><sm_clock>1410 MHz</sm_clock></clocks>
<gpu_power_readings><power_draw>66.07 W</power_draw></gpu_power_readings>
<ecc_errors><volatile><sram_correctable>0</sram_correctable></volatile></ecc_errors>
<processes><process_info><pid>77</pid><type>C+G</type><process_name>a &amp; b</process_name>
<used_memory>5 MiB</used_memory></process_info></processes></gpu></nvidia_smi_log>"""
SEEDS = [_HEAD + _GPU, b"No devices were found", b"Failed to initialize NVML: Driver/library version mismatch"]
WORDS = ["<gpu id=", "</gpu>", "MiB", "GPU is lost", "Insufficient Permissions", "<![CDATA[", "&#0;", "<!ENTITY"]


def fuzz(data: bytes) -> None:
    reading = document.read(data)
    line = msgspec.json.encode(snapshot("x", reading, "words", 0, 1000.0))
    looking = Looking()
    assert looking.take(line)
    looking.look()
    looking.recover()
