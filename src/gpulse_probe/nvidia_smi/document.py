"""Reads what `nvidia-smi -q -x` printed: a pure function from bytes to GPUs and the processes on them.

The probe uses it where NVML cannot be used, the hub for nodes without Python. nvidia-smi prints its errors
on stdout too, so whatever it printed is given to read() as it is.
"""

import codecs
import re
from collections import namedtuple

from gpulse_probe.known_processes import processes_known
from gpulse_probe.nvidia_smi.elements import CUT, flatten, gpu_element
from gpulse_probe.nvidia_smi.failures import ERRORS, ESSENTIAL, NO_VALUE, Unread, failure, plain, warnings
from gpulse_probe.nvidia_smi.fields import (
    CARD,
    INSTANCE,
    LIVE,
    PROCESS,
    THROTTLE_REASONS,
    count,
    ecc_totals,
    fabric,
    fields,
    text_of,
)

# gpus and uses are None where they are unknown (reports say why), [] where there are none. uses are also None where no
# GPU's processes could be read; where some could, the others have "processes" in failed_fields.
# gpus: records of the schema's Gpu; uses: dicts with pid, uuid (of the GPU or MIG instance), kinds and, where
# they are known, memory_bytes and name; reports: messages.
Reading = namedtuple("Reading", "gpus uses reports")

LARGEST_DOCUMENT = 16 << 20
MOST_GPUS = 256

KINDS = {"C": "compute", "G": "graphics", "M": "mps"}

_GPU = re.compile(r"<gpu[\s>]")
_ENDS_EARLY = "the document of nvidia-smi ends early"

# Where the fields stand without which nobody can say whether a GPU is in use.
_PATHS = {field: paths for field, _convert, paths in CARD if field in ESSENTIAL}


def read(document):
    """What nvidia-smi printed, as a Reading. Never raises, whatever the bytes are."""
    if len(document) > LARGEST_DOCUMENT:
        message = f"nvidia-smi printed {len(document)} bytes: more than {LARGEST_DOCUMENT} are not read"
        return Reading(None, None, [message])
    text = _decoded(document)
    start = text.find("<nvidia_smi_log")
    if start < 0:
        no_gpu, message = failure(text)
        return Reading([], [], []) if no_gpu else Reading(None, None, [message])
    # The parser is never given what stands before: without a DTD no entity can be declared.
    end = text.find("</nvidia_smi_log>", start)
    around = text[:start] + "\n" + (text[end:] if end >= 0 else "")
    return _Document(text[start : end if end >= 0 else len(text)], end >= 0, warnings(around)).reading()


def _decoded(document):
    try:
        # Not "final": a document cut within a character is still UTF-8.
        return codecs.utf_8_decode(document, "strict", False)[0]
    except UnicodeDecodeError:
        return document.decode("latin-1")


class _Document:
    def __init__(self, text, ended, reports):
        self._ended = ended
        self._reports = reports
        self._unread = Unread()
        self._gpus = []
        self._uses = []
        starts = [match.start() for match in _GPU.finditer(text)]
        self._described = len(starts)
        head = text[: starts[0]] if starts else text
        self._attached = count(_between(head, "attached_gpus"))
        self._versions = {}
        for name in ("driver_version", "cuda_version"):
            value = text_of(_between(head, name))
            if value is not None:
                self._versions[name] = value
        ends = [*starts[1:], len(text)]
        for index, (start, end) in enumerate(zip(starts[:MOST_GPUS], ends)):
            self._read_gpu(index, text[start:end])

    def reading(self):
        reports = self._reports + self._unread.reports()
        if self._described > MOST_GPUS:
            reports.append(f"nvidia-smi describes {self._described} GPUs: only the first {MOST_GPUS} are read")
        if not self._ended:
            place = f"in or after GPU {self._described - 1}" if self._described else "before the first GPU"
            reports.append(f"nvidia-smi: its document ends early, {place}")
        elif self._attached is not None and self._attached != self._described:
            reports.append(
                f"nvidia-smi counts {self._attached} GPUs but describes {self._described}: "
                "look in dmesg for what the others have"
            )
        if not self._gpus and (self._described or self._attached or not self._ended):
            return Reading(None, None, reports)
        return Reading(self._gpus, self._uses if processes_known(self._gpus, self._uses) else None, reports)

    def _read_gpu(self, index, piece):
        """Each GPU is parsed on its own, so that a damaged one costs nothing but itself."""
        element, complete = gpu_element(piece)
        cut = not self._ended and index + 1 == self._described
        if not complete and not cut:
            self._reports.append(f"nvidia-smi: the description of GPU {index} is damaged, some of it cannot be read")
        if element is None:
            return
        values = {"@id": element.get("id", "")}
        flatten(element, "", values)
        card = dict(self._versions, index=index, vendor="nvidia")
        unread = self._unread
        unread.begin(index, values["@id"])
        fields(CARD, values, card, unread.note)
        if not ("uuid" in card or (complete and "pci_bus_id" in card)):
            if complete:
                self._reports.append(f"nvidia-smi: GPU {index} has neither a UUID nor a bus id and is left out")
            return
        ecc_totals(values, card)
        fabric(values, card)
        reasons = _throttle_reasons(element)
        if reasons is not None:
            card["throttle_reasons"] = reasons
        unread.end(card, alive=not complete or any(name in card for name in LIVE))
        action = text_of(values.get("gpu_recovery_action", ""))
        if action or values.get("gpu_reset_status/reset_required") == "Yes":
            self._reports.append(f"{unread.gpu}: the driver asks for: {(action or 'Reset')[:60]}")
        lost = "" if complete else _ENDS_EARLY if cut else "the document of nvidia-smi is damaged"
        for field in ESSENTIAL if lost else ():
            if field not in card and all(path not in values for path in _PATHS[field]):
                unread.fail(field, lost)
        # Nothing is asked of a card that is lost.
        processes = True if "fault" in card else _processes_state(element, lost)
        self._put_processes(card, processes)
        unread.put_failures(card)
        self._gpus.append(card)
        if "uuid" in card:
            instances = self._instances(element, card, processes)
            self._gpus.extend(instances)
            self._uses.extend(_uses(element, card["uuid"], instances, unread))

    def _put_processes(self, record, state):
        """state: True where the processes of the card are listed, False where they never are, or why not this time."""
        if state is False:
            record["processes_listed"] = False
        elif state is not True:
            self._unread.fail("processes", state)

    def _instances(self, element, card, processes):
        instances = []
        for device in element.iterfind("mig_devices/mig_device"):
            values = {}
            flatten(device, "", values)
            record = dict(self._versions, index=card["index"], vendor="nvidia", parent_uuid=card["uuid"])
            if "name" in card:
                record["name"] = card["name"]
            fields(INSTANCE, values, record, self._unread.note)
            if "gpu_instance_id" not in record or "compute_instance_id" not in record:
                continue
            # No driver seen so far prints it.
            if "uuid" not in record:
                place = "/gi{gpu_instance_id}/ci{compute_instance_id}".format(**record)
                record["uuid"] = card["uuid"] + place
            profile = _profile(values, record.get("memory_total_bytes"), card.get("memory_total_bytes"))
            if profile:
                record["mig_profile"] = profile
            if "memory_used_bytes" not in record and device.get(CUT) is not None:
                self._unread.fail("memory_used_bytes", _ENDS_EARLY)
            self._put_processes(record, processes)
            self._unread.put_failures(record)
            instances.append(record)
        return instances


def _between(text, tag):
    value, ended, _ = text.partition(f"<{tag}>")[2].partition(f"</{tag}>")
    return value.strip() if ended else ""


def _throttle_reasons(element):
    """The reasons that hold; None where the card tells of none whether it holds."""
    told = {}
    for section in ("clocks_event_reasons", "clocks_throttle_reasons"):
        for child in element.iterfind(section + "/*"):
            if child.text in ("Active", "Not Active"):
                told[child.tag.partition("_reason_")[2]] = child.text == "Active"
    if not told:
        return None
    return [name for name, ends in THROTTLE_REASONS if any(told.get(end) for end in ends)]


def _profile(values, memory, card_memory):
    """The size by NVIDIA's name, from what the document has instead: copy engines, multiprocessors, memory.

    A GPU instance has a copy engine per slice (the whole card eight for seven), and at least 14 multiprocessors
    per slice; fewer are a compute instance that is smaller than its GPU instance, whose name cannot be told.
    """
    engines = count(values.get("device_attributes/shared/copy_engine_count", ""))
    processors = count(values.get("device_attributes/shared/multiprocessor_count", ""))
    slices = 7 if engines == 8 else engines
    if slices not in (1, 2, 3, 4, 7) or not processors or processors < 14 * slices or not memory or not card_memory:
        return None
    eighths = -(-8 * memory // card_memory)
    gigabytes = -(-card_memory // (1 << 30))
    return f"{slices}g.{(eighths * gigabytes + 4) // 8}gb"


def _processes_state(element, lost):
    """Return whether the card lists its processes: True, False for never, or in words why not this time.

    lost: why the end of the description is missing; "" where it is not.
    """
    processes = element.find("processes")
    if processes is None:
        return lost or False
    if processes.get(CUT) is not None:
        return lost
    text = plain((processes.text or "").strip())
    if len(processes) or not text:
        return True
    if text in NO_VALUE and text not in ERRORS:
        return False
    return "%s from nvidia-smi" % processes.text.strip().strip("[]")[:60]


def _uses(element, card_uuid, instances, unread):
    places = {}
    for record in instances:
        places[record["gpu_instance_id"], record["compute_instance_id"]] = record["uuid"]
    uses = []
    for process in element.iterfind("processes/process_info"):
        values = {}
        flatten(process, "", values)
        pid = count(values.get("pid", ""))
        if not pid:
            continue
        place = (count(values.get("gpu_instance_id", "")), count(values.get("compute_instance_id", "")))
        kinds = sorted(KINDS[letter] for letter in set(values.get("type", "").split("+")) if letter in KINDS)
        use = {"pid": pid, "uuid": places.get(place, card_uuid), "kinds": kinds}
        fields(PROCESS, values, use, unread.note_process)
        uses.append(use)
    return uses
