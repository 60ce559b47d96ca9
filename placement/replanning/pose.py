"""Pose: work out from the layout, the brokers and the terms what may change and what must stay."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from placement.arrays import BoolArray, Int64Array, any_in_row, count_in_row
from placement.errors import InvalidReplicationFactorError
from placement.fleet import Fleet
from placement.model import NO_BROKER, Assignment, Int32Array
from placement.replanning.problem import Problem
from placement.replanning.replicas.drop import drop, drop_unsafe
from placement.replanning.window import levels
from placement.terms import Terms

_CELLS = 1 << 22


def pose(
    assignment: Assignment,
    fleet: Fleet,
    terms: Terms,
    home: Assignment | None,
    *,
    budget: int | None = None,
    weight: Int64Array | None = None,
    closed: Collection[int] = (),
) -> Problem:
    """Work out which rows are open and what must stay in them; ``closed`` ones stay as they are.

    With a budget, rows whose missing replicas it does not cover stay closed; ``weight``, shape ``(P,)``, is what a
    replica of each row takes of it, 1 where it is not given.

    Raises:
        InvalidReplicationFactorError: a partition must end with more replicas than brokers can take, or with fewer
            and no copy of it can be given up safely.
    """
    index = fleet.index_of(assignment.replicas)
    wanted = _factors(assignment, terms.replication_factors)
    changed = any_in_row(index >= fleet.present) | (wanted != assignment.replication_factor)
    is_open = changed if terms.mode == "heal" else np.ones(len(assignment), np.bool_)
    if terms.exclude_topics:
        is_open &= ~np.array([t in terms.exclude_topics for t in assignment.topics], np.bool_)[assignment.topic_index]
    is_open[list(closed)] = False
    short = np.where(is_open, _shortage(assignment, fleet, terms, index, wanted), 0)
    factor = wanted - short
    is_open &= ~_stuck(fleet, terms, index, factor, short)
    barred = _barred(assignment, fleet, terms)
    before = np.pad(np.cumsum(barred, axis=1, dtype=np.int64), ((0, 0), (1, 0)))
    closed = before[:, fleet.bounds[1:]] - before[:, fleet.bounds[:-1]]
    if budget is not None:
        is_open = _affordable(_without(index, assignment.topic_index, barred), fleet, factor, is_open, budget, weight)
    row = np.flatnonzero(is_open)
    origin = _widen(index[row], int(factor[row].max(initial=0)))
    counts = np.bincount(index[index != NO_BROKER], minlength=fleet.ids.size)[: fleet.present]
    hosts = np.where(origin < fleet.present, origin, NO_BROKER).astype(np.int32)
    if terms.mode == "rebalance":
        hosts = _without(hosts, assignment.topic_index[row], barred)
    hosts, stays = _without_unsafe(assignment, fleet, terms, row, wanted[row], hosts, counts)
    start = drop(fleet, hosts, factor[row], counts)
    _check_factors(fleet, factor[row], start)
    stays |= terms.mode == "heal"
    confined = (count_in_row(hosts != NO_BROKER) > factor[row]) & stays
    fixed = np.where(confined | ~stays, fleet.usable, 0)
    pinned = start >= fixed[:, None]
    only = np.where(confined[:, None], hosts, np.int32(NO_BROKER))
    opened = origin[origin != NO_BROKER]
    return Problem(
        fleet=fleet,
        row=row,
        topic=assignment.topic_index[row],
        factor=factor[row],
        origin=origin,
        home=_homes(assignment, fleet, row, home),
        start=start,
        pinned=pinned,
        level=_row_levels(
            fleet,
            factor[row],
            start,
            pinned,
            only,
            closed[assignment.topic_index[row]] if barred.size else None,
        ),
        confined=confined,
        hosts=only,
        short=short,
        stranded=_stranded(fleet, terms, origin, short[row]),
        closed=counts - np.bincount(opened[opened < fleet.present], minlength=fleet.present),
        layout=index,
        layout_topic=assignment.topic_index,
        barred=barred,
        closed_seats=closed,
    )


def _shortage(assignment: Assignment, fleet: Fleet, terms: Terms, index: Int32Array, wanted: Int64Array) -> Int64Array:
    """Replicas that each row must do without, as too few brokers can take them, int64, shape ``(P,)``.

    What somebody asks for is not cut down: that is an error, which :func:`_check_factors` raises.
    """
    if wanted.max(initial=0) <= fleet.usable:
        return np.zeros(wanted.size, np.int64)
    asked = np.array([t in terms.replication_factors for t in assignment.topics], np.bool_)[assignment.topic_index]
    held = count_in_row((index >= fleet.usable) & (index < fleet.present))
    return np.where(asked, 0, np.maximum(wanted - fleet.usable - held, 0))


def _stuck(fleet: Fleet, terms: Terms, index: Int32Array, factor: Int64Array, short: Int64Array) -> BoolArray:
    """Rows that are short and get nothing, bool, shape ``(P,)``.

    Every usable broker holds them already, or a replica would stay on a broker that is not among the brokers, of which
    Kafka would accept no replica list.
    """
    if not short.any():
        return np.zeros(short.size, np.bool_)
    left = count_in_row((index != NO_BROKER) & (index < fleet.present))
    known = count_in_row((index >= fleet.present) & (index < len(terms.brokers)))
    return (short > 0) & ((left >= factor) | (known < short))


def _stranded(fleet: Fleet, terms: Terms, origin: Int32Array, short: Int64Array) -> Int32Array:
    """The lost replicas that stay in the list of each row, shape of ``origin``: first those that still have data."""
    rank = np.where(fleet.draining[origin], 0, np.where(origin < len(terms.brokers), 1, 2))
    rank[(origin == NO_BROKER) | (origin < fleet.present)] = 3
    order = np.argsort(rank, axis=1, kind="stable")
    stays = np.arange(origin.shape[1]) < short[:, None]
    return np.where(stays, np.take_along_axis(origin, order, axis=1), np.int32(NO_BROKER))


def _barred(assignment: Assignment, fleet: Fleet, terms: Terms) -> BoolArray:
    """Which usable brokers each topic is kept off, bool, shape ``(topics, brokers)``; no rows where none is."""
    if not terms.keep_off:
        return np.zeros((0, fleet.ids.size), np.bool_)
    result = np.zeros((len(assignment.topics), fleet.ids.size), np.bool_)
    for topic, name in enumerate(assignment.topics):
        if name in terms.keep_off:
            result[topic, : fleet.usable] = np.isin(fleet.ids[: fleet.usable], sorted(terms.keep_off[name]))
    return result


def _without(replicas: Int32Array, topic: Int32Array, barred: BoolArray) -> Int32Array:
    """Replica lists, as broker indices, without the brokers that their topics are kept off."""
    if not barred.size:
        return replicas
    return np.where((replicas != NO_BROKER) & barred[topic[:, None], replicas], np.int32(NO_BROKER), replicas)


def _without_unsafe(
    assignment: Assignment,
    fleet: Fleet,
    terms: Terms,
    row: Int64Array,
    factor: Int64Array,
    hosts: Int32Array,
    load: Int64Array,
) -> tuple[Int32Array, BoolArray]:
    """Give up copies that are not in sync where a lower factor would cost one that is.

    Returns:
        The replicas left, and the rows that gave up copies on usable brokers, which must not come back.

    Raises:
        InvalidReplicationFactorError: no copy can be given up safely: none is in sync, or one that is has to leave
            its broker and would be replaced while one that is not is given up.
    """
    none = np.zeros(row.size, np.bool_)
    lower = np.flatnonzero(factor < assignment.replication_factor[row])
    if not lower.size:
        return hosts, none
    replicas = assignment.replicas[row[lower]]
    in_sync = _widen_flags(terms.in_sync_among(replicas, row[lower]), hosts.shape[1])
    safe = count_in_row(in_sync)
    before, wanted = hosts[lower], factor[lower]
    doubtful = (safe == 0) & (count_in_row(before != NO_BROKER) > wanted)
    _refuse(assignment, row[lower], doubtful, "has no replica in sync")
    after = drop_unsafe(fleet, before, in_sync, np.maximum(wanted - safe, 0), load)
    given_up = any_in_row((after != before) & (before < fleet.usable))
    replaced = given_up & (count_in_row(after != NO_BROKER) < wanted)
    _refuse(assignment, row[lower], replaced, "would lose a replica that is in sync and keep one that is not")
    hosts = hosts.copy()
    hosts[lower] = after
    none[lower] = given_up
    return hosts, none


def _refuse(assignment: Assignment, row: Int64Array, wrong: BoolArray, problem: str) -> None:
    """Refuse to lower a replication factor where it would cost data."""
    if wrong.any():
        at = int(row[wrong.argmax()])
        topic, factor = assignment.topics[assignment.topic_index[at]], len(assignment.replicas_of(at))
        raise InvalidReplicationFactorError(
            f"partition {topic}-{assignment.partition[at]} {problem}: its replication factor of {factor} cannot be "
            "lowered until its replicas have caught up",
            replication_factor=factor,
        )


def _affordable(
    index: Int32Array, fleet: Fleet, factor: Int64Array, is_open: BoolArray, budget: int, weight: Int64Array | None
) -> BoolArray:
    """Open rows whose missing replicas fit into the budget, those with the fewest replicas left first."""
    left = ((index != NO_BROKER) & (index < fleet.present)).sum(axis=1)
    missing = np.where(is_open, np.maximum(factor - left, 0), 0)
    needy = np.flatnonzero(missing)
    order = needy[np.argsort(left[needy], kind="stable")]
    cost = missing if weight is None else missing * weight
    result = is_open.copy()
    result[order[np.cumsum(cost[order]) > budget]] = False
    return result


def _factors(assignment: Assignment, replication_factors: Mapping[str, int]) -> Int64Array:
    factor = assignment.replication_factor.astype(np.int64)
    if replication_factors:
        wanted = np.array([replication_factors.get(t, 0) for t in assignment.topics], np.int64)
        asked = np.array([t in replication_factors for t in assignment.topics], np.bool_)
        factor = np.where(asked[assignment.topic_index], wanted[assignment.topic_index], factor)
        if factor.min(initial=1) < 1:
            raise InvalidReplicationFactorError(
                f"replication factor {factor.min()} must be at least 1", replication_factor=int(factor.min())
            )
    return factor


def _check_factors(fleet: Fleet, factor: Int64Array, start: Int32Array) -> None:
    if not factor.size:
        return
    available = fleet.usable + (start >= fleet.usable).sum(axis=1)
    wrong = np.flatnonzero(factor > available)
    if wrong.size:
        value, brokers = int(factor[wrong[0]]), int(available[wrong[0]])
        raise InvalidReplicationFactorError(
            f"replication factor {value} is above the {brokers} usable brokers",
            replication_factor=value,
            brokers=brokers,
        )


def _widen(index: Int32Array, width: int) -> Int32Array:
    if index.shape[1] >= width:
        return index
    padded = np.full((index.shape[0], width), NO_BROKER, np.int32)
    padded[:, : index.shape[1]] = index
    return padded


def _widen_flags(flags: BoolArray, width: int) -> BoolArray:
    return np.pad(flags, ((0, 0), (0, width - flags.shape[1])))


def _row_levels(
    fleet: Fleet, factor: Int64Array, start: Int32Array, pinned: BoolArray, only: Int32Array, barred: Int64Array | None
) -> Int64Array:
    """Window level of each row.

    ``only`` has the brokers of rows that are confined to them, ``barred`` how many brokers of each rack a row is kept
    off.
    """
    racks = fleet.rack_size.size
    none = np.zeros((1, racks), np.int64)
    result = np.zeros(factor.size, np.int64)
    for value in np.unique(factor).tolist():
        result[factor == value] = levels(np.array([value]), fleet.rack_size, none)[0]
    confined = (only != NO_BROKER).any(axis=1)
    special = pinned.any(axis=1) | confined
    if barred is not None:
        special |= barred.any(axis=1)
    special = np.flatnonzero(special)
    step = max(1, _CELLS // racks)
    for first in range(0, special.size, step):
        rows = special[first : first + step]
        replicas = start[rows]
        stay = _rack_counts(fleet, np.where(pinned[rows], replicas, NO_BROKER), racks)
        held = _rack_counts(fleet, np.where(replicas >= fleet.usable, replicas, NO_BROKER), racks)
        hosts = _rack_counts(fleet, only[rows], racks)
        open_to = fleet.rack_size if barred is None else fleet.rack_size - barred[rows]
        size = np.where(confined[rows][:, None], hosts, open_to + held)
        result[rows] = levels(factor[rows], size, stay)
    return result


def _rack_counts(fleet: Fleet, replicas: Int32Array, racks: int) -> Int64Array:
    row, slot = np.nonzero(replicas != NO_BROKER)
    cell = row * racks + fleet.rack[replicas[row, slot]]
    return np.bincount(cell, minlength=replicas.shape[0] * racks).reshape(-1, racks)


def _homes(assignment: Assignment, fleet: Fleet, row: Int64Array, home: Assignment | None) -> Int32Array:
    """The usable brokers that held each open row according to ``home``, where it is known there."""
    if home is None or not len(home):
        return np.full((row.size, 1), NO_BROKER, np.int32)
    rank = {name: i for i, name in enumerate(home.topics)}
    recode = np.array([rank.get(name, -1) for name in assignment.topics], np.int64)
    key = recode[assignment.topic_index[row]] << 32 | assignment.partition[row].astype(np.int64)
    keys = home.topic_index.astype(np.int64) << 32 | home.partition.astype(np.int64)
    place = np.minimum(np.searchsorted(keys, key), keys.size - 1)
    known = np.isin(home.replicas, fleet.ids[: fleet.usable])
    usable = fleet.index_of(np.where(known, home.replicas, NO_BROKER).astype(np.int32))
    return np.where((keys[place] == key)[:, None], usable[place], NO_BROKER).astype(np.int32)
