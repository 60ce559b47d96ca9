"""Commands that read the tables. They need no JVM."""

from __future__ import annotations

from typing import Any, Final, get_args

import click
import numpy as np

from placement.model import NO_BROKER
from streaming.cli.main import conf_option, json_option
from streaming.cli.screens.render import plan_table, print_json, print_line, print_table, version_numbers
from streaming.cli.screens.weights import broker_loads, bytes_of_moves, load_table
from streaming.config import load_config
from streaming.events import Outcome
from streaming.history.actual import Actual
from streaming.history.health import counts, topic_health
from streaming.history.tables import History, Standing, event_rows, parse_as_of, some
from streaming.history.unhealed import unhealed_rows
from streaming.planning.decisions.decision import moment_text
from streaming.planning.state import ClusterState
from streaming.record.moves import canonical, rows_with_dirs
from streaming.record.version import PlanVersion

MAX_UNHEALED: Final = 20
"""Partitions that are listed one by one; ``--json`` has all."""

Bytes = dict[tuple[str, int], int | None]
"""Bytes that moves copy, by topic and partition."""

_cluster_option = click.option("--cluster", metavar="C", help="The cluster; needed where there are several.")
_as_of = click.option("--as-of", metavar="VERSION|TIME", help="A plan version, or a time such as 2026-11-19T10:00:00Z.")


def _history(conf: str | None) -> History:
    return History(load_config(conf).tables.root)


@click.command()
@_cluster_option
@click.option("--all", "everything", is_flag=True, help="Also versions that only record leaders and ISRs.")
@conf_option
@json_option
def plans(cluster: str | None, everything: bool, conf: str | None, as_json: bool) -> None:
    """List plan versions, newest last, and how far those are that somebody carries out.

    Versions that only record who leads and who is in sync are counted; --all lists them too, and --json always does.

    \b
    Examples:
      replica-planner plans
      replica-planner plans --all
      replica-planner plans --cluster east --json
    """
    history = _history(conf)
    name = history.cluster(cluster) if cluster else None
    found, standings = history.headlines(name), history.standings(name)
    if as_json:
        print_json([_summary(v, standings.get((v.cluster_id, v.plan_version))) for v in found])
        return
    shown = found if everything else [version for version in found if not version.only_observes]
    print_table(plan_table(shown, standings))
    if hidden := len(found) - len(shown):
        versions = "1 version that only records" if hidden == 1 else f"{hidden} versions that only record"
        click.echo(f"and {versions} leaders and ISRs: --all lists them", err=True)


def _summary(version: PlanVersion, standing: Standing | None) -> dict[str, Any]:
    return {
        "cluster_id": version.cluster_id,
        "plan_version": version.plan_version,
        "base_version": version.base_version,
        "created_at": version.created_at,
        "kind": version.kind,
        "approval": version.approval,
        "progress": standing,
        "cause": version.cause,
        **version_numbers(version),
        "digest": version.digest,
    }


@click.command()
@click.argument("cluster")
@click.argument("version", type=click.IntRange(min=1))
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "kafka-json", "rollback-json", "summary-json"]),
    default="table",
    show_default=True,
)
@click.option(
    "--even-if-not-approved", "forced", is_flag=True, help="kafka-json also of what is not to be carried out."
)
@conf_option
@json_option
def show(cluster: str, version: int, form: str, forced: bool, conf: str | None, as_json: bool) -> None:
    """Show one plan version: what moves, why, and what it brings.

    kafka-json is there for what `apply` would carry out: not for a version that waits for approval, was rejected or
    superseded, or only records what is.

    \b
    Examples:
      replica-planner show east 4
      replica-planner show east 4 --format kafka-json > reassignment.json
    """
    history = _history(conf)
    plan = history.version(history.cluster(cluster), version)
    standing = history.standings(plan.cluster_id).get((plan.cluster_id, version))
    if form == "kafka-json" and not forced:
        _check_carried_out(history, plan)
    if form in ("kafka-json", "rollback-json"):
        click.echo(_reassignment(plan, after=form == "kafka-json"))
    elif form == "summary-json":
        print_json(_summary(plan, standing))
    elif as_json:
        moves = {"moves": _moves(plan, bytes_of_moves(history, plan))}
        print_json(_summary(plan, standing) | moves | {"unhealed": _unhealed(history, plan)})
    else:
        _show_table(plan, standing, bytes_of_moves(history, plan))
        _print_unhealed(_unhealed(history, plan))


def _unhealed(history: History, plan: PlanVersion) -> list[dict[str, Any]]:
    """What a version that could have healed left as it was."""
    if not plan.means.may_heal:
        return []
    return unhealed_rows(history.state(plan.cluster_id, plan.plan_version), plan.known_policy)


def _check_carried_out(history: History, plan: PlanVersion) -> None:
    from streaming.apply.journal.recorded import read_tasks
    from streaming.errors import ApplyError

    try:
        read_tasks(history, plan.cluster_id, plan.plan_version)
    except ApplyError as error:
        raise ApplyError(
            f"{error}; --even-if-not-approved prints it all the same",
            cluster_id=plan.cluster_id,
            plan_version=plan.plan_version,
        ) from error


def _moves(plan: PlanVersion, weights: Bytes) -> list[dict[str, Any]]:
    """The moves; with the bytes that they copy where loads were known then."""
    return [
        {"topic": topic, "partition": partition, "before": before, "after": after, "reason": reason}
        | ({"bytes": weights.get((topic, partition))} if weights else {})
        for topic, partition, before, after, reason in canonical(plan.moves)
    ]


def _reassignment(plan: PlanVersion, *, after: bool) -> str:
    """Kafka's reassignment JSON; partitions that a topic's creation or deletion brought are no reassignment back."""
    from placement.kafka.reassignment_json import reassignment_json, reassignment_with_dirs_json

    if after and any(block.log_dirs for block in plan.moves):
        return reassignment_with_dirs_json(rows_with_dirs(plan.moves))

    rows = [
        (topic, partition, new if after else old)
        for topic, partition, old, new, _ in canonical(plan.moves)
        if (new if after else old)
    ]
    return reassignment_json(rows)


def _show_table(plan: PlanVersion, standing: Standing | None, weights: Bytes) -> None:
    print_line(f"{plan.cluster_id} version {plan.plan_version}: {plan.cause}")
    print_line(f"kind {plan.kind}, approval {plan.approval}, planned from version {plan.base_version}")
    if standing is not None:
        click.echo(f"carried out: {standing}, by the report of {moment_text(standing.since)}")
    click.echo(f"digest {plan.digest}")
    for name, value in version_numbers(plan).items():
        print_line(f"  {name.replace('_', ' ')}: {value}")
    for broker in plan.broker_changes:
        print_line(f"broker {broker.broker_id}: {broker.state}, rack {broker.rack}, capacity {broker.capacity:g}")
    header = ["topic", "partition", "before", "after", "reason", *(["bytes"] if weights else [])]
    rows = [
        [_ids(move[name]) if name in ("before", "after") else _text(move[name]) for name in header]
        for move in _moves(plan, weights)
    ]
    if rows:
        print_table((header, rows))


def _ids(replicas: list[int]) -> str:
    return ",".join(map(str, replicas)) or "-"


@click.command()
@click.argument("cluster", required=False)
@click.option("--cluster", "named", metavar="C", help="The cluster; needed where there are several.")
@_as_of
@conf_option
@json_option
def status(cluster: str | None, named: str | None, as_of: str | None, conf: str | None, as_json: bool) -> None:
    """Topics, brokers and load of a cluster, now or as of a version or time.

    Where loads were observed, brokers are shown with bytes, traffic and CPU, and how much that is of their shares.

    \b
    Examples:
      replica-planner status
      replica-planner status east --as-of 3
      replica-planner status east --as-of 2026-11-19T10:00:00Z --json
    """
    config = load_config(conf)
    history = History(config.tables.root)
    moment = parse_as_of(as_of) if as_of else None
    actual = history.actual(history.cluster(cluster or named), moment)
    state = actual.planned
    policy = config.policy_for(state.cluster_id)
    brokers, topics = _broker_rows(actual), _topic_rows(actual.state)
    loads = broker_loads(history, actual.state, policy, moment)
    health = counts(actual.state, policy.min_insync_replicas)
    unhealed = unhealed_rows(state, policy)
    if as_json:
        document = {
            "cluster_id": state.cluster_id,
            "plan_version": state.version,
            "stopped": state.stopped or None,
            "waiting": {"partitions": len(actual.waiting), "versions": actual.versions},
            "partitions": health,
            "unhealed": unhealed,
            "brokers": brokers,
            "loads": loads,
            "topics": topics,
        }
        print_json(document)
        return
    print_line(f"{state.cluster_id} at version {state.version}")
    if state.stopped:
        print_line(f"{state.stopped}; once that is fixed: replica-planner resume {state.cluster_id}")
    click.echo("partitions: " + ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in health.items()))
    if actual.waiting:
        print_line(_waiting_line(actual))
    else:
        brokers = [{name: value for name, value in row.items() if name not in _PLANNED} for row in brokers]
    for rows in (brokers, topics):
        if rows:
            print_table((list(rows[0]), [[_text(value) for value in row.values()] for row in rows]))
    if loads:
        print_table(load_table(loads))
    _print_unhealed(unhealed)
    if state.proposal is not None:
        print_line(f"version {state.proposal.plan_version} waits for approval: {state.proposal.cause}")


def _print_unhealed(rows: list[dict[str, Any]]) -> None:
    """The first partitions that wait to be healed, and how many more there are."""
    if rows:
        click.echo(f"not healed: {len(rows)} partition{'s' if len(rows) > 1 else ''}")
        shown = [{**row, "replicas": _ids(row["replicas"]), "lost": _ids(row["lost"])} for row in rows[:MAX_UNHEALED]]
        print_table((list(shown[0]), [[_text(value) for value in row.values()] for row in shown]))
    if len(rows) > MAX_UNHEALED:
        click.echo(f"and {len(rows) - MAX_UNHEALED} more: --json lists them")


_PLANNED: Final = ("planned_replicas", "planned_leaders")


def _waiting_line(actual: Actual) -> str:
    count, versions = len(actual.waiting), actual.versions
    what = "1 partition is" if count == 1 else f"{count} partitions are"
    return f"{what} not where planned: version{'s' if len(versions) > 1 else ''} {some(list(map(str, versions)))}"


def _text(value: Any) -> str:
    return "-" if value is None else str(value)


def _broker_rows(actual: Actual) -> list[dict[str, Any]]:
    """What brokers hold, and what they will once all plans are carried out."""
    members = actual.state.members()
    ids = np.array([b.broker_id for b in members], np.int32)
    counted = (actual.state.counts, actual.planned.counts)
    there, then = (np.stack([counts.replicas_on(ids), counts.leaders_on(ids)], axis=1) for counts in counted)
    return [
        {
            "broker": broker.broker_id,
            "rack": broker.rack,
            "state": broker.state,
            "capacity": broker.capacity,
            "replicas": replicas,
            "leaders": leaders,
            **dict(zip(_PLANNED, after, strict=True)),
            "deadline": broker.deadline.isoformat().replace("+00:00", "Z") if broker.deadline else None,
        }
        for broker, (replicas, leaders), after in zip(members, there.tolist(), then.tolist(), strict=True)
    ]


def _topic_rows(state: ClusterState) -> list[dict[str, Any]]:
    return [
        {
            "topic": name,
            "partitions": int(layout.partitions.size),
            "replication_factor": int((layout.replicas != NO_BROKER).sum(axis=1).max()),
            "strategy": layout.strategy or None,
        }
        for name, layout in sorted(state.topics.items())
    ]


@click.command()
@click.option("--topic", metavar="T", help="One topic; without it, all of them.")
@_cluster_option
@_as_of
@conf_option
@json_option
def describe(topic: str | None, cluster: str | None, as_of: str | None, conf: str | None, as_json: bool) -> None:
    """Print what kafka-topics --describe prints: leader, replicas and in-sync replicas of each partition.

    Where a plan is not carried out, by progress events and observations, the line goes on with the replicas that are
    planned, and the plan's version.

    \b
    Example:
      replica-planner describe --topic orders
    """
    history = _history(conf)
    actual = history.actual(history.cluster(cluster), parse_as_of(as_of) if as_of else None)
    state = actual.state
    if topic is not None and topic not in state.topics:
        from streaming.errors import HistoryError

        listed = some(sorted(state.topics))
        raise HistoryError(
            f"cluster {state.cluster_id} has no topic {topic!r} at version {state.version}: there are: {listed}",
            path=history.root,
        )
    names = [topic] if topic is not None else sorted(state.topics)
    described = {name: _describe(actual, name) for name in names}
    if as_json:
        print_json(described)
        return
    lines = []
    for name, partitions in described.items():
        factor = max(len(p["replicas"]) for p in partitions)
        lines.append(f"Topic: {name}\tPartitionCount: {len(partitions)}\tReplicationFactor: {factor}\tConfigs: ")
        for p in partitions:
            leader = "none" if p["leader"] is None else p["leader"]
            replicas, isr = (",".join(map(str, p[key])) for key in ("replicas", "isr"))
            planned = f"\tPlanned: {_ids(p['planned'])}\tVersion: {p['plan_version']}" if p["plan_version"] else ""
            found = f"\tLeader: {leader}\tReplicas: {replicas}\tIsr: {isr}"
            lines.append(f"\tTopic: {name}\tPartition: {p['partition']}{found}{planned}")
    if lines:
        click.echo("\n".join(lines))


def _describe(actual: Actual, topic: str) -> list[dict[str, Any]]:
    """Leader and ISR as they were observed, or as they are to be expected; what is planned, where it is not done."""
    health, replicas = topic_health(actual.state, topic, 1), actual.state.topics[topic].replicas
    rows = [
        {
            "partition": partition,
            "leader": None if leader == NO_BROKER else leader,
            "replicas": row[row != NO_BROKER].tolist(),
            "isr": row[in_sync].tolist(),
            "planned": None,
            "plan_version": None,
        }
        for partition, leader, row, in_sync in zip(
            health.partitions.tolist(), health.leader.tolist(), replicas, health.in_sync, strict=True
        )
    ]
    for row in rows:
        if waits := actual.waiting.get((topic, row["partition"])):
            row |= {"planned": waits.replicas, "plan_version": waits.plan_version}
    return rows


@click.command()
@_cluster_option
@click.option("--outcome", type=click.Choice(get_args(Outcome)), help="Only events with this outcome.")
@conf_option
@json_option
def events(cluster: str | None, outcome: str | None, conf: str | None, as_json: bool) -> None:
    """List every event received and what became of it.

    \b
    Example:
      replica-planner events --outcome rejected
    """
    history = _history(conf)
    name = history.cluster(cluster) if cluster else None
    rows = [
        row
        for row in event_rows(history.versions(name), history.quarantine(name))
        if outcome is None or row["outcome"] == outcome
    ]
    if as_json:
        print_json(rows)
        return
    shown = ("place", "cluster_id", "event_id", "type", "outcome", "plan_version", "reason")
    print_table((list(shown), [[_text(row[name]) for name in shown] for row in rows]))
