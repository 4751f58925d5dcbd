"""A Snapshot brought up to date: the last whole one, with what a later update says is not so any more."""

import json


def merged(whole, update=None):
    """Both are lines; the Snapshot as a dictionary."""
    snapshot = json.loads(whole.decode("ascii"))
    if update is None:
        return snapshot
    update = json.loads(update.decode("ascii"))
    snapshot["seq"], snapshot["time"] = update["seq"], update["time"]
    snapshot["reports"] = update.get("reports", [])
    _put(snapshot, "devices_age_seconds", update.get("devices_age_seconds"))
    for name, value in update.get("host", {}).items():
        _put(snapshot["host"], name, value)
    put_changes(snapshot.get("gpus", []), snapshot.get("processes", []), update)
    return snapshot


def put_changes(gpus, processes, update):
    """Write the columns of an update into the records of the last whole Snapshot."""
    _put_columns(gpus, update.get("gpus"))
    _put_columns(processes, update.get("processes"))
    _put_columns([use for process in processes for use in process["gpus"]], update.get("uses"))


def _put_columns(records, columns):
    for name, values in (columns or {}).items():
        for record, value in zip(records, values):
            _put(record, name, value)


def _put(record, name, value):
    """Unknown is absent."""
    if value is None:
        record.pop(name, None)
    else:
        record[name] = value
