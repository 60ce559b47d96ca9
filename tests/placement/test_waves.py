"""Waves: limits kept, nothing twice, endangered partitions first, the bound met."""

from __future__ import annotations

import json

import numpy as np
import pytest

from placement import Broker, WaveLimits, Waves, in_waves, replan, replicas_up
from placement.errors import InvalidLimitError
from placement.plan import REASONS, Moves
from placement.waves.colouring import colour_edges
from tests.clusters import even_layout, in_state, racked, random_case


def _moves(rows: list[tuple[list[int], list[int]]]) -> Moves:
    count = len(rows)
    return Moves(
        ("t",),
        np.arange(count),
        np.zeros(count, np.int32),
        np.arange(count, dtype=np.int32),
        np.array([before for before, _ in rows], np.int32),
        np.array([after for _, after in rows], np.int32),
        np.zeros(count, np.uint8),
    )


def _check(waves: Waves, in_sync: np.ndarray, limits: WaveLimits, sizes: np.ndarray | None, hint: str) -> None:
    """Every limit holds in every wave, and each partition that can be copied is in one."""
    fresh = waves.moves.new_replicas()
    assert ((waves.wave > 0) == (in_sync >= 0).any(axis=1)).all(), hint
    for number in range(1, waves.count + 1):
        received: dict[int, list[int]] = {}
        sent: dict[int, list[int]] = {}
        for i in np.flatnonzero(waves.wave == number).tolist():
            synced = set(in_sync[i].tolist()) - {-1}
            server = next((b for b in waves.moves.before[i].tolist() if b in synced), min(synced))
            size = 0 if sizes is None else int(sizes[i])
            for broker in waves.moves.after[i][fresh[i]].tolist():
                received.setdefault(broker, []).append(size)
            if fresh[i].any():
                sent.setdefault(server, []).append(size * int(fresh[i].sum()))
        for used, most, most_bytes in ((received, limits.moves_in, limits.bytes_in), (sent, 10**9, limits.bytes_out)):
            assert all(len(v) <= most for v in used.values()), hint
            assert all(most_bytes is None or len(v) == 1 or sum(v) <= most_bytes for v in used.values()), hint


def test_a_worked_example() -> None:
    moves = _moves([([1], [3]), ([2], [3]), ([1], [4])])
    waves = in_waves(moves, moves.before, WaveLimits(1, 1))
    assert (waves.count, waves.bound) == (2, 2)
    assert waves.wave.tolist() == [1, 2, 2]
    assert json.loads(waves.to_json(1)) == {
        "version": 1,
        "partitions": [{"topic": "t", "partition": 0, "replicas": [3], "log_dirs": ["any"]}],
    }


def test_the_most_endangered_partition_goes_first() -> None:
    moves = _moves([([1, 2, 9], [1, 2, 5]), ([1, 8, 9], [1, 3, 5])])
    in_sync = np.array([[1, 2, -1], [1, -1, -1]], np.int32)
    assert in_waves(moves, in_sync, WaveLimits(1, 2)).wave.tolist() == [2, 1]


def test_a_partition_without_a_replica_in_sync_is_left_out() -> None:
    moves = _moves([([8, 9], [1, 2]), ([1, 9], [1, 2])])
    waves = in_waves(moves, np.array([[-1, -1], [1, -1]], np.int32))
    assert waves.wave.tolist() == [0, 1]
    assert [m.partition for m in waves.left_out] == [0]


def test_a_move_above_every_limit_travels_alone() -> None:
    moves = _moves([([1], [2]), ([1], [3]), ([4], [2])])
    waves = in_waves(moves, moves.before, WaveLimits(9, 9, 10, 10), sizes=np.array([50, 4, 4]))
    assert waves.wave[0] not in (waves.wave[1], waves.wave[2])


def test_random_plans_keep_every_limit() -> None:
    planned = 0
    for seed in range(120):
        case = random_case(seed)
        rng = np.random.default_rng(seed)
        plan = replan(case.layout, case.brokers, mode="rebalance")
        if not len(plan.moves):
            continue
        in_sync = replicas_up(plan.moves, case.brokers)
        sizes = rng.integers(1, 100, len(plan.moves))
        limits = WaveLimits(int(rng.integers(1, 4)), 99, int(rng.integers(50, 300)), int(rng.integers(50, 300)))
        waves = in_waves(plan.moves, in_sync, limits, sizes=sizes)
        _check(waves, in_sync, limits, sizes, f"seed {seed}")
        assert waves.count >= waves.bound, f"seed {seed}"
        planned += 1
    assert planned > 60


@pytest.mark.parametrize("limit", [1, 5])
def test_large_plans_are_within_four_percent_of_the_bound(limit: int) -> None:
    brokers = racked(120, 6)
    layout = even_layout(120, 6, 12_000, 3)
    events = {
        "drained": (in_state(brokers, range(0, 120, 10), "draining"), "heal"),
        "lost": (in_state(brokers, [5], "dead"), "heal"),
        "joined": ([*brokers, *(Broker(500 + i, f"r{i % 6:03d}") for i in range(6))], "rebalance"),
    }
    for name, (now, mode) in events.items():
        plan = replan(layout, now, mode=mode)  # type: ignore[arg-type]
        in_sync = replicas_up(plan.moves, now)
        waves = in_waves(plan.moves, in_sync, WaveLimits(limit, limit))
        _check(waves, in_sync, WaveLimits(limit, limit), None, name)
        assert waves.bound <= waves.count <= 1.04 * waves.bound, name


def test_single_moves_take_no_more_waves_than_the_bound() -> None:
    for seed in range(300):
        rng = np.random.default_rng(seed)
        count, brokers = int(rng.integers(1, 60)), int(rng.integers(2, 9))
        moves = _moves([([a], [brokers + b]) for a, b in rng.integers(0, brokers, (count, 2)).tolist()])
        limits = WaveLimits(int(rng.integers(1, 4)), int(rng.integers(1, 4)))
        waves = in_waves(moves, moves.before, limits)
        _check(waves, moves.before, limits, None, f"seed {seed}")
        for number in range(1, waves.count + 1):
            sent = waves.of(number).before[:, 0]
            assert np.bincount(sent).max(initial=0) <= limits.moves_out, f"seed {seed}"
        assert waves.count == waves.bound, f"seed {seed}"


def test_a_chain_of_colours_is_swapped() -> None:
    # After three edges with two colours, 0 -> 5 and 1 -> 4 have no colour in common with what is left at their ends.
    edges = [(0, 4), (1, 5), (1, 4), (0, 5)]
    colours = colour_edges(edges, 2)
    for end in (0, 1):
        for broker in {edge[end] for edge in edges}:
            used = [c for edge, c in zip(edges, colours, strict=True) if edge[end] == broker]
            assert len(set(used)) == len(used)


def test_any_number_of_finished_waves_leaves_a_sound_layout() -> None:
    brokers = in_state(racked(12, 3), [4], "draining")
    layout = even_layout(12, 3, 240, 3)
    plan = replan(layout, brokers)
    waves = in_waves(plan.moves, replicas_up(plan.moves, brokers), WaveLimits(2, 2))
    for number in range(1, waves.count + 1):
        wave = waves.of(number)
        layout = layout.with_rows(wave.row, wave.after)
        racks = np.sort(layout.replicas % 3, axis=1)
        assert (racks == [0, 1, 2]).all(), f"wave {number}"
    assert layout == plan.assignment


@pytest.mark.parametrize("name", ["moves_in", "moves_out", "bytes_in", "bytes_out"])
def test_a_limit_below_one_is_refused(name: str) -> None:
    with pytest.raises(InvalidLimitError, match=f"{name} is 0: it must be at least 1"):
        WaveLimits(**{name: 0})


def test_reasons_survive_the_cut() -> None:
    moves = _moves([([1], [3]), ([2], [3])])
    assert {m.reason for m in in_waves(moves, moves.before).of(1)} == {REASONS[0]}
