"""Asks the nvidia-smi program for GPUs and processes, where NVML cannot be used."""

from collections import namedtuple

from gpulse_probe.commands import DeadlinePassed, StillStuck
from gpulse_probe.nvidia_smi import document
from gpulse_probe.schema import GPU_FACTS

USUAL_PLACES = (
    "/usr/bin",
    "/usr/local/bin",
    "/bin",
    "/opt/bin",
    "/usr/lib/wsl/lib",
    "/usr/local/nvidia/bin",
    "/run/nvidia/driver/usr/bin",
    "/home/kubernetes/bin/nvidia/bin",
    "/run/current-system/sw/bin",
    "/usr/lib/nvidia/bin",
)

# What nvidia-smi's manual says of its exit codes; 18 is not in it but seen.
EXIT_CODES = {
    4: "no permission",
    8: "external power cables are not attached",
    9: "the driver is not loaded",
    10: "an interrupt issue with a GPU",
    12: "the NVML library could not be loaded",
    14: "infoROM is corrupted",
    15: "a GPU has fallen off the bus",
    18: "driver/library version mismatch",
}

# gpus and uses as in document.Reading: None where they are unknown. age_seconds: since they were read.
Answer = namedtuple("Answer", "gpus uses age_seconds")


class NvidiaSmi:
    """Runs `nvidia-smi -q -x` at most every so many seconds, and gives its last answer in between.

    collect(now, report) -> None where there is no such program, else an Answer. The reasons of whatever is
    missing are reported at every collect, for as long as they hold. An answer whose gpus are None is a failure;
    nothing older is given in its place. A collect may take as long as the deadline.
    """

    name = "nvidia_smi"

    def __init__(self, system, page, every=5.0, deadline=20.0):
        """page: where a program that cannot be ended is remembered."""
        self._system = system
        self._page = page
        self._every = every
        self._deadline = deadline
        self._due = None
        self._taken = 0.0
        self._reading = None
        # What was known of each card, by its place on the bus.
        self._facts = {}

    def collect(self, now, report):
        if self._due is None or now >= self._due:
            began = self._system.monotonic()
            self._reading = self._ask()
            self._keep_facts()
            # Values are as old as the question; the pause is counted from the answer, as a slow driver needs a rest.
            self._taken = now
            self._due = now + self._system.monotonic() - began + self._every
        if self._reading is None:
            return None
        for message in self._reading.reports:
            report(message)
        return Answer(self._reading.gpus, self._reading.uses, max(0.0, now - self._taken))

    def _keep_facts(self):
        """A card that is lost keeps what was known of it before."""
        for card in self._reading.gpus or () if self._reading else ():
            place = card.get("pci_bus_id")
            if "parent_uuid" in card or place is None:
                continue
            if "fault" not in card:
                self._facts[place] = {name: value for name, value in card.items() if name in GPU_FACTS}
            else:
                for name, value in self._facts.get(place, {}).items():
                    card.setdefault(name, value)

    def _ask(self):
        program = self._system.find_program("nvidia-smi", USUAL_PLACES)
        if program is None:
            return None
        try:
            ran = self._system.run([program, "-q", "-x"], self._deadline, self._page)
        except StillStuck as problem:
            message = f"nvidia-smi is not asked: {problem.strerror}; a reboot of the node may be needed"
            return document.Reading(None, None, [message])
        except DeadlinePassed:
            return document.Reading(None, None, [f"nvidia-smi did not answer within {self._deadline:g} s"])
        except OSError as problem:
            return document.Reading(None, None, [f"{program} cannot be run: {problem.strerror or problem}"])
        reading = document.read(ran.output)
        if ran.code and not reading.reports and reading.gpus != []:
            meaning = EXIT_CODES.get(ran.code, "not in its manual")
            reading.reports.append(f"nvidia-smi ended with code {ran.code} ({meaning})")
        return reading
