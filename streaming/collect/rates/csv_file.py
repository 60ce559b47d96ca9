"""Rates from a CSV file."""

from __future__ import annotations

import csv
from pathlib import Path

from streaming.collect.rates.values import QUANTITIES, Rate, Rated, Rates, rate_of, rated_of
from streaming.errors import InputError


def rates_in_csv(path: Path) -> Rates:
    """The rates that the file has now.

    Raises:
        InputError: it cannot be read, or is none; with the line.
    """
    found: dict[Rated, Rate] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            if "topic" not in (rows.fieldnames or ()):
                raise _csv_error(path, 1, "there is no column topic")
            for row in rows:
                rated = rated_of(row.get("topic"), row.get("partition"))
                if rated is None:
                    names = f"topic {row.get('topic')!r}, partition {row.get('partition')!r}"
                    raise _csv_error(path, rows.line_num, f"{names} is not a partition")
                if rated in found:
                    raise _csv_error(path, rows.line_num, f"{_name(rated)} is there twice")
                found[rated] = Rate(*(_csv_rate(path, rows.line_num, name, row.get(name)) for name in QUANTITIES))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}", path=str(path)) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: is not a CSV file in UTF-8: {error}", path=str(path)) from error
    return found


def _name(rated: Rated) -> str:
    topic, partition = rated
    return f"topic {topic}" if partition is None else f"partition {topic}-{partition}"


def _csv_rate(path: Path, line: int, name: str, text: str | None) -> float | None:
    if text is None or not text.strip():
        return None
    rate = rate_of(text)
    if rate is None:
        raise _csv_error(path, line, f"{name} is {text!r}, and not a number of bytes a second")
    return rate


def _csv_error(path: Path, line: int, reason: str) -> InputError:
    return InputError(f"{path}: line {line}: {reason}", path=str(path))
