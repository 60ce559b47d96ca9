"""``verify``: a plan in files against its cluster, or the whole journal against the planner; ``seals``, to keep."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from streaming.cli.main import conf_option, json_option
from streaming.cli.screens.render import print_line
from streaming.cli.screens.working import working
from streaming.errors import InputError

if TYPE_CHECKING:
    from streaming.audit.journal import Verified
    from streaming.audit.kept import Kept


@click.command()
@click.option("--cluster", metavar="C", help="Verify this cluster's journal only.")
@click.option("--seal", "seals", metavar="C:VERSION:SEAL", multiple=True, help="A seal that you kept elsewhere.")
@click.option("--seals", "seals_file", metavar="FILE", help="Seals that you kept elsewhere, as `seals` prints them.")
@click.option("--plan", "plan_file", metavar="PLAN.json", help="Offline: the partitions that change.")
@click.option("--current", "current_file", metavar="CURRENT.json", help="Offline: the layout now.")
@click.option("--brokers", "brokers_file", metavar="B.json", help="Offline: the cluster's brokers.")
@click.option("--partial", is_flag=True, help="Offline: the plan had a budget, so what was lost may stay so.")
@conf_option
@json_option
def verify(
    cluster: str | None,
    seals: tuple[str, ...],
    seals_file: str | None,
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
      replica-planner verify --seals seals.jsonl
      replica-planner verify --plan PLAN.json --current CURRENT.json --brokers B.json
    """
    files = {"--plan": plan_file, "--current": current_file, "--brokers": brokers_file}
    missing = [name for name, file in files.items() if file is None]
    if len(missing) == len(files):
        kept = [_kept(text, cluster) for text in seals]
        if seals_file is not None:
            kept += [one for one in _kept_in(seals_file) if cluster in (None, one.cluster_id)]
        _verify_journal(cluster, kept, conf, as_json=as_json)
    elif missing:
        raise click.UsageError(f"{missing[0]} is missing: a plan in files needs --plan, --current and --brokers")
    else:
        from streaming.cli.offline.offline import check_plan

        check_plan(str(plan_file), str(current_file), str(brokers_file), partial=partial, as_json=as_json)


@click.command()
@click.option("--cluster", metavar="C", help="The seal of this cluster only.")
@conf_option
def seals(cluster: str | None, conf: str | None) -> None:
    """Print the newest seal of each cluster, one JSON object a line, to be kept where those cannot write who may
    write the tables. `verify --seals` compares such lines with the journal later.

    \b
    Examples:
      replica-planner seals >> seals.jsonl
      replica-planner seals --cluster east
    """
    from streaming.audit.kept import newest_seals
    from streaming.config import load_config
    from streaming.history.tables import History

    history = History(load_config(conf).tables.root)
    for row in newest_seals(history, [history.cluster(cluster)] if cluster else history.clusters()):
        click.echo(json.dumps(row | {"created_at": row["created_at"].isoformat()}))


def _kept(text: str, only: str | None) -> Kept:
    from streaming.audit.kept import Kept

    cluster, version, seal = ("", *text.rsplit(":", 2))[-3:]
    if only not in (None, cluster):
        raise click.UsageError(f"--seal is about cluster {cluster}, and --cluster about {only}")
    if not cluster or not version.isdecimal() or not seal:
        raise click.UsageError(f"--seal {text}: this is not CLUSTER:VERSION:SEAL, as `verify --json` prints it")
    return Kept(cluster, int(version), seal)


def _kept_in(path: str) -> list[Kept]:
    """The seals of a file.

    Raises:
        InputError: a line is none; names file, line and reason.
    """
    from streaming.audit.kept import Kept
    from streaming.cli.offline.offline import read_text

    found = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        try:
            found += [Kept.from_json(json.loads(line))] if line.strip() else []
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}: line {number}: {error}", path=path) from error
    return found


def _verify_journal(cluster: str | None, kept: Sequence[Kept], conf: str | None, *, as_json: bool) -> None:
    from streaming.audit.journal import Verified, verify_clusters
    from streaming.audit.kept import compare_kept
    from streaming.config import load_config
    from streaming.history.tables import History

    history = History(load_config(conf).tables.root)
    clusters = [history.cluster(cluster)] if cluster else history.clusters()
    gone = {one.cluster_id: one for one in kept if one.cluster_id not in clusters}
    found = []
    start = time.monotonic()
    with working("verifying", len(clusters)) as step:
        for derived in verify_clusters(history, clusters, processes=os.cpu_count() or 1):
            others = (compare_kept(history, one) for one in kept if one.cluster_id == derived.cluster_id)
            verified = replace(derived, difference=next(filter(None, others), derived.difference))
            found.append(verified)
            if not as_json:
                _say(verified, time.monotonic() - start)
            step()
            start = time.monotonic()
    for name, one in gone.items():
        found.append(Verified(name, 0, 0, compare_kept(history, one)))
        if not as_json:
            _say(found[-1], 0)
    if as_json:
        click.echo(json.dumps([_document(verified) for verified in found], indent=2, default=str))
    if any(verified.difference for verified in found):
        raise click.exceptions.Exit(1)


def _say(verified: Verified, seconds: float) -> None:
    same = f"{verified.versions} versions with {verified.moves} moves"
    if verified.difference is None:
        print_line(f"{verified.cluster_id}: {same} come out the same ({seconds:.1f} s){_others(verified)}")
        return
    found = verified.difference
    print_line(f"{found}")
    print_line(f"  recorded: {found.recorded}")
    print_line(f"  derived:  {found.derived}")
    for name, value in found.context.items():
        for line in value if isinstance(value, list) else [value]:
            print_line(f"  {name.replace('_', ' ')}: {line}")
    print_line(f"  before it {same} come out the same")


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
