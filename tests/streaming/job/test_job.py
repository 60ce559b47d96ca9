"""The job from end to end: a story of every event type, on real Spark and real Delta."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession

from streaming.events import EVENT_TYPES
from tests.events_for import EventsFor
from tests.job_folder import JobFolder
from tests.streaming.folding import assert_projected

pytestmark = pytest.mark.spark

east = EventsFor("east")
FOR_STOPPED_CLUSTERS = "cluster_resumed"


@pytest.fixture(scope="module")
def story(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> JobFolder:
    """A cluster is set up among broken lines, a broker dies, and plans are approved, rolled back and rejected."""
    job = JobFolder(tmp_path_factory.mktemp("story"))
    job.play(
        spark,
        *east.racks({"a": [1, 4], "b": [2], "c": [3]}),
        east.manual("orders", {0: [1, 2, 3], 5: [2, 3, 1]}, minute=1),
        east.created("clicks", 2, 1, minute=2, strategy="adminutils", fixed_start_index=0),
        east.created("logs", minute=3),
        b'{"event_id": "half a li',
        b"",
        east.deleted("not UTF-8").replace(b"not UTF-8", b"not UTF-8 \xff"),
        east.event("topic_moved", "unknown type"),
        east.event("broker_left", "missing field", broker_id=1),
        east.created("huge", 1, 9),
        east.manual("lost", {0: [1, 77]}),
        east.left(77, "failed"),
        east.grown("orders", 1, minute=4),
        east.created("logs", minute=3),
        east.joined(1, "a", minute=4),
        east.deleted("logs", minute=2),
    )
    job.play(
        spark,
        east.grown("clicks", 3, minute=5),
        east.factor("logs", 2, minute=6),
        east.changed(4, minute=7, capacity=2.0),
        east.left(1, "failed", minute=10),
        east.election(minute=41, topics=["orders"]),
        east.observed({("clicks", 2): [2], ("seen", 0): [2]}, minute=42),
        east.rebalance(minute=43),
    )
    digest = job.history.version("east", 9).digest
    job.play(
        spark,
        east.progress(6, "completed", minute=44, details={"seconds": 12}),
        east.decided("approved", 9, "another digest", minute=45),
        east.decided("approved", 9, digest, minute=46),
        east.decided("rolled_back", 10, digest, minute=47),
        east.rebalance(minute=48, topics=["clicks"]),
    )
    digest = job.history.version("east", 12).digest
    job.play(
        spark,
        east.decided("rejected", 12, digest, minute=49),
        east.decided("approved", 12, digest, minute=50),
        east.deleted("orders", minute=51),
        east.weighed({("clicks", 0): 1_000}, minute=52),
        east.event("plan_claimed", "claim", 53, plan_version=6, claimant="ann@host", lease_seconds=60),
        east.event("cluster_identified", "identify", 54, kafka_cluster_id="5L6g3nShT-eMCtK--X86sw"),
    )
    return job


def test_the_story_has_every_event_type(story: JobFolder) -> None:
    settled = [event for row in story.rows("plans") for event in row["events"]] + story.rows("quarantine")
    assert {event["type"] for event in settled if event["outcome"] == "applied"} == set(EVENT_TYPES) - {
        FOR_STOPPED_CLUSTERS
    }


def test_every_line_has_one_outcome(story: JobFolder) -> None:
    lines = [
        line for file in story.events.glob("*.jsonl") for line in file.read_bytes().removesuffix(b"\n").split(b"\n")
    ]
    assert len(story.received()) == len(lines)
    applied = [event for event, outcome in story.outcomes().items() if outcome == "applied"]
    assert {event: outcome for event, outcome in story.outcomes().items() if outcome != "applied"} == {
        "00.jsonl:8": "malformed",
        "00.jsonl:9": "malformed",
        "00.jsonl:10": "malformed",
        "unknown type": "malformed",
        "missing field": "malformed",
        "create huge @0": "rejected",
        "create lost @0": "rejected",
        "failed 77 @0": "rejected",
        "grow orders @4": "rejected",
        "create logs @3 again": "duplicate",
        "join 1 @4": "no_effect",
        "delete logs @2": "stale",
        "approved v9 @45": "rejected",
        "approved v12 @50": "stale",
    }
    assert len(applied) == len(lines) - 14


def test_what_is_not_applied_says_why(story: JobFolder) -> None:
    settled = [event for row in story.rows("plans") for event in row["events"]] + story.rows("quarantine")
    digest = story.history.version("east", 9).digest
    assert {event["place"]: event["reason"] for event in settled if event["reason"]} == {
        "00.jsonl:8": "Input data was truncated",
        "00.jsonl:9": "the line is empty",
        "00.jsonl:10": "the line is not UTF-8 at byte 31",
        "00.jsonl:11": "Invalid value 'topic_moved' - at `type`",
        "00.jsonl:12": "Object missing required field `reason`",
        "00.jsonl:13": "the replication factor 9 is larger than the number of available brokers, 4",
        "00.jsonl:14": "The manual partition assignment includes broker 77, but no such broker is registered.",
        "00.jsonl:15": "broker 77 is not part of the cluster",
        "00.jsonl:16": "The topic orders currently has 2 partition(s); 1 would not be an increase.",
        "00.jsonl:17": "an event with this id was received before",
        "00.jsonl:18": "broker 1 is alive already",
        "00.jsonl:19": "newer news of topic:logs occurred at 2026-03-01T10:03:00Z",
        "02.jsonl:2": f"digest 'another digest' is not that of version 9: {digest}",
        "03.jsonl:2": "version 12 does not wait for approval: the cluster is at version 13",
    }


def test_broken_lines_are_kept_as_they_came(story: JobFolder) -> None:
    kept = {row["place"]: row["payload"] for row in story.rows("quarantine") if row["outcome"] == "malformed"}
    assert kept["00.jsonl:8"] == '{"event_id": "half a li'
    assert kept["00.jsonl:9"] == ""
    assert "not UTF-8 \\xff" in kept["00.jsonl:10"]


def test_versions_are_gapless_and_say_what_they_are(story: JobFolder) -> None:
    assert story.causes("east") == [
        "v1 membership: 4 events: broker 1 joined, broker 4 joined, broker 2 joined and 1 more",
        "v2 topics: 3 events: topic orders created with 2 partitions (manual), topic clicks created with 2 partitions"
        " (adminutils), topic logs created with 1 partitions (balanced)",
        "v3 topics: topic clicks grown from 2 to 3 partitions",
        "v4 replication_factor: replication factor of topic logs set to 2",
        "v5 membership: 2 events: broker 4 changed: rack a, capacity 2, broker 1 failed; to be healed at"
        " 2026-03-01T10:40:00Z unless it returns",
        "v6 heal: grace of broker 1 over at 2026-03-01T10:40:00Z",
        "v7 election: preferred leaders of 2 partitions to be elected",
        "v8 observation: observed: 1 partitions adopted, 1 corrected",
        "v9 rebalance proposed: rebalance requested by event rebalance @43",
        "v10 rebalance approved: version 9 approved by event approved v9 @46: rebalance requested by event"
        " rebalance @43",
        "v11 rollback: version 10 rolled back by event rolled_back v10 @47",
        "v12 rebalance proposed: rebalance requested by event rebalance @48",
        "v13 rejection rejected: version 12 rejected by event rejected v12 @49",
        "v14 topics: topic orders deleted",
        "v15 loads: observed: 1 partitions changed",
        "v16 claim: version 6 claimed until 2026-03-01T10:54:00Z by ann@host",
    ]
    based = {v.plan_version: v.base_version for v in story.history.versions("east")}
    assert based == {version: version - 1 for version in range(1, 17)} | {10: 9, 11: 10, 13: 12, 16: 6}


PLANS = {
    2: [
        "orders-0 [] → [1, 2, 3] manual assignment",
        "orders-5 [] → [2, 3, 1] manual assignment",
        "clicks-0 [] → [1] created",
        "clicks-1 [] → [2] created",
        "logs-0 [] → [4] created",
    ],
    3: ["clicks-2 [] → [3] partitions added"],
    4: ["logs-0 [4] → [4, 2] replication factor"],
    5: [],
    6: [
        "clicks-0 [1] → [4] lost",
        "orders-0 [1, 2, 3] → [4, 2, 3] lost",
        "orders-5 [2, 3, 1] → [2, 3, 4] lost",
    ],
    7: [
        "orders-0 [4, 2, 3] → [4, 2, 3] preferred election",
        "orders-5 [2, 3, 4] → [2, 3, 4] preferred election",
    ],
    8: ["clicks-2 [3] → [2] observed", "seen-0 [] → [2] observed"],
    13: [],
    14: ["orders-0 [4, 2, 3] → [] deleted", "orders-5 [2, 3, 4] → [] deleted"],
}


@pytest.mark.parametrize("version", PLANS)
def test_whole_plans(story: JobFolder, version: int) -> None:
    assert story.plan("east", version) == PLANS[version]


def test_what_is_approved_is_what_was_proposed_and_a_rollback_undoes_it(story: JobFolder) -> None:
    proposed, approved, back = (story.history.version("east", v) for v in (9, 10, 11))
    assert story.plan("east", 10) == story.plan("east", 9) != []
    assert approved.digest == proposed.digest
    assert (approved.numbers.before, approved.numbers.after) == (back.numbers.after, back.numbers.before)
    undone = [f"{row.split(' [')[0]} {row.split('→ ')[1].split('] ')[0]}]" for row in story.plan("east", 11)]
    assert undone == [f"{row.split(' → ')[0]}" for row in story.plan("east", 10)]


def test_a_proposal_that_was_rejected_changes_nothing(story: JobFolder) -> None:
    assert story.plan("east", 12) != []
    assert story.layout("east") == {
        "clicks-0": [4],
        "clicks-1": [2],
        "clicks-2": [2],
        "logs-0": [4, 2],
        "seen-0": [2],
    }
    assert story.brokers("east") == {1: "dead", 2: "alive", 3: "alive", 4: "alive"}


def test_reports_of_progress_are_kept(story: JobFolder) -> None:
    (report,) = story.rows("plan_progress")
    assert (report["cluster_id"], report["plan_version"], report["state"]) == ("east", 6, "completed")
    assert json.loads(report["details"]) == {"seconds": 12}


def test_the_projections_are_the_fold_of_the_journal(spark: SparkSession, story: JobFolder) -> None:
    assert_projected(spark, story)


def test_commits_name_the_versions_that_they_bring(story: JobFolder) -> None:
    spans = [[13, 16], [10, 12], [3, 9], [1, 2]]
    noted = [commit["userMetadata"] for commit in story.delta("plans").history() if "userMetadata" in commit]
    assert [json.loads(text)["plans"] for text in noted] == [{"east": span} for span in spans]
    merges = [c for c in story.delta("assignments").history() if c["operation"] == "MERGE"]
    assert [json.loads(c["userMetadata"])["plans"] for c in merges] == [{"east": span} for span in spans]


def test_nothing_but_the_journal_is_needed_to_know_the_past(story: JobFolder) -> None:
    then = story.history.state("east", as_of=5)
    assert then.brokers[1].state == "failed"
    assert {name: layout.replicas.tolist() for name, layout in then.topics.items()} == {
        "orders": [[1, 2, 3], [2, 3, 1]],
        "clicks": [[1], [2], [3]],
        "logs": [[4, 2]],
    }
