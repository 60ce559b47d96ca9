"""``verify``: a plan in files against its cluster, or the whole journal against the planner."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from streaming.cli.main import conf_option, json_option
from streaming.cli.working import working

if TYPE_CHECKING:
    from streaming.audit.journal import Verified


@click.command()
@click.option("--cluster", metavar="C", help="Verify this cluster's journal only.")
@click.option("--seal", "seals", metavar="C:VERSION:SEAL", multiple=True, help="A seal that you kept elsewhere.")
@click.option("--plan", "plan_file", metavar="PLAN.json", help="Offline: the partitions that change.")
@click.option("--current", "current_file", metavar="CURRENT.json", help="Offline: the layout now.")
@click.option("--brokers", "brokers_file", metavar="B.json", help="Offline: the cluster's brokers.")
@click.option("--partial", is_flag=True, help="Offline: the plan had a budget, so what was lost may stay so.")
@conf_option
@json_option
def verify(
    cluster: str | None,
    seals: tuple[str, ...],
    plan_file: str | None,
    current_file: str | None,
    brokers_file: str | None,
    partial: bool,
    conf: str | None,
    as_json: bool,
) -> None:
    """Derive every plan of the journal again from its recorded events and policy; exit code 1 where one differs.

    Digest, seal and moves of each version are compared, each plan is checked by the independent verifier, and the
    tables brokers and assignments are compared with the journal. With --plan: check one plan in files, ours or
    anyone's, without any tables.

    \b
    Examples:
      replica-planner verify
      replica-planner verify --cluster east --json
      replica-planner verify --plan PLAN.json --current CURRENT.json --brokers B.json
    """
    files = {"--plan": plan_file, "--current": current_file, "--brokers": brokers_file}
    missing = [name for name, file in files.items() if file is None]
    if len(missing) == len(files):
        _verify_journal(cluster, seals, conf, as_json=as_json)
    elif missing:
        raise click.UsageError(f"{missing[0]} is missing: a plan in files needs --plan, --current and --brokers")
    else:
        from streaming.cli.offline import check_plan

        check_plan(str(plan_file), str(current_file), str(brokers_file), partial=partial, as_json=as_json)


def _kept(text: str) -> tuple[str, int, str]:
    cluster, version, seal = ("", *text.rsplit(":", 2))[-3:]
    if not cluster or not version.isdecimal() or not seal:
        raise click.UsageError(f"--seal {text}: this is not CLUSTER:VERSION:SEAL, as `verify --json` prints it")
    return cluster, int(version), seal


def _verify_journal(cluster: str | None, seals: Sequence[str], conf: str | None, *, as_json: bool) -> None:
    from streaming.audit.journal import kept_elsewhere, verify_clusters
    from streaming.config import load_config
    from streaming.history.tables import History

    history = History(load_config(conf).tables.root)
    clusters = [history.cluster(cluster)] if cluster else history.clusters()
    kept = [_kept(text) for text in seals]
    for name, *_ in kept:
        if history.cluster(name) not in clusters:
            raise click.UsageError(f"--seal is about cluster {name}, and --cluster about {clusters[0]}")
    found = []
    start = time.monotonic()
    with working("verifying", len(clusters)) as step:
        for derived in verify_clusters(history, clusters, processes=os.cpu_count() or 1):
            others = (kept_elsewhere(history, *one) for one in kept if one[0] == derived.cluster_id)
            verified = replace(derived, difference=next(filter(None, others), derived.difference))
            found.append(verified)
            if not as_json:
                _say(verified, time.monotonic() - start)
            step()
            start = time.monotonic()
    if as_json:
        click.echo(json.dumps([_document(verified) for verified in found], indent=2, default=str))
    if any(verified.difference for verified in found):
        raise click.exceptions.Exit(1)


def _say(verified: Verified, seconds: float) -> None:
    same = f"{verified.versions} versions with {verified.moves} moves"
    if verified.difference is None:
        click.echo(f"{verified.cluster_id}: {same} come out the same ({seconds:.1f} s){_others(verified)}")
        return
    found = verified.difference
    click.echo(f"{found}")
    click.echo(f"  recorded: {found.recorded}")
    click.echo(f"  derived:  {found.derived}")
    for name, value in found.context.items():
        for line in value if isinstance(value, list) else [value]:
            click.echo(f"  {name.replace('_', ' ')}: {line}")
    click.echo(f"  before it {same} come out the same")


def _others(verified: Verified) -> str:
    """The other releases of this software that made some of the plans."""
    from streaming.planning.planner import SOFTWARE_VERSION

    others = ", ".join(sorted(verified.releases - {SOFTWARE_VERSION}))
    return f"; some were planned by release {others}, all were derived by {SOFTWARE_VERSION}" if others else ""


def _document(verified: Verified) -> dict[str, Any]:
    found = verified.difference
    document: dict[str, Any] = {
        "cluster_id": verified.cluster_id,
        "verified_versions": verified.versions,
        "verified_moves": verified.moves,
        "same": found is None,
        "planned_by": sorted(verified.releases),
        "seal": f"{verified.cluster_id}:{verified.versions}:{verified.seal}",
    }
    if found is not None:
        document["difference"] = {
            "plan_version": found.plan_version,
            "what": found.what,
            "recorded": found.recorded,
            "derived": found.derived,
            "context": dict(found.context),
        }
    return document
