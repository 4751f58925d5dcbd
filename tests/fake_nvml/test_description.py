"""The description of the fake NVML library: read again, moving, growing, bad, faulty, and with XID errors."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest_plugins = ("tests.fake_nvml.calling",)

LOST = {"error": 15}


def test_moving_values_follow_the_clock(start):
    ask = start("gpu\n utilisation 50 +- 40 every 0.4\n")
    seen = ask(
        "[(time.sleep(0.01), nvmlDeviceGetUtilizationRates(gpu()).gpu)[1] for _ in range(60)]",
    )
    assert min(seen) < 20
    assert max(seen) > 80
    assert all(9 <= value <= 91 for value in seen)


def test_counters_grow_and_processes_agree(start, fake):
    text = "gpu\n energy 1000 grows 300\n pcie_sent 5GB grows 1GB\n"
    first = start(text)
    second = start()
    since = round(fake.since, 3)
    for ask in (first, second):
        before, energy, after = ask("[time.time(), nvmlDeviceGetTotalEnergyConsumption(gpu()), time.time()]")
        least, most = (1000_000 + 300_000 * (moment - since) for moment in (before, after))
        assert least - 1 <= energy <= most + 1
    assert first("field(NVML_FI_DEV_PCIE_COUNT_TX_BYTES)") > 5_000_000_000
    assert first("nvmlDeviceGetPcieThroughput(gpu(), 0)") == 1_000_000


def test_description_is_read_again(start, fake):
    ask = start("gpu\n temperature 40\n")
    assert ask("[nvmlDeviceGetCount(), nvmlDeviceGetTemperature(gpu(), 0)]") == [1, 40]
    fake.describe("gpu\n temperature 41\ngpu\n temperature 42\n")
    assert ask("[settle(), nvmlDeviceGetCount(), nvmlDeviceGetTemperature(gpu(1), 0)]") == [None, 2, 42]
    ask("setattr(sys.modules['__main__'], 'second', gpu(1))")
    fake.describe("gpu\n temperature 43\n")
    assert ask("[settle(), nvmlDeviceGetTemperature(gpu(), 0)]") == [None, 43]
    assert ask("nvmlDeviceGetTemperature(second, 0)") == LOST


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("temprature 40", "this word is not known"),
        ("temperature hot", "this is not a number"),
        ("temperature 40 50", "there is something after the value"),
        ("memory_total 4 quarts", "there is something after the value"),
        ("memory_total 4quarts", "the unit of this number is not known"),
        ("utilisation 50 +- 5", 'wants "every SECONDS"'),
        ("process 12 dancing 1GiB", "a process is compute, graphics or mps"),
        ("fault nvmlInit bored", "this fault is not known"),
        ("fault nvmlInit lost 3", '"N times" and "after N calls"'),
        ("throttle boredom", "this throttle reason is not known"),
        ("mig 1g.5gb gi 1", "an instance wants its memory"),
    ],
)
def test_bad_line_is_named_and_the_last_good_description_stays(start, fake, line, cause):
    ask = start("gpu\n temperature 40\n")
    fake.describe(f"# a comment\ngpu\n  {line}\n")
    assert ask("[settle(), nvmlDeviceGetTemperature(gpu(), 0)]") == [None, 40]
    said = ask.end()
    assert f"{fake.description}, line 3: " in said
    assert cause in said


def test_no_description_is_no_driver(start):
    ask = start(initialise=False)
    assert ask("nvmlInit()") == {"error": 9}
    assert "no description" in ask.end()


@pytest.mark.parametrize(
    ("word", "number"),
    [
        ("not_supported", 3),
        ("lost", 15),
        ("unknown_error", 999),
        ("no_permission", 4),
        ("version_mismatch", 18),
        ("driver_not_loaded", 9),
        ("function_not_found", 13),
        ("reset_required", 16),
    ],
)
def test_faults_of_a_call(start, word, number):
    ask = start(f"gpu\n fault nvmlDeviceGetPowerUsage {word}\ngpu\n")
    assert ask("nvmlDeviceGetPowerUsage(gpu(0))") == {"error": number}
    assert ask("nvmlDeviceGetPowerUsage(gpu(1))") == 25000
    assert ask("nvmlDeviceGetTemperature(gpu(0), 0)") == 35


def test_faults_of_the_driver_and_of_a_whole_card(start):
    ask = start("fault nvmlInit* version_mismatch\ngpu\n", initialise=False)
    assert ask("nvmlInit()") == {"error": 18}
    ask = start("fault nvmlDeviceGetTemperature* unknown_error\ngpu\n fault * lost\ngpu\n")
    assert ask("nvmlDeviceGetCount()") == 2
    assert ask("gpu(0)") == LOST
    assert ask("nvmlDeviceGetTemperature(gpu(1), 0)") == {"error": 999}
    assert ask("nvmlDeviceGetPowerUsage(gpu(1))") == 25000


def test_faults_that_come_and_go(start, fake):
    text = "gpu\n fault nvmlDeviceGetPowerUsage lost 2 times after 1 calls\n"
    ask = start(text)
    power = "nvmlDeviceGetPowerUsage(gpu())"
    assert [ask(power) for _ in range(2)] == [25000, LOST]
    # The same line in a new file goes on counting.
    fake.describe(text + " power 30\n")
    ask("settle()")
    assert [ask(power) for _ in range(3)] == [LOST, 30000, 30000]


def test_slow(start):
    ask = start("gpu\n fault nvmlDeviceGetPowerUsage slow 120\n")
    took = ask("[time.monotonic(), nvmlDeviceGetPowerUsage(gpu()), time.monotonic()]")
    assert took[1] == 25000
    assert took[2] - took[0] >= 0.12
    tries = [ask("[time.monotonic(), nvmlDeviceGetTemperature(gpu(), 0), time.monotonic()]") for _ in range(10)]
    assert min(after - before for before, _, after in tries) < 0.1


def test_hang_ends_with_its_line(start, fake):
    ask = start("gpu\n fault nvmlDeviceGetPowerUsage hang\n")
    ask.ask("nvmlDeviceGetPowerUsage(gpu())")
    assert not ask.answered(0.2)
    fake.describe("gpu\n power 31\n fault nvmlDeviceGetPowerUsage hang\n")
    assert not ask.answered(0.2)
    fake.describe("gpu\n power 32\n")
    assert ask.answer() == 32000


def test_hang_holds_up_no_other_call(start):
    ask = start("gpu\n fault nvmlDeviceGetPowerUsage hang\n")
    thread = "__import__('threading').Thread(target=nvmlDeviceGetPowerUsage, args=(gpu(),), daemon=True)"
    assert ask(f"[{thread}.start(), time.sleep(0.05), nvmlDeviceGetTemperature(gpu(), 0)]") == [None, None, 35]


def test_xid_events(start, fake):
    ask = start("gpu\n xid 13\ngpu\n")
    ask("[setattr(sys.modules['__main__'], name, nvmlEventSetCreate()) for name in ('events', 'others')]")
    for name in ("events", "others"):
        for index in (0, 1):
            assert ask(f"nvmlDeviceRegisterEvents(gpu({index}), nvmlEventTypeXidCriticalError, {name})") is None
    assert ask("nvmlDeviceGetSupportedEventTypes(gpu()) & nvmlEventTypeXidCriticalError") == 8
    assert ask("nvmlEventSetWait(events, 0)") == {"error": 10}
    fake.describe("gpu\n xid 13\n xid 79\ngpu\n xid 48\n")
    ask("settle()")
    told = "(lambda event: [nvmlDeviceGetIndex(event.device), event.eventType, event.eventData])"
    for name in ("events", "others"):
        assert ask(f"{told}(nvmlEventSetWait({name}, 0))") == [0, 8, 79]
        assert ask(f"{told}(nvmlEventSetWait({name}, 0))") == [1, 8, 48]
        assert ask(f"nvmlEventSetWait({name}, 0)") == {"error": 10}
    ask.ask(f"{told}(nvmlEventSetWait(events, 10000))")
    assert not ask.answered(0.1)
    fake.describe("gpu\n xid 13\n xid 79\n xid 31\ngpu\n xid 48\n")
    assert ask.answer() == [0, 8, 31]
    waited = ask("[time.monotonic(), raw('nvmlEventSetWait_v2', events, ctypes.byref(c_nvmlEventData_t()), 60)]")
    assert waited[1] == 10
    assert ask("time.monotonic()") - waited[0] >= 0.05
    assert ask("nvmlEventSetFree(events)") is None


VOCABULARY = (
    "gpu name uuid memory_total utilisation energy process mig gpm xid fault throttle since none unknown compute "
    "graphics sm gi ci total used hang slow times after calls every grows +- 12 -1 1e308 nan inf 0x10 8GiB 99999999999 "
    "nvmlInit lost capability 9.0 nvlink_links # \0 \xff"
)
LINE = st.lists(st.sampled_from(VOCABULARY.split()), max_size=9).map(" ".join)
LINES = st.lists(LINE, max_size=12).map(lambda lines: "\n".join(lines).encode())


CALLS = """[
    [raw(call, gpu(index), ctypes.create_string_buffer(4096)) for call in (
        "nvmlDeviceGetPowerUsage", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetUtilizationRates",
        "nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetMaxMigDeviceCount",
        "nvmlDeviceGetRowRemapperHistogram", "nvmlDeviceGetCurrentClocksThrottleReasons",
    )] for index in range(nvmlDeviceGetCount())
]""".replace("\n", " ")


def test_any_description_leaves_the_process_alive(start, fake):
    ask = start("gpu\n")

    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(st.one_of(st.binary(max_size=300), LINES))
    def survives(description):
        scratch = fake.description.with_name("scratch")
        scratch.write_bytes(description)
        scratch.replace(fake.description)
        ask("time.sleep(0.022)")
        assert all(result in (0, 3) for card in ask(CALLS) for result in card)

    survives()
    fake.describe("driver 1.2.3\ngpu\n temperature 44\n")
    assert ask("[settle(), nvmlSystemGetDriverVersion(), nvmlDeviceGetTemperature(gpu(), 0)]") == [None, "1.2.3", 44]
