"""Keeps what is told small enough for a hub to take: people may write anything into command lines and names."""

from json.encoder import encode_basestring_ascii as quoted

# A hub takes lines of 1 MiB; GPUs, host and reports have their share of it. A node must not vanish because somebody
# filled it, so this goes by what hardly changes, or else command lines would grow and shrink from tick to tick.
MOST_BYTES = 600000
# At most, of a record without its texts, of what it holds on one GPU, and of a child.
_RECORD_BYTES, _USE_BYTES, _CHILD_BYTES = 400, 200, 12
# Before it reads a line a hub counts the records in it by their braces, also those within texts: 20,000 at most.
_BRACE_BYTES = 45
_TEXTS = ("command", "name", "cgroup", "user")
_LENGTHS = (2048, 1024, 512, 256, 128, 64)
_CGROUP_LENGTH = 256
# Of one path or message; as many characters as fit whatever they are, else as most people write them.
_TEXT_BYTES, _SHORT_LENGTH, _PLAIN_LENGTH = 1024, 80, 1000


def bounded(text):
    """The text, or its beginning where it is very long."""
    if len(quoted(text)) <= _TEXT_BYTES:
        return text
    start = text[:_PLAIN_LENGTH]
    return (start if len(quoted(start)) <= _TEXT_BYTES else text[:_SHORT_LENGTH]) + "…"


def fitted(records, report):
    """The records of processes, with shorter command lines where they are too much; they are changed in place."""
    # No character takes more than a brace, so mostly the lengths tell that there is room.
    if sum(_rest(record) + _BRACE_BYTES * sum(map(len, _texts(record))) for record in records) <= MOST_BYTES:
        return records
    lengths = iter(_LENGTHS)
    length = cut = 0
    while sum(map(_cost, records)) > MOST_BYTES:
        length = next(lengths, None)
        if length is None:
            records = _first(records, report)
            break
        cut = sum([_cut(record, "command", length) for record in records])
    if cut:
        what = "1 command line is" if cut == 1 else "%d command lines are" % cut
        report("%s cut to %d characters: together they are more than a hub takes" % (what, length or _LENGTHS[-1]))
    return records


def _first(records, report):
    """As many as there is room for, where short command lines are not enough."""
    room = MOST_BYTES
    kept = []
    for record in records:
        _cut(record, "cgroup", _CGROUP_LENGTH)
        cost = _cost(record)
        if cost <= room:
            room -= cost
            kept.append(record)
    if len(kept) < len(records):
        left_out = len(records) - len(kept)
        what = "1 process is" if left_out == 1 else "%d processes are" % left_out
        report("%s left out: all of them are more than a hub takes" % what)
    return kept


def _texts(record):
    return [record[name] for name in _TEXTS if name in record]


def _rest(record):
    return _RECORD_BYTES + _USE_BYTES * len(record["gpus"]) + _CHILD_BYTES * len(record.get("children", ()))


def _cost(record):
    texts = _texts(record)
    braces = sum([text.count("{") for text in texts])
    return _rest(record) + sum([len(quoted(text)) for text in texts]) + (_BRACE_BYTES - 1) * braces


def _cut(record, name, length):
    """Whether there was something to cut."""
    text = record.get(name, "")
    if len(text) <= length:
        return False
    record[name] = text[: length - 1] + "…"
    return True
