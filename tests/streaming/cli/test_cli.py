"""The command line on tables that were written without Spark, and on files alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from deltalake import write_deltalake

from streaming.events import PlanProgress
from streaming.planning.batch import BatchResult
from streaming.record.rows import progress_to_arrow, quarantine_to_arrow, versions_to_arrow
from tests.streaming.driving import Driver, at
from tests.streaming.writing import write_batches

Run = Callable[..., Result]

COMMAND = Path(sys.executable).parent / "replica-planner"

BROKERS = [{"id": i, "rack": f"r{i % 3}"} for i in range(1, 7)]


@pytest.fixture
def history(tmp_path: Path) -> Driver:
    """Six brokers, a topic, a heal, a proposal, and two events that no plan records."""
    driver = Driver()
    batches = [
        driver.racks({"a": [1, 2], "b": [3, 4], "c": [5, 6]}),
        driver.batch(
            driver.event("topic_created", topic="t", partitions=6, replication_factor=3, event_id="t6"),
            driver.event("topic_created", topic="u", partitions=1, replication_factor=9, event_id="u1"),
            b"{broken",
            minute=1,
        ),
        driver.batch(driver.event("broker_left", broker_id=3, reason="decommissioned", minute=2), minute=2),
        driver.batch(
            driver.event("broker_joined", broker_id=7, rack="b", minute=3),
            driver.event("rebalance_requested", minute=3),
            minute=3,
        ),
    ]
    root = tmp_path / ".data/tables"
    for batch in batches:
        plans = versions_to_arrow(batch.versions, "app", batch.batch_id)
        write_deltalake(root / "plans", plans, mode="append")
        refused = quarantine_to_arrow(batch.unplanned, "app", batch.batch_id, batch.batch_time)
        write_deltalake(root / "quarantine", refused, mode="append")
    return driver


def test_plans_lists_versions_newest_last(run: Run, history: Driver) -> None:
    lines = run("plans").stdout.splitlines()
    assert [line.split("\t")[:2] for line in lines] == [
        ["version", "kind"],
        ["1", "membership"],
        ["2", "topics"],
        ["3", "heal"],
        ["4", "membership"],
        ["5", "rebalance"],
    ]
    heal = json.loads(run("plans", "--json").stdout)[2]
    assert (heal["cause"], heal["moved_replicas"], heal["lower_bound"]) == ("broker 3 decommissioned", 3, 3)
    assert heal["replicas_per_broker_after"] == [3, 6]


def test_plans_counts_the_versions_that_only_record_leaders_and_isrs(run: Run, history: Driver, tmp_path: Path) -> None:
    """What is adopted or corrected is a change; who leads is none."""
    state = history.layout()["t"]

    def seen(minute: int, **isr: list[int]) -> BatchResult:
        rows = [
            {"topic": "t", "partition": p, "replicas": row, "leader": row[0], "isr": isr.get(f"p{p}", row)}
            for p, row in enumerate(state)
        ]
        return history.batch(history.event("assignment_observed", partitions=rows, minute=minute), minute=minute)

    first, second = seen(5), seen(6, p0=state[0][:1])
    new = [{"topic": "new", "partition": 0, "replicas": [1, 2], "leader": 1, "isr": [1, 2]}]
    third = history.batch(history.event("assignment_observed", partitions=new, minute=7), minute=7)
    write_batches(tmp_path / ".data/tables", first, second, third)
    listed, everything = run("plans"), run("plans", "--all")
    assert [line.split("\t")[0] for line in listed.stdout.splitlines()] == ["version", "1", "2", "3", "4", "5", "8"]
    assert listed.stderr == "and 2 versions that only record leaders and ISRs: --all lists them\n"
    assert everything.stderr == ""
    causes = {row.split("\t")[0]: row.split("\t")[2] for row in everything.stdout.splitlines()}
    assert causes["6"].startswith(f"observed: t-0 has leader {state[0][0]}, ISR {','.join(map(str, state[0]))}; t-1 ")
    assert causes["6"].endswith("; and 3 more")
    assert causes["7"] == f"observed: t-0 has leader {state[0][0]}, ISR {state[0][0]}"
    assert causes["8"] == "observed: 1 partitions adopted, 0 corrected"
    assert [row["plan_version"] for row in json.loads(run("plans", "--json").stdout)] == [1, 2, 3, 4, 5, 6, 7, 8]


def test_show_gives_the_plan_and_the_way_back_as_kafka_reads_them(run: Run, history: Driver) -> None:
    plan = json.loads(run("show", "c", 3, "--format", "kafka-json").stdout)
    back = json.loads(run("show", "c", 3, "--format", "rollback-json").stdout)
    moves = json.loads(run("show", "c", 3, "--json").stdout)["moves"]
    assert [p["replicas"] for p in plan["partitions"]] == [move["after"] for move in moves]
    assert [p["replicas"] for p in back["partitions"]] == [move["before"] for move in moves]
    assert sum("lost" in move["reason"] or "drained" in move["reason"] for move in moves) == 3
    assert "broker 3: draining" in run("show", "c", 3).stdout
    assert json.loads(run("show", "c", 3, "--format", "summary-json").stdout)["kind"] == "heal"


def test_plans_says_how_far_a_plan_is_carried_out(run: Run, history: Driver, tmp_path: Path) -> None:
    states = ["started", "partition_done", "partition_done", "failed", "started", "partition_done"]
    reports = [PlanProgress(f"p{n}", "c", at(10 + n), plan_version=3, state=s) for n, s in enumerate(states)]
    write_deltalake(tmp_path / ".data/tables/plan_progress", progress_to_arrow(reports, "app", 9))
    rows = [line.split("\t") for line in run("plans").stdout.splitlines()]
    assert [row[-1] for row in rows] == ["progress", "-", "-", "started, 1 partition done", "-", "-"]
    told = json.loads(run("show", "c", 3, "--json").stdout)["progress"]
    assert told == {"state": "partition_done", "since": "2026-01-01T00:15:00Z", "partitions_done": 1, "details": None}
    assert "carried out: started, 1 partition done, by the report of 2026-01-01T00:15:00Z" in run("show", "c", 3).stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("why", "c", "t", "z"),
            "Invalid value for 'PARTITION': 'z' is not a valid integer; see replica-planner",
        ),
        (("show", "c", 0), "Invalid value for 'VERSION': 0 is not in the range x>=1; see replica-planner show --help"),
        (("show",), "Missing argument 'CLUSTER'; see replica-planner show --help"),
        (("plans", "--clusters", "c"), "No such option '--clusters'"),
        (("plan",), "No such command 'plan'"),
        (("--verbose", "plans"), "No such option '--verbose'"),
    ],
)
def test_wrong_arguments_are_told_in_one_line(run: Run, arguments: tuple[object, ...], told: str) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert result.stderr.startswith(f"replica-planner: {told}")


def test_status_as_of_a_version_and_as_of_a_time_agree(run: Run, history: Driver) -> None:
    by_version = run("status", "c", "--as-of", 2, "--json").stdout
    by_time = run("status", "--as-of", at(1.5).isoformat(), "--json").stdout
    assert json.loads(by_version) == json.loads(by_time)
    assert [b["replicas"] for b in json.loads(by_version)["brokers"]] == [3] * 6
    assert "waits for approval" in run("status").stdout


def test_describe_prints_what_kafka_prints(run: Run, history: Driver) -> None:
    text = run("describe", "--topic", "t", "--as-of", 2).stdout
    first = history.journal[1].moves[0].after[0].tolist()
    replicas = ",".join(map(str, first))
    assert text.splitlines()[:2] == [
        "Topic: t\tPartitionCount: 6\tReplicationFactor: 3\tConfigs: ",
        f"\tTopic: t\tPartition: 0\tLeader: {first[0]}\tReplicas: {replicas}\tIsr: {replicas}",
    ]


def test_events_shows_every_event_and_its_outcome(run: Run, history: Driver) -> None:
    rows = json.loads(run("events", "--json").stdout)
    assert len(rows) == 6 + 3 + 1 + 2
    rejected = json.loads(run("events", "--outcome", "rejected", "--json").stdout)
    assert [(row["event_id"], row["plan_version"]) for row in rejected] == [("u1", None)]
    (malformed,) = json.loads(run("events", "--outcome", "malformed", "--json").stdout)
    assert malformed["payload"] == "{broken"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("plans", "--cluster", "x"), "no cluster 'x': there are: c"),
        (("show", "c", 99), "cluster c has no version 99: it has versions 1 to 5"),
        (("status", "--as-of", "soon"), "'soon' is neither a plan version such as 17"),
        (("status", "--as-of", "99"), "has nothing as of 99: it has versions 1 to 5"),
        (("status", "--as-of", "2020-01-01"), "the first of 2026-01-01T00:00:00Z"),
        (("describe", "--topic", "x"), "cluster c has no topic 'x' at version 5"),
        (("approve", "c", 99, "--digest", "d"), "cluster c has no version 99"),
        (("plans", "--conf", "nothing.toml"), "nothing.toml: the conf file cannot be read"),
    ],
)
def test_what_is_not_there_is_said_in_one_line(run: Run, history: Driver, args: tuple[object, ...], said: str) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", ["plans", "maintain"])
def test_before_the_first_run_the_tables_are_missing(run: Run, command: str) -> None:
    result = run(command)
    assert result.exit_code == 2
    assert "run the job first" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_a_storage_that_cannot_be_read_is_said_in_one_line(tmp_path: Path) -> None:
    """With no credentials but what a machine of a cloud would give, of which there is none at this address."""
    (tmp_path / "s3.toml").write_text('[tables]\nroot = "s3://no-such-bucket/tables"\n')
    away = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1"}
    command = [COMMAND, "plans", "--conf", "s3.toml"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(command, cwd=tmp_path, env=kept | away, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("replica-planner: s3://no-such-bucket/tables/plans: this table cannot be read: ")
    assert "credentials" in line
    assert "\x1b" not in line


def submitted(tmp_path: Path) -> list[dict[str, object]]:
    files = sorted((tmp_path / ".data/events").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def test_submit_hands_over_a_file_as_it_is(run: Run, tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_bytes(b'{"a": 1}\n{"b": 2}\n')
    result = run("submit", "e.jsonl")
    assert submitted(tmp_path) == [{"a": 1}, {"b": 2}]
    assert "2 lines sent to .data/events" in result.stdout
    assert "line 1 is not a valid event and will be kept in quarantine" in result.stderr


def test_submit_makes_an_event_from_options(run: Run, tmp_path: Path) -> None:
    run("submit", "--type", "broker_left", "--cluster", "c", "--broker-id", 3, "--reason", "failed")
    run("submit", "--type", "topic_created", "--cluster", "c", "--topic", "t", "--replica-assignment", '{"0": [1, 2]}')
    left, created = submitted(tmp_path)
    assert (left["type"], left["broker_id"], left["reason"]) == ("broker_left", 3, "failed")
    assert created["replica_assignment"] == {"0": [1, 2]}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("submit", "nothing.jsonl"), "nothing.jsonl: cannot be read"),
        (("submit", "--type", "broker_left", "--cluster", "c"), "missing required field `broker_id`"),
        (("submit", "--type", "broker_left", "--cluster", "c", "--topic", "t"), "broker_left has no field topic"),
        (("submit", "--type", "broker_joined", "--cluster", "c", "--broker-id", "x"), "broker_id"),
        (("submit", "--type", "topic_created", "--topic", "t", "--replica-assignment", "{"), "is not JSON"),
    ],
)
def test_submit_refuses_what_is_no_event(run: Run, args: tuple[object, ...], said: str) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert said in result.stderr


def test_approve_names_the_plan_by_its_digest(run: Run, history: Driver, tmp_path: Path) -> None:
    digest = history.journal[-1].digest
    assert run("approve", "c", 5, "--digest", digest).exit_code == 0
    assert run("rollback", "c", 3).exit_code == 0
    approved, rolled = submitted(tmp_path)
    assert (approved["type"], approved["plan_version"], approved["digest"]) == ("plan_approved", 5, digest)
    assert (rolled["type"], rolled["plan_version"], rolled["digest"]) == (
        "plan_rolled_back",
        3,
        history.journal[2].digest,
    )


@pytest.mark.parametrize("command", ["approve", "reject"])
def test_a_decision_that_the_job_would_refuse_is_refused_at_once(
    run: Run, history: Driver, tmp_path: Path, command: str
) -> None:
    proposed = history.journal[-1]
    waits = "does not wait for approval"
    of_another = f"'no' is not the digest of version 5 of c: {proposed.digest}; look at that plan again"
    assert of_another in run(command, "c", 5, "--digest", "no").stderr
    assert f"version 3 of c {waits}: it takes effect without" in run(command, "c", 3, "--digest", "x").stderr
    joined = history.batch(history.event("broker_joined", broker_id=8, rack="a", minute=5), minute=5)
    write_batches(tmp_path / ".data/tables", joined)
    late = run(command, "c", 5, "--digest", proposed.digest)
    assert late.exit_code == 2
    assert f"version 5 of c {waits}: it is superseded by version 6" in late.stderr
    assert submitted(tmp_path) == []


def test_loads_and_leaders_that_are_seen_leave_a_proposal_waiting(run: Run, history: Driver, tmp_path: Path) -> None:
    weighed = [{"topic": "t", "partition": 0, "size": 1000}]
    row = history.layout()["t"][0]
    led = [{"topic": "t", "partition": 0, "replicas": row, "leader": row[0], "isr": row}]
    seen = history.batch(
        history.event("load_observed", partitions=weighed, minute=5),
        history.event("assignment_observed", partitions=led, minute=6),
        minute=6,
    )
    write_batches(tmp_path / ".data/tables", seen)
    assert [version.kind for version in seen.versions] == ["loads", "observation"]
    assert "version 5 waits for approval" in run("status").stdout
    assert run("approve", "c", 5, "--digest", history.journal[4].digest).exit_code == 0


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        (1, "it is of kind membership and asks for nothing on the cluster"),
        (3, "it is superseded by version 6, which changes t-0 again; name that one, or none"),
        (5, "it was approved as version 6; carry that out"),
        (7, "it is of kind observation and asks for nothing on the cluster"),
    ],
)
def test_what_is_not_to_be_carried_out_is_no_kafka_json(
    run: Run, history: Driver, tmp_path: Path, version: int, reason: str
) -> None:
    proposed = history.journal[4]
    seen = [{"topic": "new", "partition": 0, "replicas": [1, 2], "leader": 1, "isr": [1, 2]}]
    batches = (
        history.batch(history.event("plan_approved", plan_version=5, digest=proposed.digest, minute=5), minute=5),
        history.batch(history.event("assignment_observed", partitions=seen, minute=6), minute=6),
    )
    write_batches(tmp_path / ".data/tables", *batches)
    refused = run("show", "c", version, "--format", "kafka-json")
    assert refused.exit_code == 2
    assert refused.stdout == ""
    assert f"version {version} of c is not carried out: {reason}; --even-if-not-approved" in refused.stderr
    forced = run("show", "c", version, "--format", "kafka-json", "--even-if-not-approved")
    assert forced.exit_code == 0
    assert json.loads(forced.stdout)["version"] == 1


def test_wait_says_what_became_of_each_line(run: Run, history: Driver, tmp_path: Path) -> None:
    """The job answers while the command waits; what was refused makes the exit code 1."""
    root = tmp_path / ".data/tables"
    lines = [history.event("broker_joined", broker_id=8, rack="a", minute=5), b"{broken"]
    (tmp_path / "e.jsonl").write_bytes(b"\n".join(lines))
    answer = threading.Timer(1, lambda: write_batches(root, history.batch(*lines, minute=5)))
    answer.start()
    result = run("submit", "e.jsonl", "--wait")
    answer.join()
    assert result.exit_code == 1
    said = ["1 applied, 1 malformed", "c v6  broker 8 joined", "c is at version 6"]
    assert result.stdout.splitlines()[1:] == said
    assert "line 2 malformed: JSON is malformed" in result.stderr
    again = run("submit", "e.jsonl", "--wait", "--timeout", 0.5)
    assert again.exit_code == 1, "what was recorded before counts for nothing"
    assert "2 of 2 without an outcome after 0.5 s" in again.stderr


def test_wait_before_the_first_run(run: Run, tmp_path: Path) -> None:
    given = ("--type", "broker_joined", "--cluster", "c", "--broker-id", 1)
    result = run("submit", *given, "--wait", "--timeout", 0)
    assert result.exit_code == 1
    assert "no job runs on these tables; start one: replica-planner run" in result.stderr
    assert len(submitted(tmp_path)) == 1
