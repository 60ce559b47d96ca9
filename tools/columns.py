"""What the columns of the tables mean, for the reference; a column without an entry fails the writing of it."""

from __future__ import annotations

from typing import Final

from placement.loads.model import WEIGHTS
from streaming.record.version import FoldDigests

ABOUT: Final = {
    "plans": "The journal: one row a plan version of a cluster, without gaps from 1.",
    "quarantine": "One row a received event that no plan records.",
    "plan_progress": "One row a report of whoever carries plans out.",
    "brokers": "One row a broker: the journal's fold.",
    "assignments": "One row a partition: the journal's fold.",
    "loads": "One row a partition of which a load was observed: the journal's fold.",
    "broker_limits": "One row a broker of which a limit was observed: the journal's fold.",
    "metrics": "One row a micro-batch that received or decided something.",
}

_EVENT: Final = {
    "event_id": "the event's own id; null where it cannot be read",
    "type": "the event's type",
    "outcome": "`applied`, `no_effect`, `duplicate`, `stale`, `rejected` or `malformed`",
    "reason": "why it was not applied",
    "payload": "the line as it came",
    "occurred_at": "when it happened, as the event says",
    "entity": "what it is news of, such as `broker:3`",
    "place": "where the line stood in the source",
    "sequence": "its place among the lines of its batch, from 0",
}

_BROKER: Final = {
    "broker_id": "the broker",
    "rack": "its rack",
    "capacity": "its share of the load, against the other brokers'",
    "state": "`alive`, `failed`, `dead`, `draining`, `gone`; "
    "of a report `started`, `partition_done`, `completed`, `failed`",
    "since": "when the newest news about it occurred",
    "deadline": "when its grace, or the wait for more of a burst, is over",
}

_MOVE: Final = {
    "topic": "the topic",
    "partition": "the partition",
    "before": "replicas before, the preferred leader first",
    "after": "replicas after; empty where the partition is gone",
    "reason": "why it moves",
    "wave": "the wave of the plan that it belongs to",
    "leader": "the leader, where it was observed",
    "isr": "the in-sync replicas, where they were observed",
    "end_offsets": "log end offsets of the replicas, where they were observed",
    "log_dirs": "the directory of each replica after, where one is named; `any` is Kafka's choice",
}

_LOAD: Final = {
    "topic": "the topic",
    "partition": "the partition",
    "size": "bytes of one replica, smoothed; null where it is not known",
    "bytes_in": "bytes a second that are written, smoothed; of a broker, that it can take",
    "bytes_out": "bytes a second that are read, smoothed; of a broker, that it can give",
}

_LIMIT: Final = {
    "broker_id": "the broker",
    "disk": "bytes that it can hold; null where it is not known",
    "bytes_in": "bytes a second that it can take in",
    "bytes_out": "bytes a second that it can give out",
    "cpu": "hundredths of a byte a second, by the model of planning by load",
    "log_dirs": "its disks",
    "log_dirs.path": "as in `log.dirs`",
    "log_dirs.limit": "bytes that it may hold",
    "log_dirs.used": "bytes that it holds, in steps",
}

_NUMBERS: Final = (
    {
        "partitions_changed": "partitions that change",
        "moved_replicas": "replicas that are copied",
        "lower_bound": "replicas that every plan with the same balance must copy",
        "gap": "how many the plan may copy too much",
        "optimal": "1 where it is proved that none is",
        "leader_changes": "partitions whose preferred leader changes",
    }
    | {
        f"{what}_{which}_{when}": f"the {'fewest' if which == 'min' else 'most'} {words} on one broker {when} the plan"
        for what, words in (("replicas", "replicas"), ("leaders", "preferred leaders"))
        for which in ("min", "max")
        for when in ("before", "after")
    }
    | {
        "moved_bytes": "bytes that are copied; null where the plan was made by count",
        "lower_bound_bytes": "certified: bytes that every plan which comes as close to the bands must copy",
    }
    | {
        f"residual_{weight}": f"how far the worst broker ends outside its band of {weight}, in thousandths of its share"
        for weight in WEIGHTS
    }
)

MEANING: Final = {
    "cluster_id": "the cluster",
    "plan_version": "the version; of a projection, the one that wrote the row last",
    "base_version": "what it was planned from, or approves, rejects or undoes",
    "supersedes": "the proposal that can no longer be approved because of it",
    "app_id": "the query's id, from its checkpoint",
    "batch_id": "the micro-batch; of what time alone brought at the end of a run, a number of its own",
    "created_at": "the time of the batch",
    "kind": "what was decided, such as `heal` or `rebalance`",
    "cause": "the event, deadline or request that caused it",
    "approval": "`not_required`, `proposed`, `approved`, `rejected` or `reported`",
    "events": "the events that it records; in `metrics`, received lines by outcome",
    "broker_changes": "brokers as they are from then on",
    "topic_changes": "topics that appear, with their strategy, or go, with none",
    "topic_changes.topic": "the topic",
    "topic_changes.strategy": "the strategy that placed it; null where it is gone",
    "moves": "partitions that change",
    "load_changes": "loads as they are recorded from then on; all null where nothing is known any more",
    "limit_changes": "limits of brokers as they are recorded from then on",
    "load_deadline": "when the cluster is to be rebalanced by load, unless newer loads say otherwise",
    "metrics": "what the plan costs and brings",
    "policy": "the policy that it was decided under, as JSON",
    "software_version": "the release that planned it",
    "digest": "sha256 of what changes; approval names it",
    "fold": "digests of the state that it leaves, by which a projection is known to be what the journal says",
    **{f"fold.{name}": f"of what the table `{name}` then has" for name in FoldDigests._fields},
    "seal": "sha256 of the row and of the seal before it",
    "received_at": "the time of the batch",
    "details": "whatever the report says beside its state, as JSON",
    "replicas": "broker ids, the preferred leader first",
    "batch_time": "the time of the batch, which a repeated batch keeps",
    "finished_at": "when it was committed",
    "seconds": "from taking it up to its commit",
    "lag_seconds": "from when its newest event occurred to its commit",
    "plans": "plan versions",
    "stopped_clusters": "clusters that a fault stopped in this batch",
    "clusters_in_memory": "cluster states that the driver holds",
    "state_bytes": "about how much memory they take",
    "write_failures": "failed writes of projections and metrics since the job started; each is tried again",
    **_EVENT,
    **{f"events.{name}": meaning for name, meaning in _EVENT.items()},
    **{f"events.{name}": f"lines that were {name.replace('_', ' ')}" for name in ("applied", "duplicate", "stale")},
    **{f"events.{name}": f"lines that were {name}" for name in ("rejected", "malformed")},
    "events.no_effect": "lines that changed nothing",
    **_BROKER,
    **{f"broker_changes.{name}": meaning for name, meaning in _BROKER.items()},
    **{name: meaning for name, meaning in _MOVE.items() if name != "reason"},
    **_LIMIT,
    **_LOAD,
    **{f"moves.{name}": meaning for name, meaning in _MOVE.items()},
    **{f"load_changes.{name}": meaning for name, meaning in _LOAD.items()},
    **{f"limit_changes.{name}": meaning for name, meaning in _LIMIT.items()},
    "moved_replicas": _NUMBERS["moved_replicas"],
    **{f"metrics.{name}": meaning for name, meaning in _NUMBERS.items()},
}
