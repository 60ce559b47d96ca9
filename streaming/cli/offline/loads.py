"""The loads of a cluster, read from a file: what partitions weigh and what brokers can take."""

from __future__ import annotations

from typing import Any

from placement import Assignment, Limits, Loads, LogDir, PartitionLoad, PlacementError
from streaming.cli.offline.offline import read_json
from streaming.errors import InputError

_PARTITION = {"topic": str, "partition": int, "size": int, "bytes_in": int, "bytes_out": int}
_BROKER = {"id": int, "disk": int, "bytes_in": int, "bytes_out": int, "cpu": int, "log_dirs": list}
_LOG_DIR = {"path": str, "limit": int, "used": int}
_FILE = {"partitions": list, "brokers": list, "bytes_out_per_byte_in": float}


def read_loads(path: str, assignment: Assignment) -> Loads:
    """The loads of a ``LOADS.json``, lined up with a layout.

    Raises:
        InputError: it is none; names file, place and reason.
    """
    document = _fields(path, "$", read_json(path, dict, "an object with partitions and brokers"), _FILE, ())
    try:
        measured = [
            PartitionLoad(**_fields(path, f"$.partitions[{i}]", entry, _PARTITION, ("topic", "partition")))
            for i, entry in enumerate(document.get("partitions", []))
        ]
        limits: dict[int, Limits] = {}
        for i, entry in enumerate(document.get("brokers", [])):
            place = f"$.brokers[{i}]"
            fields = _fields(path, place, entry, _BROKER, ("id",))
            broker, dirs = fields.pop("id"), fields.pop("log_dirs", [])
            if broker in limits:
                raise InputError(f"{path}: {place}.id: broker {broker} is given more than once", path=path)
            named = [
                LogDir(**_fields(path, f"{place}.log_dirs[{j}]", one, _LOG_DIR, ("path", "limit")))
                for j, one in enumerate(dirs)
            ]
            limits[broker] = Limits(**fields, log_dirs=tuple(named))
        return Loads.of(assignment, measured, limits=limits, out_per_in=document.get("bytes_out_per_byte_in", 1.0))
    except PlacementError as error:
        raise InputError(f"{path}: {error}", path=path) from error


def _fields(path: str, place: str, entry: Any, kinds: dict[str, type], needed: tuple[str, ...]) -> dict[str, Any]:
    """The fields of an object, each of its kind; null is as good as absent."""
    if not isinstance(entry, dict):
        raise InputError(f"{path}: {place}: expected an object, got {entry!r}", path=path)
    unknown = sorted(set(entry) - set(kinds))
    if unknown:
        raise InputError(f"{path}: {place}: unknown field {unknown[0]!r}; there are {', '.join(kinds)}", path=path)
    given = {name: value for name, value in entry.items() if value is not None}
    for name in needed:
        if name not in given:
            raise InputError(f"{path}: {place}: the {name} is missing", path=path)
    for name, value in given.items():
        fits = isinstance(value, (int, float) if kinds[name] is float else kinds[name])
        if not fits or isinstance(value, bool):
            raise InputError(f"{path}: {place}.{name}: is {value!r}, not of type {kinds[name].__name__}", path=path)
    return given
