from __future__ import annotations

import pickle
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.amounts import (
    ByteAmount,
    Duration,
    PositiveByteAmount,
    bytes_text,
    duration_text,
    parse_bytes,
    parse_duration,
)


@pytest.mark.parametrize(
    ("text", "seconds"), [("500ms", 0.5), ("2s", 2), ("30 m", 1800), ("1.5h", 5400), ("7d", 604800)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "5", "m", "-5m", "5 weeks", "99999d"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|ten years"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "amount"), [("1KiB", 1024), ("1KB", 1024), ("1.5 MiB", 3 << 19), ("2GB", 2 << 30), ("3 TiB", 3 << 40)]
)
def test_amounts_of_bytes(text: str, amount: int) -> None:
    assert parse_bytes(text) == amount


@pytest.mark.parametrize("text", ["", "5", "MB", "-5MB", "5 kB", "5 Mi", "5 iB"])
def test_what_is_no_amount_of_bytes(text: str) -> None:
    with pytest.raises(ValueError, match="amount of bytes"):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("amount", "expected"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (2 << 20, "2.0 MiB"), (5 << 40, "5.0 TiB")],
)
def test_bytes_in_words(amount: float, expected: str) -> None:
    assert bytes_text(amount) == expected


@given(st.integers(1 << 10, 1 << 50))
def test_what_is_written_is_read_as_what_it_was_but_for_rounding(amount: int) -> None:
    assert parse_bytes(bytes_text(amount)) == pytest.approx(amount, rel=0.05)


@pytest.mark.parametrize("written", [Duration("1.50 h"), ByteAmount(" 5MB"), PositiveByteAmount("1KB")])
def test_what_was_read_is_written_as_it_was_and_travels_between_processes(written: Duration | ByteAmount) -> None:
    again = pickle.loads(pickle.dumps(written))
    assert again == written
    assert hash(again) == hash(written)
    assert repr(again) == repr(written)
    assert (str(Duration("1.50 h")), Duration("1.50 h").seconds) == ("1.50 h", 5400)
    assert (str(ByteAmount(" 5MB")), ByteAmount(" 5MB").bytes) == (" 5MB", 5 << 20)


def test_values_that_are_written_otherwise_differ() -> None:
    """A policy is what it says: another text is another record."""
    assert Duration("60s") != Duration("1m")
    assert ByteAmount("1KB") != PositiveByteAmount("1KB")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (119.4, "119 s"),
        (120, "2 min"),
        (7199, "120 min"),
        (7200, "2 h"),
        (172_800, "2 d"),
        (27_726_688, "321 d"),
    ],
)
def test_durations_are_told_in_the_unit_that_suits_them(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
