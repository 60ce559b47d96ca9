"""``verify``: an honest journal comes out the same, and whatever was changed in one is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from deltalake import CommitProperties, DeltaTable, write_deltalake

from streaming.audit.journal import verify_clusters
from streaming.audit.rederive import Difference
from streaming.cli import cli
from streaming.history.tables import History
from streaming.planning.planner import SOFTWARE_VERSION
from streaming.record.rows import versions_to_arrow
from streaming.record.seal import seal_of
from streaming.record.version import PlanVersion
from tests.streaming.audit.random_histories import CONF, random_history
from tests.streaming.driving import Driver
from tests.streaming.writing import project, write_batches

Row = dict[str, Any]


def verified(root: Path) -> Difference | None:
    """The first difference in the journal of the only cluster."""
    history = History(str(root))
    (found,) = verify_clusters(history, history.clusters())
    return found.difference


@pytest.fixture
def driver() -> Driver:
    """Brokers, two topics, a failure healed after its grace, a proposal approved and rolled back."""
    driver = Driver(CONF)
    driver.results = [  # type: ignore[attr-defined]
        driver.racks({"a": [1, 4], "b": [2], "c": [3]}),
        driver.batch(
            driver.event("topic_created", topic="t", replica_assignment={"0": [1, 2], "5": [2, 3], "6": [2, 3]}),
            driver.event("topic_created", topic="u", replica_assignment={"0": [2, 3], "1": [3, 2], "2": [2, 3]}),
            driver.event("topic_created", topic="huge", replication_factor=9),
            minute=1,
        ),
        driver.batch(driver.event("broker_left", broker_id=1, reason="failed", minute=2), minute=2),
        driver.batch(minute=40),
        driver.batch(driver.event("rebalance_requested", minute=42), minute=42),
    ]
    for kind, minute in (("plan_approved", 43), ("plan_rolled_back", 44)):
        last = driver.journal[-1]
        named = {"plan_version": last.plan_version, "digest": last.digest}
        driver.results.append(driver.batch(driver.event(kind, minute=minute, **named), minute=minute))  # type: ignore[attr-defined]
    assert [v.kind for v in driver.journal] == [
        "membership", "topics", "membership", "heal", "rebalance", "rebalance", "rollback",
    ]  # fmt: skip
    return driver


@pytest.fixture
def root(tmp_path: Path, driver: Driver) -> Path:
    write_batches(tmp_path / "tables", *driver.results)  # type: ignore[attr-defined]
    project(tmp_path / "tables", driver.journal)
    return tmp_path / "tables"


@pytest.mark.parametrize(("recorded", "same"), [(None, True), ("everywhere", True), ("even", False)])
def test_plans_of_the_time_before_policies_spoke_of_leaders_come_out_the_same(
    tmp_path: Path, recorded: str | None, same: bool
) -> None:
    """Heals evened out leaders all over the cluster then."""
    driver, results = random_history(3, 60, 'leaders = "everywhere"\n')
    driver.results = results  # type: ignore[attr-defined]
    write_batches(tmp_path, *results)
    project(tmp_path, driver.journal)

    def old(version: PlanVersion) -> PlanVersion:
        policy = {**json.loads(version.policy), "leaders": recorded}
        known = {key: value for key, value in policy.items() if key != "leaders" or value}
        return replace(version, policy=json.dumps(known, sort_keys=True))

    forge(tmp_path, driver, old, sealed=True)
    found = verified(tmp_path)
    assert (found is None) == same
    assert same or "comes out differently" in str(found)


def forge(root: Path, driver: Driver, change: Callable[[PlanVersion], PlanVersion], *, sealed: bool) -> None:
    """Write the journal again with changed rows; with ``sealed``, by somebody who knows how to seal it."""
    batches = [(result.batch_id, version.plan_version) for result in driver.results for version in result.versions]  # type: ignore[attr-defined]
    previous, rows = "", []
    for version, (batch_id, _) in zip(driver.journal, batches, strict=True):
        changed = change(version)
        if sealed:
            previous = seal_of(changed, previous)
            changed = replace(changed, seal=previous)
        rows.append(versions_to_arrow([changed], "app", batch_id))
    (root / "plans").rename(root / "plans before")
    write_deltalake(root / "plans", pa.concat_tables(rows))


def only(number: int, **fields: Any) -> Callable[[PlanVersion], PlanVersion]:
    return lambda version: replace(version, **fields) if version.plan_version == number else version


def move_elsewhere(version: PlanVersion) -> PlanVersion:
    """The heal puts a replica on another broker, and says so in its digest."""
    from streaming.record.moves import digest

    if version.plan_version != 4:
        return version
    first, *others = version.moves
    moves = [replace(first, after=first.after[:, ::-1].copy()), *others]
    return replace(version, moves=moves, digest=digest(moves))


def policy_with(driver: Driver, old: str, new: str, number: int) -> Callable[[PlanVersion], PlanVersion]:
    policy = driver.journal[number - 1].policy
    assert old in policy
    return only(number, policy=policy.replace(old, new))


def test_the_journal_as_it_was_written_comes_out_the_same(root: Path, driver: Driver) -> None:
    forge(root, driver, lambda version: version, sealed=True)
    assert verified(root) is None


def test_a_row_that_was_changed_is_found_by_its_digest(root: Path, driver: Driver) -> None:
    moved = move_elsewhere(driver.journal[3]).moves
    forge(root, driver, only(4, moves=moved), sealed=True)
    found = verified(root)
    assert found is not None
    assert str(found) == "cluster c version 4: its digest is not that of its moves"
    assert found.recorded == driver.journal[3].digest


def test_a_row_that_was_changed_is_found_by_its_seal(root: Path, driver: Driver) -> None:
    forge(root, driver, only(2, cause="somebody else did it"), sealed=False)
    assert str(verified(root)).startswith("cluster c version 2: its seal is broken")


def test_a_policy_that_changed_nothing_is_found_by_its_seal(root: Path, driver: Driver) -> None:
    forge(root, driver, policy_with(driver, '"grace":"30m"', '"grace":"5m"', 2), sealed=False)
    assert str(verified(root)).startswith("cluster c version 2: its seal is broken")


@pytest.mark.parametrize(
    ("change", "number", "said"),
    [
        (move_elsewhere, 4, "comes out differently"),
        (only(4, cause="grace of broker 2 over"), 4, "its cause comes out differently"),
        (only(6, base_version=4), 6, "its base version comes out differently"),
        (only(1, broker_changes=()), 1, "its broker changes comes out differently"),
        (only(5, approval="not_required"), 5, "its approval comes out differently"),
    ],
)
def test_a_row_that_was_changed_and_sealed_again_is_found_by_derivation(
    root: Path, driver: Driver, change: Callable[[PlanVersion], PlanVersion], number: int, said: str
) -> None:
    forge(root, driver, change, sealed=True)
    found = verified(root)
    assert found is not None
    assert (found.plan_version, said in found.what) == (number, True), str(found)


def test_a_policy_that_was_changed_and_sealed_again_is_found_by_derivation(root: Path, driver: Driver) -> None:
    forge(root, driver, policy_with(driver, '"grace":"30m"', '"grace":"5m"', 3), sealed=True)
    found = verified(root)
    assert found is not None
    assert (found.plan_version, found.what) == (3, "its cause comes out differently")
    assert found.context["policy"].count('"grace":"5m"') == 1
    assert any("broker_left" in payload for _, _, payload in found.context["events"])


def test_an_event_that_was_changed_and_sealed_again_is_found(root: Path, driver: Driver) -> None:
    (event,) = driver.journal[2].events
    lied = replace(event, payload=event.payload.replace('"broker_id": 1', '"broker_id": 3'))
    forge(root, driver, only(3, events=[lied]), sealed=True)
    assert "is not what its line says" in str(verified(root))


@pytest.mark.parametrize("dropped", [1, 4])
def test_a_row_that_was_dropped_is_found(root: Path, driver: Driver, dropped: int) -> None:
    table = DeltaTable(root / "plans").to_pyarrow_table()
    kept = table.filter(pa.array([number != dropped for number in table["plan_version"].to_pylist()]))
    (root / "plans").rename(root / "plans before")
    write_deltalake(root / "plans", kept)
    assert str(verified(root)) == f"cluster c version {dropped}: is missing: the next row is version {dropped + 1}"


def test_a_row_that_is_there_twice_is_found(root: Path, driver: Driver) -> None:
    table = DeltaTable(root / "plans").to_pyarrow_table().sort_by("plan_version")
    write_deltalake(root / "plans", table.slice(2, 1), mode="append")
    found = verified(root)
    assert found is not None
    assert found.plan_version in (3, 4)


def test_the_last_row_is_missed_by_the_projections(root: Path, driver: Driver) -> None:
    table = DeltaTable(root / "plans").to_pyarrow_table().sort_by("plan_version")
    (root / "plans").rename(root / "plans before")
    write_deltalake(root / "plans", table.slice(0, 6))
    found = verified(root)
    assert found is not None
    assert (found.plan_version, "the table assignments has" in found.what) == (7, True)


def test_rows_that_were_deleted_in_place_are_found_in_the_log(root: Path) -> None:
    DeltaTable(root / "plans").delete("plan_version = 7")
    assert "is not an append: DELETE" in str(verified(root))


@pytest.mark.parametrize(
    ("table", "column", "value"), [("brokers", "state", "draining"), ("assignments", "replicas", [3, 1])]
)
def test_a_projection_that_was_changed_is_found(root: Path, table: str, column: str, value: Any) -> None:
    rows = DeltaTable(root / table).to_pyarrow_table()
    changed = [row | {column: value} if i == 0 else row for i, row in enumerate(rows.to_pylist())]
    assert changed != rows.to_pylist()
    write_deltalake(root / table, pa.Table.from_pylist(changed, rows.schema), mode="overwrite")
    found = verified(root)
    assert found is not None
    assert found.what.startswith(f"the table {table} has ")


def test_a_projection_that_misses_a_row_is_found(root: Path) -> None:
    DeltaTable(root / "assignments").delete("topic = 'u' AND partition = 1")
    found = verified(root)
    assert found is not None
    assert (found.what, found.recorded) == ("the table assignments has u-1 otherwise than the journal", None)


def test_projections_that_are_behind_or_gone_are_no_difference(root: Path, driver: Driver) -> None:
    for reached in (6, 4, 2):
        project(root, driver.journal[:reached])
        assert verified(root) is None
    (root / "assignments").rename(root / "thrown away")
    assert verified(root) is None


@pytest.fixture
def run(root: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    conf = root.parent / "conf.toml"
    conf.write_text(f'[tables]\nroot = "{root}"\n')
    monkeypatch.setenv("REPLICA_PLANNER_CONF", str(conf))
    return lambda *args: CliRunner().invoke(cli, ["verify", *args], catch_exceptions=False)


def test_the_command_says_that_all_is_well(run: Callable[..., Result]) -> None:
    result = run()
    assert result.exit_code == 0
    assert result.stdout.startswith("c: 7 versions with ")
    (document,) = json.loads(run("--json", "--cluster", "c").stdout)
    assert (document["same"], document["verified_versions"]) == (True, 7)


def test_the_command_fails_and_shows_all_that_is_needed(run: Callable[..., Result], root: Path, driver: Driver) -> None:
    forge(root, driver, policy_with(driver, '"grace":"30m"', '"grace":"5m"', 3), sealed=True)
    result = run()
    assert result.exit_code == 1
    assert result.stdout.startswith("cluster c version 3: its cause comes out differently\n")
    for part in ("recorded:", "derived:", "policy: {", "software version: ", "brokers before: (1, 'a'", "events: ("):
        assert f"  {part}" in result.stdout
    assert result.stdout.endswith("  before it 2 versions with 6 moves come out the same\n")
    (document,) = json.loads(run("--json").stdout)
    assert document["difference"]["plan_version"] == 3


def test_a_history_that_was_written_anew_is_found_by_a_seal_that_was_kept_elsewhere(
    run: Callable[..., Result], root: Path, driver: Driver
) -> None:
    (document,) = json.loads(run("--json").stdout)
    kept = document["seal"]
    assert kept == f"c:7:{driver.journal[-1].seal}"
    assert run("--seal", kept).exit_code == 0
    forge(root, driver, lambda version: replace(version, created_at=version.created_at.replace(second=30)), sealed=True)
    assert run().exit_code == 0
    result = run("--seal", kept)
    said = "cluster c version 7: its seal is not the one that was kept elsewhere: history was written anew\n"
    assert (result.exit_code, result.stdout.startswith(said)) == (1, True)
    assert run("--seal", "c:8:abc").stdout.startswith("cluster c version 8: is missing\n")
    assert run("--seal", "c:seven").exit_code == 2


def test_plans_of_another_release_are_named(run: Callable[..., Result], root: Path, driver: Driver) -> None:
    forge(root, driver, lambda version: replace(version, software_version="0.0.9"), sealed=True)
    said = f"; some were planned by release 0.0.9, all were derived by {SOFTWARE_VERSION}\n"
    assert run().stdout.endswith(said)
    (document,) = json.loads(run("--json").stdout)
    assert (document["same"], document["planned_by"]) == (True, ["0.0.9"])


def test_a_difference_between_releases_says_so(root: Path, driver: Driver) -> None:
    cause = only(4, cause="grace of broker 2 over")
    forge(root, driver, lambda version: replace(cause(version), software_version="0.0.9"), sealed=True)
    assert str(verified(root)).endswith(
        f"(planned by release 0.0.9, derived by {SOFTWARE_VERSION}: "
        "verify with 0.0.9 to tell a changed planner from a changed journal)"
    )


@pytest.mark.parametrize("processes", [1, 2])
def test_many_clusters_are_verified_in_shares(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: int) -> None:
    """Clusters share batches; one has a changed row, and only that one differs."""
    monkeypatch.setattr("streaming.audit.journal._LONG", 5)
    driver = Driver(CONF)
    names = [f"c{n}" for n in range(7)]
    batches = [driver.batch(*(driver.event("broker_joined", cluster=c, broker_id=b) for c in names for b in (1, 2)))]
    for number in range(3):
        lines = [driver.event("topic_created", cluster=c, topic=f"t{number}", minute=number) for c in names[number:]]
        batches.append(driver.batch(*lines, minute=number + 1))
    changed = [
        replace(
            batch,
            versions=[
                replace(v, cause="another") if (v.cluster_id, v.plan_version) == ("c4", 3) else v
                for v in batch.versions
            ],
        )
        for batch in batches
    ]
    write_batches(tmp_path, *changed)
    found = list(verify_clusters(History(str(tmp_path)), names, processes=processes))
    assert [(part.cluster_id, part.versions) for part in found] == [
        ("c0", 2), ("c1", 3), ("c2", 4), ("c3", 4), ("c4", 2), ("c5", 4), ("c6", 4),
    ]  # fmt: skip
    assert [str(part.difference) for part in found if part.difference] == [
        "cluster c4 version 3: its seal is broken: this row was changed, or the one before"
    ]


def test_unknown_clusters_and_half_given_files_are_bad_usage(run: Callable[..., Result]) -> None:
    assert run("--cluster", "x").exit_code == 2
    result = run("--plan", "p.json", "--brokers", "b.json")
    assert (result.exit_code, "--current is missing" in result.stderr) == (2, True)


@pytest.mark.parametrize("older", [False, True])
def test_the_name_of_a_cluster_is_not_taken_for_versions_of_another(tmp_path: Path, older: bool) -> None:
    """Earlier releases wrote ``c:999 z:1`` for version 1 of the cluster ``c:999 z``."""
    driver = Driver()
    for cluster in ("c", "c:999 z"):
        result = driver.batch(driver.event("broker_joined", broker_id=1, cluster=cluster))
        text = f"{cluster}:1" if older else {cluster: [1, 1]}
        named = CommitProperties(custom_metadata={"userMetadata": json.dumps({"plans": text})})
        rows = versions_to_arrow(result.versions, "app", result.batch_id)
        write_deltalake(tmp_path / "plans", rows, mode="append", commit_properties=named)
        write_batches(tmp_path, replace(result, versions=[]))
    history = History(str(tmp_path))
    assert [found.difference for found in verify_clusters(history, history.clusters())] == [None, None]
