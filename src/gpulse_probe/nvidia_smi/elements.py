"""The elements of an nvidia-smi document: one GPU's, also where its end is missing or it is damaged."""

import re
from xml.etree import ElementTree

LARGEST_GPU = 1 << 20
# Marks an element whose end is missing.
CUT = "cut"

_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

# Long lists nobody asks for: three quarters of a document are the clocks a card could have.
_LEFT_OUT = ("supported_clocks", "accounted_processes")

# Sections of a GPU that mislead when their end is missing: sums, lists, and values that have a better one below.
_WHOLE_OR_NOT = ("ecc_errors", "clocks_event_reasons", "clocks_throttle_reasons", "gpu_power_readings", "fabric")

# Nothing we read lies deeper in a GPU.
_DEEPEST = 4


def gpu_element(piece):
    """The GPU's element, None where not even its start can be read, and whether it is complete."""
    end = piece.find("</gpu>")
    piece = piece[: end + 6] if end >= 0 else piece
    for tag in _LEFT_OUT:
        start = piece.find(f"<{tag}>")
        if start >= 0:
            end = piece.find(f"</{tag}>", start)
            piece = piece[:start] + (piece[end + len(tag) + 3 :] if end >= 0 else "")
    if len(piece) > LARGEST_GPU:
        return None, False
    try:
        return ElementTree.fromstring(piece), True  # noqa: S314 - it holds no DTD, see read()
    except ElementTree.ParseError:
        # nvidia-smi prints a process's name as it is, so it may hold what XML forbids.
        return _beginning(_with_escaped_names(piece))


def _with_escaped_names(piece):
    before, *rest = piece.split("<process_name>")
    pieces = [before]
    for each in rest:
        name, end, after = each.partition("</process_name>")
        name = _NOT_IN_XML.sub("\ufffd", name).replace("&amp;", "&").replace("&", "&amp;").replace("<", "&lt;")
        pieces += ["<process_name>", name, end, after] if end else ["<process_name>", each]
    return "".join(pieces)


def _beginning(piece):
    """The element as far as it goes, and whether that is to its end; what is cut has no text."""
    parser = ElementTree.XMLPullParser(("start", "end"))
    parser.feed(piece)
    root, opened, damaged = None, [], False
    try:
        for event, element in parser.read_events():
            if event == "start":
                root = element if root is None else root
                opened.append(element)
            else:
                opened.pop()
    except ElementTree.ParseError:
        damaged = True
    for element in opened:
        element.set(CUT, "")
    if len(opened) > 1 and opened[1].tag in _WHOLE_OR_NOT:
        root.remove(opened[1])
    return root, not damaged and not opened


def flatten(element, path, values):
    """Text by path, such as fb_memory_usage/total."""
    for child in element:
        if not len(child):
            if child.text:
                values[path + child.tag] = child.text.strip()
        elif path.count("/") < _DEEPEST and child.tag not in ("processes", "mig_devices"):
            flatten(child, path + child.tag + "/", values)
