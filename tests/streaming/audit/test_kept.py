"""Seals kept elsewhere find what the chain alone cannot: a history that was written anew, with seals that fit."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import Result
from deltalake import write_deltalake

from streaming.record.rows import versions_to_arrow
from streaming.record.seal import seal_of
from streaming.record.version import NO_DIGESTS, PlanVersion
from tests.streaming.driving import Driver
from tests.streaming.writing import write_batches

Run = Callable[..., Result]
PLANS = Path(".data/tables/plans")


@pytest.fixture
def journal(run: Run) -> list[PlanVersion]:
    """Three versions of a cluster whose name has blanks and colons."""
    driver = Driver()
    event = partial(driver.event, cluster="my: cluster")
    batches = [
        driver.batch(*(event("broker_joined", broker_id=broker) for broker in (1, 2))),
        driver.batch(event("topic_created", topic="t", partitions=2, replication_factor=1), minute=1),
        driver.batch(event("broker_left", broker_id=1, reason="decommissioned", minute=2), minute=2),
    ]
    write_batches(PLANS.parent, *batches)
    return driver.journal


def rewrite(versions: list[PlanVersion]) -> None:
    """The journal anew, by somebody who knows how to seal it."""
    previous, rows = "", []
    for version in versions:
        previous = seal_of(version, previous)
        rows.append(versions_to_arrow([replace(version, seal=previous)], "app", version.plan_version - 1))
    shutil.rmtree(PLANS)
    write_deltalake(PLANS, pa.concat_tables(rows))


def of_another_release(versions: list[PlanVersion]) -> list[PlanVersion]:
    """All of them planned by another release, which nothing that is derived contradicts."""
    return [replace(version, software_version=f"{version.software_version}.1") for version in versions]


def test_seals_are_one_line_a_cluster(run: Run, journal: list[PlanVersion]) -> None:
    lines = run("seals").stdout.splitlines()
    assert [json.loads(line) for line in lines] == [
        {
            "cluster_id": "my: cluster",
            "plan_version": 3,
            "seal": journal[-1].seal,
            "created_at": journal[-1].created_at.isoformat(),
        }
    ]
    assert run("seals", "--cluster", "my: cluster").stdout.splitlines() == lines


def test_a_history_that_was_written_anew_is_found_by_a_seal_kept_elsewhere(
    run: Run, journal: list[PlanVersion], tmp_path: Path
) -> None:
    kept = tmp_path / "seals.jsonl"
    kept.write_text(run("seals").stdout + "\n")
    assert run("verify", "--seals", kept).exit_code == 0
    rewrite(of_another_release(journal))
    assert run("verify").exit_code == 0  # the chain has no key
    found = run("verify", "--seals", kept)
    assert found.exit_code == 1
    assert "cluster my: cluster version 3: its seal is not the one that was kept elsewhere" in found.stdout
    assert run("verify", "--seals", "-", input=kept.read_text()).exit_code == 1
    assert run("verify", "--seal", f"my: cluster:3:{journal[-1].seal}").exit_code == 1
    assert run("verify", "--seal", f"my: cluster:3:{journal[-1].seal}", "--cluster", "x").exit_code == 2


def test_what_was_cut_off_or_dropped_whole_is_found_too(run: Run, journal: list[PlanVersion], tmp_path: Path) -> None:
    kept = tmp_path / "seals.jsonl"
    kept.write_text(run("seals").stdout)
    rewrite(journal[:2])
    found = run("verify", "--seals", kept)
    assert (found.exit_code, "version 3: is missing" in found.stdout) == (1, True)
    rewrite([replace(version, cluster_id="another") for version in journal])
    found = json.loads(run("verify", "--seals", kept, "--json").stdout)
    assert [(one["cluster_id"], one["same"]) for one in found if one["cluster_id"] != "another"] == [
        ("my: cluster", False)
    ]


def test_later_rows_than_the_seal_may_come(run: Run, journal: list[PlanVersion]) -> None:
    rewrite(journal[:2])
    kept = run("seals").stdout
    rewrite(journal)
    assert run("verify", "--seals", "-", input=kept).exit_code == 0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 1: Expecting property name"),
        ("[]", "line 1: it must be a JSON object with cluster_id, plan_version and seal"),
        ('{"cluster_id": "c", "plan_version": "1", "seal": "s"}', "line 1: it must be a JSON object"),
        ("\n\n3", "line 3: it must be"),
    ],
)
def test_a_file_that_has_no_seals_is_refused(run: Run, journal: list[PlanVersion], line: str, said: str) -> None:
    refused = run("verify", "--seals", "-", input=line)
    assert (refused.exit_code, len(refused.stderr.splitlines())) == (2, 1)
    assert said in refused.stderr


def test_digests_of_projections_that_were_taken_away_are_missed(run: Run, journal: list[PlanVersion]) -> None:
    first, second, third = journal
    rewrite([first, replace(second, fold=NO_DIGESTS), third])
    found = run("verify")
    assert found.exit_code == 1
    assert "version 2: the digests of the projections are missing, and the version before has its own" in found.stdout
    rewrite([replace(first, fold=NO_DIGESTS), second, third])
    assert run("verify").exit_code == 0  # as the rows of earlier releases, see docs/audit.md


def test_times_cannot_be_moved_after_a_seal_was_kept(run: Run, journal: list[PlanVersion]) -> None:
    kept = run("seals").stdout
    rewrite([replace(version, created_at=version.created_at + timedelta(microseconds=1)) for version in journal])
    assert run("verify", "--seals", "-", input=kept).exit_code == 1
