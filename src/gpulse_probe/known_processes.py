"""Whether the processes on a node's GPUs are known."""


def processes_known(records, uses):
    """Return False where no GPU's list of processes could be read; a node without GPUs has no processes."""
    split = {record["parent_uuid"] for record in records if "parent_uuid" in record}
    return bool(uses) or not records or any(_listed(record, split) for record in records)


def _listed(record, split):
    if "fault" in record or record.get("processes_listed") is False or "processes" in record.get("failed_fields", ()):
        return False
    # What runs on a card that is split runs on its instances.
    return record.get("uuid") not in split
