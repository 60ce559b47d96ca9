"""Lines that are no events, or nearly events, drawn from a seed, with good events between them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from tests.events_for import EventsFor

GOOD = EventsFor("good")
"""The cluster whose events are all sound; nothing that is broken names it."""

_BASE = EventsFor("bad")

_VALUES: list[Any] = [
    None, True, -1, 0, 2**31, 2**63, 10**400, 1e308, 0.1, "", "x", "\u0000", "\ud800", "\u202etopic", "é" * 300, [], {},
    [1, "a", None], {"a": {"b": [1]}}, "2026-13-45T99:99:99Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
]  # fmt: skip


def good_lines(count: int) -> list[bytes]:
    """Two brokers, then topics: every one of them is applied."""
    return [GOOD.joined(1), GOOD.joined(2), *(GOOD.created(f"t{n}", 2, 2, minute=n / 60) for n in range(count - 2))]


def fuzzed_lines(seed: int, count: int, *, long: int = 0) -> Iterator[bytes]:
    """``count`` lines without line feeds, ``long`` of them of 10 MB."""
    draw = random.Random(seed)
    every = max(1, count // max(1, long))
    for number in range(count):
        if long and number % every == every // 2:
            yield _long(draw, number)
        else:
            yield draw.choice(_WAYS)(draw, number).replace(b"\n", b" ")


def _event(draw: random.Random, number: int) -> dict[str, Any]:
    lines = [
        _BASE.joined(draw.randrange(5), "a", minute=number),
        _BASE.left(draw.randrange(5), "failed", minute=number),
        _BASE.created(f"t{number}", 3, 2, minute=number),
        _BASE.observed({("o", 0): [1, 2]}, minute=number),
        _BASE.progress(1, "started", minute=number, details={"moved": 3}),
        _BASE.decided("approved", 1, "0" * 64, minute=number),
        _BASE.rebalance(minute=number, max_moves=3),
        _BASE.weighed(
            {("o", 0): 3000}, minute=number, brokers=[{"broker_id": 3, "log_dirs": [{"path": "/", "limit": 3}]}]
        ),
    ]
    event: dict[str, Any] = json.loads(draw.choice(lines))
    return event


def _wrong_value(draw: random.Random, number: int) -> bytes:
    event = _event(draw, number)
    event[draw.choice(sorted(event))] = draw.choice(_VALUES)
    return json.dumps(event).encode()


def _missing_field(draw: random.Random, number: int) -> bytes:
    event = _event(draw, number)
    del event[draw.choice(sorted(event))]
    return json.dumps(event).encode()


def _more_fields(draw: random.Random, number: int) -> bytes:
    extra = {str(draw.choice(_VALUES))[:50]: draw.choice(_VALUES) for _ in range(3)}
    return json.dumps(_event(draw, number) | {"extra": extra}, ensure_ascii=draw.random() < 0.5).encode(
        errors="surrogatepass"
    )


def _cut(draw: random.Random, number: int) -> bytes:
    line = json.dumps(_event(draw, number)).encode()
    return line[: draw.randrange(len(line))]


def _flipped(draw: random.Random, number: int) -> bytes:
    line = bytearray(json.dumps(_event(draw, number)).encode())
    for _ in range(draw.randint(1, 4)):
        line[draw.randrange(len(line))] = draw.randrange(256)
    return bytes(line)


def _noise(draw: random.Random, _: int) -> bytes:
    return draw.randbytes(draw.randint(0, 200))


def _nested(draw: random.Random, _: int) -> bytes:
    opening = draw.choice([b"[", b'{"a":', b'{"event_id":"n","cluster_id":"bad","type":"plan_progress","details":['])
    return opening * draw.choice([10, 1_000, 5_000])


def _numbers(draw: random.Random, number: int) -> bytes:
    event = json.dumps(_event(draw, number))
    return event.replace("3", draw.choice(["3" * 5_000, "1e999", "-0", "0x10", "NaN", "3.0", "Infinity"])).encode()


def _blank(draw: random.Random, _: int) -> bytes:
    return draw.choice([b"", b" ", b"\t", b"\r", b"\xef\xbb\xbf", b"null", b"[]", b"{}", b'""', b"0"])


_WAYS = [_wrong_value, _missing_field, _more_fields, _cut, _flipped, _noise, _nested, _numbers, _blank]


def _long(draw: random.Random, number: int) -> bytes:
    text = chr(draw.randint(97, 122)) * 10_000_000
    return draw.choice([text.encode(), json.dumps(_event(draw, number) | {"topic": text}).encode()])
