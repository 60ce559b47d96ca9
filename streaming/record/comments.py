"""Comments of the tables and their columns: in `DESCRIBE`, in catalogs, and in the reference."""

from __future__ import annotations

from typing import Final

from placement.loads.model import WEIGHTS
from streaming.record.version import FoldDigests

TABLE_COMMENTS: Final = {
    "plans": "The journal: one row a plan version of a cluster, without gaps from 1.",
    "quarantine": "One row a received event that no plan records.",
    "plan_progress": "One row a progress event of a reassignment executor.",
    "brokers": "One row a broker: a projection of the journal.",
    "assignments": "One row a partition: a projection of the journal.",
    "loads": "One row a partition whose load was observed: a projection of the journal.",
    "broker_limits": "One row a broker whose limits were observed: a projection of the journal.",
    "metrics": "One row a micro-batch that received or decided something.",
}

_EVENT: Final = {
    "event_id": "the event's own id; null where it cannot be read",
    "type": "the event's type",
    "outcome": "`applied`, `no_effect`, `duplicate`, `stale`, `held`, `rejected` or `malformed`",
    "reason": "why it was not applied",
    "payload": "the line as it came",
    "occurred_at": "when it happened, as the event says",
    "entity": "what it is about, such as `broker:3`",
    "place": "position of the line in the source",
    "sequence": "position of the line in its batch, from 0",
}

_BROKER: Final = {
    "broker_id": "the broker",
    "rack": "its rack",
    "capacity": "its weight: a broker of capacity 2 gets twice the replicas of one of capacity 1",
    "state": "`alive`, `failed`, `dead`, `draining`, `gone`; "
    "in `plan_progress`: `started`, `partition_done`, `completed`, `failed`",
    "since": "`occurred_at` of the newest event about it",
    "deadline": "when its grace period, or the settle time of a burst, ends",
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
    "log_dirs": "the log directory of each replica after, where the plan names one; `any` leaves it to Kafka",
}

_LOAD: Final = {
    "topic": "the topic",
    "partition": "the partition",
    "size": "bytes of one replica, smoothed; null where it is not known",
    "bytes_in": "bytes a second produced, smoothed; of a broker: its limit",
    "bytes_out": "bytes a second consumed, smoothed; of a broker: its limit",
}

_LIMIT: Final = {
    "broker_id": "the broker",
    "disk": "bytes that it can store; null where unknown",
    "bytes_in": "bytes a second that it can receive",
    "bytes_out": "bytes a second that it can send",
    "cpu": "CPU in hundredths of a byte a second, in the model of planning by load",
    "log_dirs": "its disks",
    "log_dirs.path": "as in `log.dirs`",
    "log_dirs.limit": "size of its volume in bytes",
    "log_dirs.used": "bytes that are not free, rounded",
}

_NUMBERS: Final = (
    {
        "partitions_changed": "partitions that change",
        "moved_replicas": "replicas that are copied",
        "lower_bound": "replicas that every plan with the same balance must copy",
        "gap": "moved_replicas - lower_bound",
        "optimal": "1 where no plan with this balance or a better one moves fewer; 0 where that is not proved",
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
        "lower_bound_bytes": "certified lower bound of the bytes that any plan as close to the bands must copy",
    }
    | {
        f"residual_{weight}": f"how far the worst broker ends outside its band of {weight}, in thousandths of its share"
        for weight in WEIGHTS
    }
)

COLUMN_COMMENTS: Final = {
    "cluster_id": "the cluster",
    "plan_version": "the version; of a projection, the one that wrote the row last",
    "base_version": "the version that it was planned from, or that it approves, rejects or rolls back",
    "supersedes": "the proposal that can no longer be approved because of it",
    "app_id": "the query's id, from its checkpoint",
    "batch_id": "the micro-batch; a tick at the end of a run has a number of its own",
    "created_at": "the time of the batch",
    "kind": "what was decided, such as `heal` or `rebalance`",
    "cause": "the event, deadline or request that caused it",
    "approval": "`not_required`, `proposed`, `approved`, `rejected` or `reported`",
    "events": "the events that it records; in `metrics`, received lines by outcome",
    "broker_changes": "changed brokers, with their new state",
    "topic_changes": "created topics, with their strategy; deleted topics, with null",
    "topic_changes.topic": "the topic",
    "topic_changes.strategy": "the strategy that placed it; null where it was deleted",
    "moves": "partitions that change",
    "load_changes": "changed loads, with their new values; all null where they are no longer known",
    "limit_changes": "changed limits of brokers, with their new values",
    "load_deadline": "when the cluster is to be rebalanced by load, unless newer loads change that",
    "metrics": "cost and result of the plan",
    "policy": "the policy that it was decided under, as JSON",
    "software_version": "the release that planned it",
    "digest": "SHA-256 of the changes; an approval names it",
    "fold": "digests of the state after this version, which prove that a projection is the fold of the journal",
    **{f"fold.{name}": f"digest of the rows that the table `{name}` then has" for name in FoldDigests._fields},
    "seal": "hash chain: SHA-256 of the row and of the seal before it",
    "received_at": "the time of the batch",
    "details": "the other fields of the progress event, as JSON",
    "replicas": "broker ids, the preferred leader first",
    "batch_time": "the time of the batch, which a retry keeps",
    "finished_at": "when it was committed",
    "seconds": "from its start to its commit",
    "lag_seconds": "from `occurred_at` of its newest event to its commit",
    "plans": "plan versions",
    "stopped_clusters": "clusters that an error stopped in this batch",
    "clusters_in_memory": "cluster states that the driver holds",
    "state_bytes": "approximate memory that they use",
    "write_failures": "failed writes of projections and metrics since the job started; each is retried",
    **_EVENT,
    **{f"events.{name}": meaning for name, meaning in _EVENT.items()},
    **{f"events.{name}": f"lines that were {name.replace('_', ' ')}" for name in ("applied", "duplicate", "stale")},
    **{f"events.{name}": f"lines that were {name}" for name in ("rejected", "malformed")},
    "events.no_effect": "lines that changed nothing",
    "events.held": "lines that were held because their cluster is stopped",
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
