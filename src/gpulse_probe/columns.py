"""What is not as it was last told as a whole, in columns: a field, and its value for each GPU, process or use."""

from gpulse_probe import schema


def _unfit(fields):
    """The fields that do not travel as columns: facts, by which records are told apart, and parts."""
    return frozenset(field.name for field in fields if field.kind in ("fact", "part"))


_UNFIT = {
    "gpus": _unfit(schema.GPU),
    "processes": _unfit(schema.PROCESS) - {"gpus"},
    "uses": _unfit(schema.GPU_USE),
}


class Columns:
    """Remembers the sample that was told as a whole, to compare others with it. Its records must not be changed after.

    Each answer stands for itself: whoever misses one is right again with the next.
    """

    def __init__(self):
        self._whole = None

    def changes(self, source, gpus, processes, full=False):
        """{part: {field: values}} against the whole one; None where that cannot be said, or is not wanted: tell it all.

        gpus and processes are None where they are unknown. What is told as a whole is what later ones are held against.
        """
        tables = {"gpus": gpus, "processes": processes}
        if processes is not None:
            tables["uses"] = [use for process in processes for use in process["gpus"]]
        shape = (source, [(process["pid"], len(process["gpus"])) for process in processes or ()])
        found = None if full else self._differences(shape, tables)
        if found is None:
            self._whole = (shape, tables)
        return found

    def _differences(self, shape, tables):
        before = self._whole
        if before is None or before[0] != shape or before[1].keys() != tables.keys():
            return None
        found = {}
        for part, records in tables.items():
            columns = _changed(part, before[1][part], records)
            if columns is None:
                return None
            if columns:
                found[part] = columns
        return found


def _changed(part, olds, news):
    """The columns of one part; None where a record came, went, or is not what it was."""
    if olds is None or news is None:
        return {} if olds is news else None
    if len(olds) != len(news):
        return None
    names = set()
    for old, new in zip(olds, news):
        if old != new:
            names.update(name for name in new if name not in old or old[name] != new[name])
            names.update(name for name in old if name not in new)
    if part == "processes":
        # What a process holds on GPUs is a part of its own.
        names.discard("gpus")
    if names & _UNFIT[part]:
        return None
    return {name: [record.get(name) for record in news] for name in sorted(names)}
