"""Tables drawn for a terminal of any width.

Where the words of a column fit beside the others they are folded there; where too little room is left for them they go
under their row. So a row of a narrow terminal takes two lines, not ten.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

from rich.cells import cell_len
from rich.text import Text

ROOM: Final = 30
"""Characters that words need beside other columns; with fewer they go under the row."""

NARROWEST: Final = 10
"""Characters that a column keeps however little room there is."""

_GAP: Final = 2


def drawn(header: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Text:
    """A table with a bold header and a rule under it.

    Args:
        header: the names of the columns.
        rows: their cells, a row each.
        width: columns of the terminal.
    """
    header = [name.replace("_", " ") for name in header]
    widths = [max(cell_len(row[n]) for row in (header, *rows)) for n in range(len(header))]
    if sum(widths) + _GAP * len(widths) > width:
        widths = [max(cell_len(text) for text in (*h.split(), *(r[n] for r in rows))) for n, h in enumerate(header)]
    beside, under = _arranged(rows, widths, width - 2)
    right = [bool(rows) and all(_numeric(row[n]) for row in rows) for n in range(len(header))]
    indent = " " * min(widths[0] + _GAP + 1, NARROWEST)

    def lines(row: Sequence[str]) -> list[str]:
        cells = [_folded(row[n], widths[n]) for n in beside]
        table = [
            " " + (" " * _GAP).join(_padded(c, widths[n], right=right[n]) for n, c in zip(beside, line, strict=True))
            for line in zip_longest(*cells, fillvalue="")
        ]
        words = (text for n in under for text in _folded(row[n], width - len(indent)) if row[n] not in ("", "-"))
        return [line.rstrip() for line in (*table, *(indent + text for text in words))]

    rule = " " + "─" * (sum(widths[n] for n in beside) + _GAP * (len(beside) - 1))
    body = "\n".join(line for row in rows for line in lines(row))
    return Text.assemble(("\n".join(lines(header)), "bold"), "\n", rule, "\n", body)


def _arranged(rows: Sequence[Sequence[str]], widths: list[int], width: int) -> tuple[list[int], list[int]]:
    """Which columns stand beside one another, made as narrow as they must be, and whose words go under the row."""
    beside, under = list(range(len(widths))), []
    while (excess := sum(widths[n] for n in beside) + _GAP * (len(beside) - 1) - width) > 0:
        worded = [n for n in beside[1:] if any(" " in row[n] for row in rows)]
        widest = max(worded or beside, key=lambda n: widths[n])
        if not worded or widths[widest] - excess >= ROOM:
            widths[widest] = max(NARROWEST, widths[widest] - excess)
            break
        beside.remove(widest)
        under.append(widest)
    return beside, sorted(under)


def _folded(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(width, NARROWEST), break_on_hyphens=False) or [""]


def _padded(text: str, width: int, *, right: bool) -> str:
    spaces = " " * (width - cell_len(text))
    return spaces + text if right else text + spaces


def _numeric(cell: str) -> bool:
    return cell in ("", "-") or cell.replace(".", "", 2).isdigit()
