"""The fake NVML library seen through NVIDIA's own binding: every group of values, and the library itself."""

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests import fake_nvml
from tests.fake_nvml import FakeNvml, NoCompilerError, Process, a100_mig_node, h100_node, rtx3090_node

pytest_plugins = ("tests.fake_nvml.calling",)

GIB = 1 << 30
MIB = 1 << 20
NOT_SUPPORTED = {"error": 3}
NO_INSTANCE = 0xFFFFFFFF


def test_a_card_needs_no_more_than_its_name(start):
    ask = start("gpu\n  name NVIDIA Test Card\ngpu\n")
    assert ask("nvmlDeviceGetCount()") == 2
    assert ask("nvmlDeviceGetName(gpu())") == "NVIDIA Test Card"
    assert ask("nvmlDeviceGetUUID(gpu(0)) != nvmlDeviceGetUUID(gpu(1))") is True
    assert ask("nvmlDeviceGetPciInfo(gpu(1)).busId") == "00000000:11:00.0"
    assert ask("nvmlDeviceGetMemoryInfo(gpu()).total") == 24 * GIB
    assert ask("nvmlDeviceGetUtilizationRates(gpu())") == {"gpu": 0, "memory": 0}
    assert ask("nvmlDeviceGetComputeRunningProcesses(gpu())") == []


def test_system_and_handles(start):
    ask = start(h100_node(2))
    assert ask("nvmlSystemGetDriverVersion()") == "550.54.15"
    assert ask("nvmlSystemGetNVMLVersion()") == "12.550.54.15"
    assert ask("[nvmlSystemGetCudaDriverVersion(), nvmlSystemGetCudaDriverVersion_v2()]") == [12040, 12040]
    assert ask("nvmlSystemGetProcessName(os.getpid())") == sys.executable
    assert ask("nvmlSystemGetProcessName(0x7FFFFFFF)") == {"error": 6}
    assert ask("nvmlErrorString(15)") == "GPU is lost"
    uuid = "GPU-a1b2c3d4-0000-4000-8000-000000000001"
    assert ask(f"nvmlDeviceGetIndex(nvmlDeviceGetHandleByUUID('{uuid}'))") == 1
    assert ask("nvmlDeviceGetIndex(nvmlDeviceGetHandleBySerial('1650923000001'))") == 1
    assert ask("nvmlDeviceGetIndex(nvmlDeviceGetHandleByPciBusId('0000:2A:00.0'))") == 1
    assert ask("nvmlDeviceGetHandleByPciBusId('0000:FF:00.0')") == {"error": 6}
    assert ask("nvmlDeviceGetHandleByUUID('GPU-nobody')") == {"error": 6}
    assert ask("nvmlDeviceGetHandleByIndex(2)") == {"error": 2}


def test_facts(start):
    ask = start(h100_node(1))
    assert ask("nvmlDeviceGetSerial(gpu())") == "1650923000000"
    assert ask("nvmlDeviceGetArchitecture(gpu())") == 9
    assert ask("nvmlDeviceGetCudaComputeCapability(gpu())") == [9, 0]
    assert ask("[nvmlDeviceGetMinorNumber(gpu()), nvmlDeviceGetBrand(gpu()), nvmlDeviceGetComputeMode(gpu())]") == [
        0,
        14,
        0,
    ]
    assert ask("[nvmlDeviceGetPersistenceMode(gpu()), nvmlDeviceGetDisplayActive(gpu())]") == [1, 0]
    assert ask("nvmlDeviceGetPciInfo(gpu())") == {
        "busIdLegacy": "0000:19:00.0",
        "domain": 0,
        "bus": 0x19,
        "device": 0,
        "pciDeviceId": 0x233010DE,
        "pciSubSystemId": 0x16C110DE,
        "busId": "00000000:19:00.0",
    }
    assert ask("[nvmlDeviceGetCurrPcieLinkGeneration(gpu()), nvmlDeviceGetMaxPcieLinkWidth(gpu())]") == [5, 16]
    assert ask("nvmlDeviceGetSupportedMemoryClocks(gpu())") == [2619]
    assert ask("nvmlDeviceGetSupportedGraphicsClocks(gpu(), 2619)[:2]") == [1980, 1965]


def test_values(start):
    ask = start(rtx3090_node(1))
    assert ask("nvmlDeviceGetMemoryInfo(gpu(), nvmlMemory_v2)") == {
        "version": 0x02000028,
        "total": 24 * GIB,
        "reserved": 308 * MIB,
        "free": 24 * GIB - 4308 * MIB,
        "used": 4000 * MIB,
    }
    # The first version has no word for what the driver keeps, and counts it as used.
    assert ask("nvmlDeviceGetMemoryInfo(gpu()).used") == 4308 * MIB
    assert ask("nvmlDeviceGetUtilizationRates(gpu())") == {"gpu": 40, "memory": 20}
    assert ask("[nvmlDeviceGetEncoderUtilization(gpu())[0], nvmlDeviceGetDecoderUtilization(gpu())[0]]") == [7, 3]
    assert ask("[nvmlDeviceGetTemperature(gpu(), 0), nvmlDeviceGetTemperatureV(gpu(), 0)]") == [61, 61]
    assert ask("[nvmlDeviceGetTemperatureThreshold(gpu(), i) for i in (0, 1, 3)]") == [98, 95, 93]
    assert ask("nvmlDeviceGetTemperatureThreshold(gpu(), 2)") == NOT_SUPPORTED
    assert ask("nvmlDeviceGetMarginTemperature(gpu())") == 32
    assert ask("nvmlDeviceGetPowerUsage(gpu())") == 210250
    assert ask("[nvmlDeviceGetEnforcedPowerLimit(gpu()), nvmlDeviceGetPowerManagementLimit(gpu())]") == [350000, 350000]
    assert ask("nvmlDeviceGetPowerManagementLimitConstraints(gpu())") == [100000, 400000]
    assert ask("[nvmlDeviceGetClockInfo(gpu(), i) for i in range(4)]") == [1695, 1695, 9501, 555]
    assert ask("[nvmlDeviceGetMaxClockInfo(gpu(), i) for i in range(4)]") == [2100, 2100, 9751, 1950]
    assert ask("[nvmlDeviceGetFanSpeed(gpu()), nvmlDeviceGetFanSpeed_v2(gpu(), 1)]") == [45, 45]
    assert ask("nvmlDeviceGetFanSpeed_v2(gpu(), 2)") == {"error": 2}
    assert ask("nvmlDeviceGetPerformanceState(gpu())") == 2
    assert ask("nvmlDeviceGetCurrentClocksThrottleReasons(gpu())") == 0x44
    assert ask("nvmlDeviceGetCurrentClocksEventReasons(gpu())") == 0x44
    assert ask("[nvmlDeviceGetPcieThroughput(gpu(), i) for i in (0, 1)]") == [1500, 2500]


def test_what_a_card_does_not_have_is_not_supported(start):
    ask = start(rtx3090_node(1))
    for call in (
        "nvmlDeviceGetSerial(gpu())",
        "nvmlDeviceGetEccMode(gpu())",
        "nvmlDeviceGetTotalEccErrors(gpu(), 0, 0)",
        "nvmlDeviceGetRemappedRows(gpu())",
        "nvmlDeviceGetRetiredPages(gpu(), 0)",
        "nvmlDeviceGetRetiredPagesPendingStatus(gpu())",
        "nvmlDeviceGetMigMode(gpu())",
        "nvmlDeviceGetNvLinkState(gpu(), 0)",
        "field(NVML_FI_DEV_MEMORY_TEMP)",
        "field(NVML_FI_DEV_PCIE_COUNT_TX_BYTES)",
        "field(9999)",
        "gpm(2)",
    ):
        assert ask(call) == NOT_SUPPORTED, call
    assert ask("nvmlGpmQueryDeviceSupport(gpu()).isSupportedDevice") == 0


def test_memory_errors(start):
    ask = start(
        "gpu\n ecc on\n ecc_corrected_volatile 3\n ecc_uncorrected_volatile 1\n ecc_corrected_aggregate 30\n"
        " ecc_uncorrected_aggregate 10\n remapped_corrected 4\n remapped_uncorrected 2\n remapped_pending yes\n"
        " remapped_failed no\n retired_corrected 5\n retired_uncorrected 1\n retired_pending yes\n"
    )
    assert ask("nvmlDeviceGetEccMode(gpu())") == [1, 1]
    assert ask("[nvmlDeviceGetTotalEccErrors(gpu(), t, c) for t in (0, 1) for c in (0, 1)]") == [3, 30, 1, 10]
    assert ask("[nvmlDeviceGetMemoryErrorCounter(gpu(), 0, 1, place) for place in (1, 2)]") == [0, 30]
    assert ask("nvmlDeviceGetRemappedRows(gpu())") == [4, 2, 1, 0]
    assert ask("[len(nvmlDeviceGetRetiredPages(gpu(), cause)) for cause in (0, 1)]") == [5, 1]
    assert ask("len(nvmlDeviceGetRetiredPages_v2(gpu(), 0))") == 5
    assert ask("nvmlDeviceGetRetiredPagesPendingStatus(gpu())") == 1
    assert ask("[field(i) for i in (1, 3, 4, 5, 6, 29, 30, 31)]") == [1, 3, 1, 30, 10, 5, 1, 1]
    assert ask("[field(i) for i in (142, 143, 144, 145)]") == [4, 2, 1, 0]


def test_nvlink_shares_add_up(start):
    ask = start(
        "gpu\n nvlink_links 4\n nvlink_active 3\n nvlink_version 4\n nvlink_sent 409601KiB\n"
        " nvlink_received 8KiB\n nvlink_replays 7\n nvlink_recoveries 5\n nvlink_crc_errors 2\n"
    )
    assert ask("[nvmlDeviceGetNvLinkState(gpu(), link) for link in range(4)]") == [1, 1, 1, 0]
    assert ask("nvmlDeviceGetNvLinkState(gpu(), 4)") == {"error": 2}
    assert ask("nvmlDeviceGetNvLinkVersion(gpu(), 0)") == 6
    assert ask("nvmlDeviceGetNvLinkCapability(gpu(), 0, 0)") == 1
    assert ask("[nvmlDeviceGetNvLinkErrorCounter(gpu(), link, 0) for link in range(4)]") == [4, 1, 1, 1]
    assert ask("nvmlDeviceGetNvLinkRemotePciInfo(gpu(), 1).busId") == "00000000:C1:00.0"
    assert ask("[field(91), field(52), field(59), field(38)]") == [4, 7, 5, 2]
    assert ask("[field(138, 0xFFFFFFFF), field(139, 0xFFFFFFFF), field(138, 1)]") == [409601, 8, 102400]
    assert ask("field(138, 4)") == {"error": 2}


def test_gpm(start):
    ask = start(h100_node(1))
    assert ask("nvmlGpmQueryDeviceSupport(gpu()).isSupportedDevice") == 1
    assert ask("gpm(2, 3, 5, 10, 11, 12, 13, 4)") == [72.0, 40.0, 48.0, 32.0, 0.0, 8.0, 4.0, NOT_SUPPORTED]
    assert ask("gpm(2, take=nvmlGpmMigSampleGet, arguments=(1,))") == {"error": 6}


def test_processes(start):
    text = h100_node(1, [Process(11, sm=40), Process(12, memory=None, kind="graphics"), Process(13, kind="mps", sm=6)])
    ask = start(text)
    one = {"pid": 11, "usedGpuMemory": 2 * GIB, "gpuInstanceId": NO_INSTANCE, "computeInstanceId": NO_INSTANCE}
    for version in ("_v2", "_v3", ""):
        assert ask(f"nvmlDeviceGetComputeRunningProcesses{version}(gpu())") == [one]
    assert ask("nvmlDeviceGetGraphicsRunningProcesses(gpu())") == [one | {"pid": 12, "usedGpuMemory": None}]
    assert ask("nvmlDeviceGetMPSComputeRunningProcesses(gpu())") == [one | {"pid": 13}]
    details = "nvmlDeviceGetRunningProcessDetailList(gpu(), nvmlProcessDetailList_v1, NVML_PROCESS_MODE_MPS)"
    assert ask(details) == [one | {"pid": 13, "usedGpuCcProtectedMemory": 0}]
    before = time.time()
    samples = ask("nvmlDeviceGetProcessUtilization(gpu(), 0)")
    assert [(s["pid"], s["smUtil"], s["memUtil"]) for s in samples] == [(11, 40, 20), (13, 6, 3)]
    assert before - 1 <= samples[0]["timeStamp"] / 1e6 <= time.time()
    assert [s["smUtil"] for s in ask("nvmlDeviceGetProcessesUtilizationInfo(gpu(), 0)")] == [40, 6]
    # Samples are told once: whoever has seen them gets none until the driver takes new ones.
    assert ask(f"nvmlDeviceGetProcessUtilization(gpu(), {samples[0]['timeStamp'] + 60_000_000})") == {"error": 6}
    ask("time.sleep(0.15)")
    assert len(ask(f"nvmlDeviceGetProcessUtilization(gpu(), {samples[0]['timeStamp']})")) == 2


def test_first_layout_of_the_process_list(start):
    ask = start(h100_node(1, [Process(11), Process(12, memory="3GiB")]))
    made = "setattr(sys.modules['__main__'], 'room', (ctypes.c_ulonglong * 8)())"
    ask(made)
    call = "raw('nvmlDeviceGetComputeRunningProcesses', gpu(), ctypes.byref(count), room)"
    ask("setattr(sys.modules['__main__'], 'count', ctypes.c_uint(1))")
    assert ask(f"[{call}, count.value]") == [7, 2]
    assert ask(f"[{call}, list(room[:4])]") == [0, [11, 2 * GIB, 12, 3 * GIB]]


def test_accounting(start):
    ask = start("gpu\n accounting on\n process 11 compute 2GiB sm 40\ngpu\n")
    assert ask("nvmlDeviceGetAccountingMode(gpu())") == 1
    assert ask("nvmlDeviceGetAccountingPids(gpu())") == [11]
    stats = ask("nvmlDeviceGetAccountingStats(gpu(), 11).maxMemoryUsage")
    assert stats == 2 * GIB
    assert ask("nvmlDeviceGetAccountingStats(gpu(), 12)") == {"error": 6}
    assert ask("nvmlDeviceGetAccountingStats(gpu(1), 11)") == NOT_SUPPORTED


def test_mig(start):
    ask = start(a100_mig_node([Process(11, memory="1GiB", instance=(3, 0)), Process(12, gpu=1)]))
    assert ask("[nvmlDeviceGetMigMode(gpu()), nvmlDeviceGetMigMode(gpu(1))]") == [[1, 1], [0, 0]]
    assert ask("nvmlDeviceGetMaxMigDeviceCount(gpu())") == 7
    assert ask("mig(3)") == {"error": 6}
    assert ask("mig(7)") == {"error": 2}
    assert ask("nvmlDeviceGetMigDeviceHandleByIndex(gpu(1), 0)") == NOT_SUPPORTED
    assert ask("nvmlDeviceGetName(mig(1))") == "NVIDIA A100-SXM4-40GB MIG 2g.10gb"
    uuid = "MIG-a1000000-0000-5000-8000-000000000002"
    assert ask("nvmlDeviceGetUUID(mig(1))") == uuid
    assert ask(f"nvmlDeviceGetGpuInstanceId(nvmlDeviceGetHandleByUUID('{uuid}'))") == 3
    assert ask("[nvmlDeviceGetGpuInstanceId(mig(2)), nvmlDeviceGetComputeInstanceId(mig(2))]") == [9, 0]
    assert ask("[nvmlDeviceIsMigDeviceHandle(mig(0)), nvmlDeviceIsMigDeviceHandle(gpu())]") == [1, 0]
    assert ask("nvmlDeviceGetIndex(nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig(0)))") == 0
    assert ask("nvmlDeviceGetMemoryInfo(mig(1))") == {"total": 9856 * MIB, "free": 7808 * MIB, "used": 2 * GIB}
    attributes = ask("nvmlDeviceGetAttributes(mig(0))")
    assert (attributes["gpuInstanceSliceCount"], attributes["memorySizeMB"]) == (3, 19968)
    assert ask("nvmlDeviceGetGpuInstanceProfileInfo(gpu(), 0).instanceCount") == 7
    inside = [{"pid": 11, "usedGpuMemory": GIB, "gpuInstanceId": 3, "computeInstanceId": 0}]
    assert ask("nvmlDeviceGetComputeRunningProcesses(gpu())") == inside
    assert ask("nvmlDeviceGetComputeRunningProcesses(mig(1))") == inside
    assert ask("nvmlDeviceGetComputeRunningProcesses(mig(0))") == []
    for call in (
        "nvmlDeviceGetUtilizationRates(gpu())",
        "nvmlDeviceGetProcessUtilization(gpu(), 0)",
        "nvmlDeviceGetUtilizationRates(mig(0))",
        "nvmlDeviceGetTemperature(mig(0), 0)",
        "nvmlDeviceGetPowerUsage(mig(0))",
        "nvmlDeviceGetGpuInstanceId(gpu())",
    ):
        assert ask(call) == NOT_SUPPORTED, call


def test_arguments_are_checked(start):
    ask = start("gpu\n", initialise=False)
    assert ask("raw('nvmlDeviceGetCount_v2', ctypes.byref(ctypes.c_uint()))") == 1
    assert ask("raw('nvmlShutdown')") == 1
    assert ask("nvmlInit()") is None
    assert ask("raw('nvmlDeviceGetCount_v2', None)") == 2
    assert ask("raw('nvmlDeviceGetPowerUsage', gpu(), None)") == 2
    assert ask("raw('nvmlDeviceGetPowerUsage', None, ctypes.byref(ctypes.c_uint()))") == 2
    assert ask("raw('nvmlDeviceGetName', gpu(), ctypes.create_string_buffer(4), 4)") == 7
    assert ask("raw('nvmlDeviceGetMemoryInfo_v2', gpu(), ctypes.byref(c_nvmlMemory_v2_t()))") == 25
    assert ask("nvmlShutdown()") is None
    assert ask("raw('nvmlDeviceGetCount_v2', ctypes.byref(ctypes.c_uint()))") == 1


def test_old_driver_lacks_functions(start, make_fake):
    old = make_fake(["nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetMemoryInfo_v2"])
    ask = start(h100_node(1, [Process(11)]), driver=old)
    assert ask("hasattr(ctypes.CDLL('libnvidia-ml.so.1'), 'nvmlDeviceGetComputeRunningProcesses_v3')") is False
    assert ask("nvmlDeviceGetComputeRunningProcesses_v3(gpu())") == {"error": 13}
    assert ask("nvmlDeviceGetMemoryInfo(gpu(), nvmlMemory_v2)") == {"error": 13}
    assert ask("nvmlDeviceGetComputeRunningProcesses_v2(gpu())")[0]["pid"] == 11
    assert ask("nvmlDeviceGetMemoryInfo(gpu()).total") == 81559 * MIB


def test_forked_child_calls_on(start):
    ask = start("gpu\n")
    child = "(lambda pid: os.waitpid(pid, 0)[1] if pid else os._exit(nvmlDeviceGetTemperature(gpu(), 0)))(os.fork())"
    assert ask(child) == 35 << 8


@pytest.mark.usefixtures("fake")
def test_many_build_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(fake_nvml, "BUILDS", tmp_path / "builds")
    with ThreadPoolExecutor(3) as pool:
        built = list(pool.map(lambda _: fake_nvml.build(), range(3)))
    assert len(set(built)) == 1
    assert [path.name for path in built[0].parent.parent.iterdir()] == [built[0].parent.name]


def test_missing_compiler_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(fake_nvml, "BUILDS", tmp_path)
    monkeypatch.setenv("PATH", os.devnull)
    with pytest.raises(NoCompilerError, match="gcc is missing"):
        FakeNvml(tmp_path)
