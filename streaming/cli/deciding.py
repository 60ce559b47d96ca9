"""Commands by which people decide: on proposals, on what was planned, on clusters that a fault stopped."""

from __future__ import annotations

from collections.abc import Sequence
from getpass import getuser
from typing import Final

import click

from streaming.cli.job import hand_over, make_event, wait_options
from streaming.cli.main import conf_option
from streaming.config import load_config
from streaming.errors import InputError
from streaming.record.version import PlanVersion, fate_of_proposal, proposal_in

_NO_PROPOSAL: Final = {
    "not_required": "it takes effect without",
    "approved": "it is in effect, approved",
    "rejected": "it records a rejection",
    "reported": "it is a report, and changes nothing",
}


def _decide(
    event_type: str, cluster: str, version: int, digest: str | None, conf: str | None, patience: float | None
) -> None:
    """Hand over what somebody decided about a version; an approval or rejection that the job would refuse is none."""
    config = load_config(conf)
    from streaming.history.tables import History

    history = History(config.tables.root)
    plan = history.version(history.cluster(cluster), version)
    if digest is not None:
        _check_waits(plan, history.headlines(cluster), digest)
    given = {"cluster_id": cluster, "plan_version": str(version), "digest": plan.digest, "by": getuser()}
    hand_over(
        config, make_event(event_type, given) + b"\n", f"{event_type} of version {version} of {cluster}", patience
    )


def _check_waits(plan: PlanVersion, versions: Sequence[PlanVersion], digest: str) -> None:
    """Refuse at once what the job would refuse later.

    Raises:
        InputError: the version does not wait for approval, or the digest is another plan's.
    """
    name = f"version {plan.plan_version} of {plan.cluster_id}"
    if not plan.waits_for_approval:
        raise InputError(f"{name} does not wait for approval: {_NO_PROPOSAL[plan.approval]}", path=name)
    waiting = proposal_in(versions)
    if waiting is None or waiting.plan_version != plan.plan_version:
        raise InputError(f"{name} does not wait for approval: {fate_of_proposal(plan, versions)}", path=name)
    if digest != plan.digest:
        raise InputError(
            f"{digest!r} is not the digest of {name}: {plan.digest}; look at that plan again before you decide",
            path=name,
        )


_cluster = click.argument("cluster")
_version = click.argument("version", type=click.IntRange(min=1))
_digest = click.option("--digest", required=True, help="The digest that `show` prints: you decide on that plan only.")


@click.command()
@_cluster
@_version
@_digest
@wait_options
@conf_option
def approve(cluster: str, version: int, digest: str, patience: float | None, conf: str | None) -> None:
    """Let a proposed plan take effect. What does not wait for approval, or has another digest, is refused at once.

    \b
    Examples:
      replica-planner approve east 6 --digest 83bb0c0536e25f9a...    the whole digest, as show prints it
      replica-planner approve east 6 --digest 83bb0c0536e25f9a... --wait
    """
    _decide("plan_approved", cluster, version, digest, conf, patience)


@click.command()
@_cluster
@_version
@_digest
@wait_options
@conf_option
def reject(cluster: str, version: int, digest: str, patience: float | None, conf: str | None) -> None:
    """Put on record that a proposed plan must not take effect.

    \b
    Example:
      replica-planner reject east 6 --digest 83bb0c0536e25f9a...    the whole digest, as show prints it
    """
    _decide("plan_rejected", cluster, version, digest, conf, patience)


@click.command()
@_cluster
@_version
@wait_options
@conf_option
def rollback(cluster: str, version: int, patience: float | None, conf: str | None) -> None:
    """Undo the moves of a version by a new one.

    \b
    Examples:
      replica-planner rollback east 6
      replica-planner rollback east 6 --wait
    """
    _decide("plan_rolled_back", cluster, version, None, conf, patience)


@click.command()
@_cluster
@conf_option
def resume(cluster: str, conf: str | None) -> None:
    """Plan a stopped cluster again: resume it and submit the held events again.

    \b
    Example:
      replica-planner resume east
    """
    config = load_config(conf)
    from streaming.history.tables import History
    from streaming.record.rows import are_held

    history = History(config.tables.root)
    name = history.cluster(cluster)
    quarantine = history.quarantine(name)
    held = quarantine.filter(are_held(quarantine))["payload"].to_pylist()
    # What was handed over by an earlier resume is known by now, and comes out as a duplicate.
    lines = [make_event("cluster_resumed", {"cluster_id": name}), *dict.fromkeys(payload.encode() for payload in held)]
    said = f"{name} is to be resumed, with {len(lines) - 1} held events"
    hand_over(config, b"".join(line + b"\n" for line in lines), said)
