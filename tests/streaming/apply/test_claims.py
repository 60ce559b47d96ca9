"""One executor at a time carries a plan out: what the job answers, and how a run asks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from streaming.apply.journal.claims import Claim
from streaming.cli.main import cli
from streaming.errors import ApplyError, JobError
from streaming.guard import only_executor, only_writer
from streaming.history.tables import History
from tests.streaming.driving import Driver, line, outcomes, reasons
from tests.streaming.writing import write_batches


@pytest.fixture
def driver() -> Driver:
    """v1: brokers; v2: topic t; v3 drains broker 1."""
    driver = Driver()
    driver.racks({"a": [1, 3], "b": [2, 4]})
    driver.batch(driver.event("topic_created", topic="t", replica_assignment={0: [1, 2]}))
    driver.batch(driver.event("broker_left", broker_id=1, reason="decommissioned"))
    return driver


def claimed(driver: Driver, who: str, seconds: int, minute: float, version: int = 3) -> bytes:
    fields = {"plan_version": version, "claimant": who, "lease_seconds": seconds}
    return driver.event("plan_claimed", minute=minute, event_id=f"{who}{minute}", **fields)


def test_a_plan_is_one_executors_until_its_lease_ends_or_it_gives_it_up(driver: Driver) -> None:
    first = driver.batch(claimed(driver, "ann", 120, 10))
    assert [line(v) for v in first.versions] == [
        "v4 claim not_required: version 3 claimed until 2026-01-01T00:12:00Z by ann"
    ]
    assert first.versions[0].base_version == 3
    second = driver.batch(claimed(driver, "bob", 60, 11))
    assert reasons(second) == {"bob11": "version 3 is carried out by ann, whose claim lasts until 2026-01-01T00:12:00Z"}
    assert outcomes(driver.batch(claimed(driver, "ann", 120, 11.5))) == {"ann11.5": "applied"}
    assert outcomes(driver.batch(claimed(driver, "bob", 60, 13))) == {"bob13": "rejected"}
    assert outcomes(driver.batch(claimed(driver, "bob", 60, 13.5))) == {"bob13.5": "applied"}
    assert outcomes(driver.batch(claimed(driver, "ann", 0, 13.6))) == {"ann13.6": "rejected"}
    assert driver.batch(claimed(driver, "bob", 0, 13.7)).versions[0].cause == "version 3 given up by bob"
    assert outcomes(driver.batch(claimed(driver, "bob", 0, 13.8))) == {"bob13.8": "no_effect"}
    assert outcomes(driver.batch(claimed(driver, "ann", 60, 13.9))) == {"ann13.9": "applied"}


def test_two_at_once_and_a_restart_are_answered_alike(driver: Driver) -> None:
    both = driver.batch(claimed(driver, "ann", 120, 10), claimed(driver, "bob", 60, 10))
    assert outcomes(both) == {"ann10": "applied", "bob10": "rejected"}
    driver.memory.clusters.clear()
    assert outcomes(driver.batch(claimed(driver, "bob", 60, 11))) == {"bob11": "rejected"}


@pytest.mark.parametrize("version", [-1, 0, 9])
def test_what_is_no_plan_cannot_be_claimed(driver: Driver, version: int) -> None:
    assert outcomes(driver.batch(claimed(driver, "ann", 60, 10, version))) == {"ann10": "rejected"}


def test_a_claim_leaves_a_proposal_as_it_is() -> None:
    driver = Driver()
    driver.racks({"a": [1, 3], "b": [2, 4]})
    driver.batch(driver.event("topic_created", topic="t", partitions=4, replication_factor=2))
    driver.batch(driver.event("broker_joined", broker_id=5, rack="a"), driver.event("rebalance_requested"))
    proposal = driver.journal[-1]
    assert proposal.approval == "proposed"
    driver.batch(claimed(driver, "ann", 60, 10, 2))
    approval = {"plan_version": proposal.plan_version, "digest": proposal.digest, "event_id": "yes"}
    assert outcomes(driver.batch(driver.event("plan_approved", minute=11, **approval))) == {"yes": "applied"}


def test_a_second_run_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    root = str(tmp_path)
    with only_executor(root, "east"):
        with only_executor(root, "west"):
            pass
        with pytest.raises(JobError, match="plans of east are being carried out by another apply"):
            only_executor(root, "east").__enter__()
    with only_executor(root, "east"):
        pass


class Job:
    """A job in a folder: it holds the lock of the writer, and plans what is handed over."""

    def __init__(self, folder: Path, driver: Driver) -> None:
        self.root, self.events, self.driver = folder / "tables", folder / "events", driver
        self._done: set[Path] = set()
        self._stop = threading.Event()

    def plan(self) -> None:
        for file in sorted(set(self.events.glob("[!.]*.jsonl")) - self._done):
            self._done.add(file)
            write_batches(self.root, self.driver.batch(*file.read_bytes().splitlines()))

    def work(self) -> None:
        while not self._stop.wait(0.05):
            self.plan()

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self.work)
        with only_writer(str(self.root)):
            thread.start()
            yield
            self._stop.set()
            thread.join()


def test_a_run_asks_the_job_where_one_runs_and_nobody_where_none_does(tmp_path: Path) -> None:
    driver = Driver(f'[source]\ntype = "files"\npath = "{tmp_path}/events"\n[tables]\nroot = "{tmp_path}/tables"\n')
    job = Job(tmp_path, driver)
    write_batches(job.root, driver.racks({"a": [1, 3], "b": [2, 4]}))
    write_batches(job.root, driver.batch(driver.event("topic_created", topic="t", replica_assignment={0: [1, 2]})))
    alone = Claim(driver.config, "c", 2)
    assert (alone.take(), alone.is_held, job.events.exists()) == ("", False, False)
    with job.running():
        ours = Claim(driver.config, "c", 2)
        assert (ours.take(), ours.is_held) == ("", True)
        again = Claim(driver.config, "c", 2)
        assert again.take() == ""  # the same machine and person, after a kill
        again.give_up()
    job.plan()
    causes = [v.cause for v in History(str(job.root)).headlines("c") if v.kind == "claim"]
    assert [cause.split(" ")[2] for cause in causes] == ["claimed", "claimed", "given"]
    write_batches(job.root, driver.batch(claimed(driver, "ann", 60, 10**7, 2)))
    other = Job(tmp_path, driver)
    other._done = job._done
    with (
        other.running(),
        pytest.raises(ApplyError, match="version 2 of c is not carried out: version 2 is carried out by ann"),
    ):
        Claim(driver.config, "c", 2).take()


def test_claims_drift_elections_and_rollbacks_in_part_are_derived_again(tmp_path: Path) -> None:
    conf = f'[policy]\non_drift = "report"\n[tables]\nroot = "{tmp_path}/tables"\n'
    (tmp_path / "conf.toml").write_text(conf)
    driver = Driver(conf)

    def seen(replicas: list[int], minute: float) -> bytes:
        row = {"topic": "t", "partition": 0, "replicas": replicas, "leader": replicas[1], "isr": replicas}
        return driver.event("assignment_observed", partitions=[row], minute=minute)

    batches = [driver.racks({"a": [1, 3], "b": [2, 4]})]
    created = {"t": {0: [1, 2]}, "u": {0: [1, 2]}}
    for topic, rows in created.items():
        batches.append(driver.batch(driver.event("topic_created", topic=topic, replica_assignment=rows)))
    batches.append(driver.batch(seen([1, 2], 1)))
    batches += [driver.batch(seen(row, 2 + n)) for n, row in enumerate([[4, 2], [4, 2], [1, 2], [1, 2], [4, 2]])]
    batches.append(driver.batch(driver.event("preferred_election_requested", minute=8)))
    batches.append(driver.batch(driver.event("broker_left", broker_id=1, reason="decommissioned", minute=9)))
    heal = driver.journal[-1]
    batches.append(driver.batch(claimed(driver, "ann", 600, 10, heal.plan_version)))
    batches.append(driver.batch(claimed(driver, "bob", 600, 11, heal.plan_version)))
    batches.append(driver.batch(claimed(driver, "ann", 0, 12, heal.plan_version)))
    batches.append(driver.batch(driver.event("topic_deleted", topic="u", minute=13)))
    batches.append(driver.batch(driver.event("broker_joined", broker_id=1, rack="a", minute=14)))
    undo = {"plan_version": heal.plan_version, "digest": heal.digest}
    batches.append(driver.batch(driver.event("plan_rolled_back", minute=15, **undo)))
    assert driver.journal[-1].cause.endswith("; not rolled back: topic u is gone")
    kinds = ["observation", *["drift"] * 3, "election", "heal", *["claim"] * 2, "topics", "membership", "rollback"]
    assert [v.kind for v in driver.journal[3:]] == kinds
    write_batches(tmp_path / "tables", *batches)
    done = CliRunner().invoke(cli, ["verify", "--conf", str(tmp_path / "conf.toml")])
    assert done.exit_code == 0, done.output
