"""Every public name, its parameters and what each may be: the rows of the tests of public names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from placement import (
    Assignment,
    Band,
    Broker,
    Change,
    Limits,
    Loads,
    LogDir,
    Moves,
    PartitionLoad,
    PlacementError,
    Replan,
    ReplicaCounts,
    Terms,
    WaveLimits,
    assign_consumers,
    extend_adminutils,
    in_waves,
    infer_start,
    key_skew,
    partition_for_key,
    partitions_for_keys,
    place_adminutils,
    place_balanced,
    place_striped,
    replan,
    replicas_up,
    verify,
    verify_moves,
)

BROKERS = [Broker(1, "a"), Broker(2, "b"), Broker(3, "c"), Broker(4, "a", state="dead")]
LAYOUT = Assignment.from_topics({"t": [[1, 2], [2, 3], [3, 4]], "u": [[1, 4]]})
PLAN = replan(LAYOUT, BROKERS)
MOVES = PLAN.moves
CHANGED: dict[str, Any] = {
    name: getattr(MOVES, name) for name in ("topics", "topic_index", "partition", "before", "after")
}
NONE_YET = np.zeros(4, np.int64)


class _Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no text")


def hostile() -> dict[str, Any]:
    """Values by a label; made anew, because a generator is used up."""
    return {
        "None": None, "True": True, "1.5": 1.5, "NaN": float("nan"), "infinity": float("inf"), "1e308": 1e308,
        "5e-324": 5e-324, "0": 0, "-1": -1, "2^31": 2**31, "2^62": 2**62, "10^5000": 10**5000, "text": "x",
        "no text": "", "surrogate": "\ud800", "two lines": "a\nb", "bytes": b"x", "no list": object(),
        "unprintable": _Unprintable(), "np float": np.float64(1.5), "np integer": np.int64(1), "np byte": np.uint8(1),
        "np bool": np.bool_(True), "[]": [], "[1]": [1], "[1.5]": [1.5], "[None]": [None], "[text]": ["x"],
        "[True]": [True], "[2^31]": [2**31], "[2^64]": [2**64], "[-5]": [-5], "{}": {}, "{text: 1}": {"x": 1},
        "{1: text}": {1: "x"}, "{t: None}": {"t": None}, "{t: 1.5}": {"t": 1.5}, "{t: [1, 1]}": {"t": [1, 1]},
        "{t: [1.5]}": {"t": [1.5]}, "no axis": np.array(1), "floats": np.array([1.5]), "one": np.array([[1]]),
        "texts": np.array([["x"]]), "unsigned": np.array([[1, 2]], np.uint64), "2^63": np.array([2**63], np.uint64),
        "cube": np.zeros((2, 2, 2), int), "objects": np.array([None]), "generator": (x for x in [1]),
        "range": range(3), "set()": set(), "ragged": [[1], [1, 2]], "pairs": [[1, 2], [1, 2]], "rows": [("t", 0)],
        "True among": [[True, 2], [2, 1]], "function": lambda *_: "x",
    }  # fmt: skip


# What may work, because it is right or because it is empty; everything else must be refused.
WHOLE = {"0", "-1", "np integer", "np byte", "2^31", "2^62"}
ANY_WHOLE = WHOLE | {"10^5000"}
NUMBER = WHOLE | {"1.5", "5e-324", "np float", "1e308"}
FLAG = {"True", "np bool"}
TEXT = {"text", "no text", "surrogate", "two lines"}
EMPTY = {"[]", "{}", "set()"}
NAMES = EMPTY | {"[text]", "{text: 1}", "{t: None}", "{t: 1.5}", "{t: [1, 1]}", "{t: [1.5]}"}
IDS = EMPTY | {"[1]", "{1: text}", "range"}
COLUMN = {"[]", "[1]", "range"}
MATRIX = {"one", "unsigned", "pairs", "True among"}
KEYS = NAMES | {"[None]", "objects"}
OPTIONAL = {"None"}
NOTHING: set[str] = set()


@dataclass(frozen=True)
class Row:
    """A call that is right, and what may stand in the place of each of its arguments."""

    call: Callable[..., Any]
    right: dict[str, Any]
    may: dict[str, set[str]]
    of: Any = None
    """What has the parameters, where ``call`` is a way to it."""


def _change(**columns: Any) -> Any:
    return verify_moves(Change(**columns), BROKERS)


def _moves(**columns: Any) -> Any:
    return in_waves(Moves(**columns), replicas_up(MOVES, BROKERS))


def _by_load(**columns: Any) -> Any:
    return replan(LAYOUT, BROKERS, loads=Loads(**columns))


def _by_terms(**terms: Any) -> Any:
    return replan(LAYOUT, Terms(**terms))


def sound(**parts: Any) -> Any:
    found = verify(Replan(**parts))
    if not found:
        raise PlacementError(str(found.violations[0])[:250])


OPTIONS: dict[str, Any] = {
    "assignment": LAYOUT,
    "brokers": BROKERS,
    "mode": "heal",
    "max_moves": None,
    "exclude_topics": (),
    "exclude_brokers": (),
    "replication_factors": None,
    "strict_spread": False,
    "home": None,
    "loads": None,
    "band": None,
    "max_bytes": None,
    "keep_off": None,
    "move_cost": 0,
    "in_sync": None,
    "leaders": "even",
}
MAY_BE: dict[str, set[str]] = {
    "assignment": NOTHING,
    "brokers": NOTHING,
    "mode": NOTHING,
    "max_moves": ANY_WHOLE | OPTIONAL,
    "exclude_topics": NAMES,
    "exclude_brokers": IDS,
    "replication_factors": OPTIONAL | {"{}", "{text: 1}"},
    "strict_spread": FLAG,
    "home": OPTIONAL,
    "loads": OPTIONAL,
    "band": OPTIONAL,
    "max_bytes": OPTIONAL,
    "keep_off": OPTIONAL | {"{}"},
    "move_cost": {"0"},
    "in_sync": OPTIONAL,
    "leaders": NOTHING,
}

ROWS: dict[str, list[Row]] = {
    "Assignment": [
        Row(
            Assignment,
            {
                "topics": ("t",),
                "topic_index": np.zeros(2, np.int32),
                "partition": np.arange(2, dtype=np.int32),
                "replicas": np.array([[1, 2], [2, 1]], np.int32),
            },
            {"topics": {"[text]"}, "topic_index": NOTHING, "partition": NOTHING, "replicas": MATRIX},
        ),
        Row(Assignment.from_rows, {"rows": [("t", 0, [1])]}, {"rows": EMPTY | {"no text"}}),
        Row(Assignment.from_topics, {"topics": {"t": [[1]]}}, {"topics": {"{}"}}),
        Row(
            Assignment.from_json,
            {"text": '{"version":1,"partitions":{"0":[1]}}', "topic": "t"},
            {"text": NOTHING, "topic": TEXT},
        ),
        Row(
            LAYOUT.with_rows,
            {"rows": np.array([0]), "replicas": np.array([[1, 3]], np.int32)},
            {"rows": COLUMN, "replicas": MATRIX},
        ),
        Row(LAYOUT.replicas_of, {"row": 0}, {"row": WHOLE}),
    ],
    "Band": [
        Row(
            Band,
            {"settle": 0.1, "trigger": 0.2, "exact_counts": False},
            {"settle": NUMBER, "trigger": NUMBER, "exact_counts": FLAG},
        )
    ],
    "Broker": [
        Row(
            Broker,
            {"id": 1, "rack": "a", "capacity": 1.0, "state": "alive"},
            {"id": WHOLE, "rack": TEXT | OPTIONAL, "capacity": NUMBER, "state": NOTHING},
        )
    ],
    "Change": [Row(_change, CHANGED, dict.fromkeys(CHANGED, NOTHING), Change)],
    "Limits": [
        Row(
            Limits,
            {"disk": 1, "bytes_in": 1, "bytes_out": 1, "cpu": 1, "log_dirs": (LogDir("/a", 1),)},
            {**dict.fromkeys(("disk", "bytes_in", "bytes_out", "cpu"), WHOLE | OPTIONAL), "log_dirs": EMPTY},
        )
    ],
    "ReplicaCounts": [
        Row(
            ReplicaCounts,
            {"ids": np.array([1], np.int32), "replicas": np.array([1]), "leaders": np.array([1])},
            {"ids": COLUMN, "replicas": COLUMN | {"[2^31]", "[-5]"}, "leaders": COLUMN | {"[2^31]", "[-5]"}},
        ),
        Row(ReplicaCounts.of, {"assignment": LAYOUT}, {"assignment": NOTHING}),
        Row(ReplicaCounts.empty().add, {"replicas": LAYOUT.replicas}, {"replicas": MATRIX}),
        Row(ReplicaCounts.empty().subtract, {"replicas": LAYOUT.replicas}, {"replicas": MATRIX}),
        Row(ReplicaCounts.of(LAYOUT).on, {"ids": np.array([1], np.int32)}, {"ids": COLUMN}),
    ],
    "Loads": [
        Row(
            _by_load,
            {"size": NONE_YET, "bytes_in": NONE_YET, "bytes_out": NONE_YET, "limits": {}},
            {"size": NOTHING, "bytes_in": NOTHING, "bytes_out": NOTHING, "limits": {"{}"}},
            Loads,
        ),
        Row(
            Loads.of,
            {"assignment": LAYOUT, "measured": [PartitionLoad("t", 0, 1)], "limits": {1: Limits()}, "out_per_in": 1.0},
            {"assignment": NOTHING, "measured": EMPTY, "limits": OPTIONAL | {"{}"}, "out_per_in": NUMBER},
        ),
    ],
    "LogDir": [
        Row(LogDir, {"path": "/a", "limit": 1, "used": 0}, {"path": TEXT, "limit": WHOLE, "used": WHOLE}),
    ],
    "Moves": [
        Row(
            _moves,
            {**CHANGED, "row": MOVES.row, "reason": MOVES.reason},
            dict.fromkeys((*CHANGED, "row", "reason"), NOTHING),
            Moves,
        )
    ],
    "PartitionLoad": [
        Row(
            PartitionLoad,
            {"topic": "t", "partition": 0, "size": 1, "bytes_in": 1, "bytes_out": 1},
            {
                "topic": TEXT,
                "partition": WHOLE,
                **dict.fromkeys(("size", "bytes_in", "bytes_out"), WHOLE | OPTIONAL),
            },
        )
    ],
    "WaveLimits": [
        Row(
            WaveLimits,
            {"moves_in": 1, "moves_out": 1, "bytes_in": 1, "bytes_out": 1},
            {
                "moves_in": ANY_WHOLE,
                "moves_out": ANY_WHOLE,
                "bytes_in": ANY_WHOLE | OPTIONAL,
                "bytes_out": ANY_WHOLE | OPTIONAL,
            },
        )
    ],
    "assign_consumers": [
        Row(
            assign_consumers,
            {
                "assignor": assignor,
                "members": {"c": {"topics": ["t"]}},
                "partitions_per_topic": {"t": 2},
                "partition_racks": {"t": [["a"], [None]]},
            },
            {
                "assignor": NOTHING,
                "members": {"{}"},
                "partitions_per_topic": {"{}", "{text: 1}"},
                "partition_racks": OPTIONAL | {"{}"},
            },
        )
        for assignor in ("range", "sticky")
    ],
    "extend_adminutils": [
        Row(
            extend_adminutils,
            {"brokers": BROKERS[:3], "existing": [[1, 2], [2, 3]], "added": 2, "rack_aware": None},
            {"brokers": NOTHING, "existing": MATRIX, "added": WHOLE, "rack_aware": FLAG | OPTIONAL},
        )
    ],
    "in_waves": [
        Row(
            in_waves,
            {"moves": MOVES, "in_sync": replicas_up(MOVES, BROKERS), "limits": None, "sizes": NONE_YET[: len(MOVES)]},
            {"moves": NOTHING, "in_sync": MATRIX, "limits": OPTIONAL, "sizes": OPTIONAL},
        )
    ],
    "infer_start": [
        Row(
            infer_start,
            {"brokers": BROKERS[:3], "assignment": [[1, 2], [2, 3]], "start_partition_id": 0, "rack_aware": None},
            {
                "brokers": NOTHING,
                "assignment": MATRIX,
                "start_partition_id": WHOLE,
                "rack_aware": FLAG | OPTIONAL,
            },
        )
    ],
    "key_skew": [
        Row(
            key_skew,
            {"keys": ["a"], "partition_counts": [1, 2]},
            {"keys": KEYS, "partition_counts": EMPTY | {"[1]", "{1: text}", "generator"}},
        )
    ],
    "partition_for_key": [
        Row(partition_for_key, {"key": "a", "partitions": 3}, {"key": TEXT | {"bytes"}, "partitions": WHOLE})
    ],
    "partitions_for_keys": [
        Row(partitions_for_keys, {"keys": ["a"], "partitions": 3}, {"keys": KEYS, "partitions": WHOLE})
    ],
    "place_adminutils": [
        Row(
            place_adminutils,
            {
                "brokers": BROKERS,
                "partitions": 2,
                "replication_factor": 2,
                "fixed_start_index": 0,
                "start_partition_id": 0,
                "rack_aware": None,
                "seed": None,
            },
            {
                "brokers": NOTHING,
                "partitions": WHOLE,
                "replication_factor": WHOLE,
                "fixed_start_index": WHOLE | OPTIONAL,
                "start_partition_id": WHOLE,
                "rack_aware": FLAG | OPTIONAL,
                "seed": ANY_WHOLE | OPTIONAL,
            },
        )
    ],
    "place_balanced": [
        Row(
            place_balanced,
            {
                "brokers": BROKERS,
                "partitions": 2,
                "replication_factor": 2,
                "current": None,
                "topic": "",
                "start_partition_id": 0,
            },
            {
                "brokers": NOTHING,
                "partitions": WHOLE,
                "replication_factor": WHOLE,
                "current": OPTIONAL,
                "topic": TEXT,
                "start_partition_id": WHOLE,
            },
        )
    ],
    "place_striped": [
        Row(
            place_striped,
            {"brokers": BROKERS, "partitions": 2, "replication_factor": 2, "seed": 0, "draw": None},
            {
                "brokers": NOTHING,
                "partitions": WHOLE,
                "replication_factor": WHOLE,
                "seed": ANY_WHOLE,
                "draw": OPTIONAL,
            },
        )
    ],
    "Replan": [
        Row(
            sound,
            {field.name: getattr(PLAN, field.name) for field in fields(PLAN)},
            {
                **{field.name: NOTHING for field in fields(PLAN)},
                "optimal": FLAG,
                "lower_bound": {"0", "np integer", "np byte"},
                "leader_changes": {"0"},  # there are none
                "unhealed": EMPTY,
                "loads": OPTIONAL,
            },
            Replan,
        )
    ],
    "Terms": [
        Row(
            _by_terms,
            {name: value for name, value in OPTIONS.items() if name != "assignment"},
            {name: may for name, may in MAY_BE.items() if name != "assignment"},
            Terms,
        )
    ],
    "replan": [Row(replan, OPTIONS, MAY_BE)],
    "replicas_up": [Row(replicas_up, {"moves": MOVES, "brokers": BROKERS}, {"moves": NOTHING, "brokers": EMPTY})],
    "verify": [Row(verify, {"plan": PLAN}, {"plan": NOTHING})],
    "verify_moves": [
        Row(
            verify_moves,
            {
                "change": Change(**CHANGED),
                "brokers": BROKERS,
                "exclude_topics": (),
                "exclude_brokers": (),
                "replication_factors": None,
                "keep_off": None,
                "in_sync": None,
                "partial": False,
            },
            {
                "change": NOTHING,
                "brokers": EMPTY,
                "exclude_topics": NAMES,
                "exclude_brokers": IDS,
                "replication_factors": OPTIONAL | {"{}", "{text: 1}"},
                "keep_off": OPTIONAL | {"{}", "{t: [1, 1]}"},
                "in_sync": OPTIONAL | MATRIX,
                "partial": FLAG,
            },
        )
    ],
}
ANSWERS = {
    "Balance", "LoadReport", "Move", "Unhealed", "Verification", "Violation", "Waves",
}  # fmt: skip
"""What functions answer with; nobody hands parts of them in."""

CASES = [(row, name) for rows in ROWS.values() for row in rows for name in row.right]
IDS_OF_CASES = [f"{getattr(row.of or row.call, '__qualname__', '')}-{name}" for row, name in CASES]
