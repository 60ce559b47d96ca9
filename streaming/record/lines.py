"""The rows that a source gives, as lines in their order.

Columns: ``line`` (binary; null for a tick), and ``major``, ``name``, ``minor``, the order of lines: by file time, file
and block, or by topic, partition and offset.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote

import pyarrow as pa

from streaming.events import Line, decode


def decode_batch(table: pa.Table) -> Iterator[Line]:
    """The lines of a collected batch in source order, decoded. Ticks carry no line and are left out."""
    lines = table.filter(table["line"].is_valid())
    # The sort is stable: lines of one block of a file keep the order in which Spark read them.
    order = [("major", "ascending"), ("name", "ascending"), ("minor", "ascending")]
    lines = lines.append_column("row", pa.array(range(lines.num_rows), pa.int64()))
    lines = lines.sort_by([*order, ("row", "ascending")])
    for place, raw in zip(_places(lines), lines["line"], strict=True):
        yield decode(raw.as_py(), place)


def _places(lines: pa.Table) -> Iterator[str]:
    """Where each line stood, for people: ``orders.jsonl:3`` or ``events-0@1742``."""
    number, last = 0, None
    for major, name, minor in zip(*(lines[c].to_pylist() for c in ("major", "name", "minor")), strict=True):
        if "/" in name:
            number = number + 1 if name == last else 1
            last = name
            yield f"{unquote(name).rsplit('/', 1)[-1]}:{number}"
        else:
            yield f"{name}-{major}@{minor}"
