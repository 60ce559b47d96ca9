"""Events as they arrive: one JSON object a line, decoded, checked, and never lost.

A line that is no event is kept as it came, with the reason, under the outcome ``malformed``.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta, Struct

from placement.model import CAPACITIES, MAX_ID
from placement.strategies import StrategyName

Outcome = Literal["applied", "no_effect", "duplicate", "stale", "held", "rejected", "malformed"]

MAX_ID_LENGTH: Final = 512
EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(2200, 1, 1, tzinfo=UTC)

# What columns of a fixed width are made of is bounded here. Counts are not: rules reject those that cannot be, with
# Kafka's reason, before anything of that size is made.
Identifier = Annotated[str, Meta(min_length=1, max_length=MAX_ID_LENGTH)]
Moment = Annotated[datetime, Meta(tz=True)]
BrokerId = Annotated[int, Meta(ge=0, le=MAX_ID)]
PartitionId = Annotated[int, Meta(ge=0, le=MAX_ID)]
Offset = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Capacity = Annotated[float, Meta(ge=CAPACITIES[0], le=CAPACITIES[1])]
Amount = Annotated[int, Meta(ge=0, le=2**50)]


class Event(Struct, frozen=True, omit_defaults=True, tag_field="type"):
    """What every event carries. ``occurred_at`` orders the news about one topic or broker."""

    event_id: Identifier
    cluster_id: Identifier
    occurred_at: Moment

    def __post_init__(self) -> None:
        """Reject times that no deadline can be computed from."""
        if not EARLIEST <= self.occurred_at < LATEST:
            raise ValueError(f"occurred_at {self.occurred_at.isoformat()} is not between the years 1970 and 2200")

    @property
    def type(self) -> str:
        """The event's type as it is written in JSON."""
        return str(self.__struct_config__.tag)

    @property
    def entity(self) -> str:
        """What the event is news about, such as ``topic:orders``; empty for requests."""
        return ""


class TopicEvent(Event, frozen=True, kw_only=True):
    """News about one topic."""

    topic: str

    @property
    def entity(self) -> str:
        """The topic."""
        return f"topic:{self.topic}"


class BrokerEvent(Event, frozen=True, kw_only=True):
    """News about one broker."""

    broker_id: BrokerId

    @property
    def entity(self) -> str:
        """The broker."""
        return f"broker:{self.broker_id}"


class TopicCreated(TopicEvent, frozen=True, kw_only=True, tag="topic_created"):
    """A topic to be placed, by count or by an explicit assignment."""

    partitions: int | None = None
    replication_factor: int | None = None
    replica_assignment: dict[int, list[int]] | None = None
    strategy: StrategyName | None = None
    fixed_start_index: Annotated[int, Meta(ge=0, le=MAX_ID)] | None = None
    disable_rack_aware: bool = False


class TopicDeleted(TopicEvent, frozen=True, kw_only=True, tag="topic_deleted"):
    """A topic is gone."""


class PartitionsAdded(TopicEvent, frozen=True, kw_only=True, tag="partitions_added"):
    """A topic grows to ``partitions``, the new total; ``replica_assignment`` says where the added ones are."""

    partitions: int
    replica_assignment: dict[int, list[int]] | None = None


class ReplicationFactorChanged(TopicEvent, frozen=True, kw_only=True, tag="replication_factor_changed"):
    """Every partition of a topic is to have this many replicas."""

    replication_factor: int


class BrokerJoined(BrokerEvent, frozen=True, kw_only=True, tag="broker_joined"):
    """A broker is up: new, or back."""

    rack: str | None = None
    capacity: Capacity | None = None


class BrokerLeft(BrokerEvent, frozen=True, kw_only=True, tag="broker_left"):
    """A broker failed (it may come back), is to be drained, or is gone for good."""

    reason: Literal["failed", "decommissioned", "unregistered"]


class BrokerChanged(BrokerEvent, frozen=True, kw_only=True, tag="broker_changed"):
    """A broker's rack or capacity is another one now."""

    rack: str | None = None
    capacity: Capacity | None = None


class ObservedPartition(Struct, frozen=True):
    """One partition as it is on the real cluster."""

    topic: str
    partition: PartitionId
    replicas: Annotated[list[BrokerId], Meta(min_length=1)]
    leader: Annotated[int, Meta(ge=-1, le=MAX_ID)] | None = None
    isr: list[BrokerId] | None = None
    end_offsets: dict[BrokerId, Offset] | None = None


class AssignmentObserved(Event, frozen=True, kw_only=True, tag="assignment_observed"):
    """What the real cluster looks like, whole or in part."""

    partitions: list[ObservedPartition]


class ObservedLoad(Struct, frozen=True):
    """What one partition was measured to weigh; null or absent is not known."""

    topic: str
    partition: PartitionId
    size: Amount | None = None
    bytes_in: Amount | None = None
    bytes_out: Amount | None = None


class ObservedLogDir(Struct, frozen=True):
    """A disk of a broker: bytes that it may hold, and bytes that it holds."""

    path: Annotated[str, Meta(min_length=1)]
    limit: Amount
    used: Amount | None = None


class ObservedLimits(Struct, frozen=True):
    """What one broker can take; null or absent is not known."""

    broker_id: BrokerId
    disk: Amount | None = None
    bytes_in: Amount | None = None
    bytes_out: Amount | None = None
    cpu: Amount | None = None
    log_dirs: list[ObservedLogDir] | None = None


class LoadObserved(Event, frozen=True, kw_only=True, tag="load_observed"):
    """What partitions weigh and what brokers can take, whole or in part; the parts of one look share ``occurred_at``.

    An object in ``partitions`` has ``topic`` and ``partition``, and ``size`` (bytes of one replica), ``bytes_in`` and
    ``bytes_out`` (bytes a second) as far as they are known. One in ``brokers`` has ``broker_id``, and ``disk`` (bytes),
    ``bytes_in``, ``bytes_out`` (bytes a second), ``cpu`` (hundredths of a byte a second) and ``log_dirs`` (objects with
    ``path``, ``limit`` and ``used``). Partitions and brokers that the cluster does not have are left out of account, so
    that a topic may be deleted while somebody measures. What is not named keeps the value that is known of it. Where
    ``bytes_out`` are missing, they are ``bytes_out_per_byte_in`` times ``bytes_in``.
    """

    partitions: list[ObservedLoad] | None = None
    brokers: list[ObservedLimits] | None = None
    bytes_out_per_byte_in: Annotated[float, Meta(ge=0, le=1000)] | None = None

    @property
    def entity(self) -> str:
        """The loads of the whole cluster."""
        return "loads"


class RebalanceRequested(Event, frozen=True, kw_only=True, tag="rebalance_requested"):
    """Somebody asks for an even cluster, for all topics or some, within a budget of moves or none."""

    topics: list[str] | None = None
    max_moves: Annotated[int, Meta(ge=0)] | None = None


class PreferredElectionRequested(Event, frozen=True, kw_only=True, tag="preferred_election_requested"):
    """Somebody asks that the preferred leaders lead again."""

    topics: list[str] | None = None
    max_moves: Annotated[int, Meta(ge=0)] | None = None


class PlanApproved(Event, frozen=True, kw_only=True, tag="plan_approved"):
    """A proposed plan may take effect, if it is still the one with this digest."""

    plan_version: int
    digest: str
    by: str | None = None


class PlanRejected(Event, frozen=True, kw_only=True, tag="plan_rejected"):
    """A proposed plan must not take effect."""

    plan_version: int
    digest: str
    by: str | None = None


class PlanRolledBack(Event, frozen=True, kw_only=True, tag="plan_rolled_back"):
    """The moves of a plan are to be undone."""

    plan_version: int
    digest: str
    by: str | None = None


class PlanProgress(Event, frozen=True, kw_only=True, tag="plan_progress"):
    """Progress of a reassignment executor that carries a plan out."""

    plan_version: int
    state: Literal["started", "partition_done", "completed", "failed"]
    details: Any = None


class PlanClaimed(Event, frozen=True, kw_only=True, tag="plan_claimed"):
    """A reassignment executor claims a plan for itself alone, for ``lease_seconds``; 0 releases the claim."""

    plan_version: int
    claimant: Identifier
    lease_seconds: Annotated[int, Meta(ge=0, le=86_400)]


class ClusterResumed(Event, frozen=True, kw_only=True, tag="cluster_resumed"):
    """A cluster that the job had stopped is to be planned again."""


class ClusterIdentified(Event, frozen=True, kw_only=True, tag="cluster_identified"):
    """Which Kafka cluster this is: the id that Kafka gave it. ``apply`` refuses another one."""

    kafka_cluster_id: Identifier


AnyEvent = (
    TopicCreated
    | TopicDeleted
    | PartitionsAdded
    | ReplicationFactorChanged
    | BrokerJoined
    | BrokerLeft
    | BrokerChanged
    | AssignmentObserved
    | LoadObserved
    | RebalanceRequested
    | PreferredElectionRequested
    | PlanApproved
    | PlanRejected
    | PlanRolledBack
    | PlanProgress
    | PlanClaimed
    | ClusterResumed
    | ClusterIdentified
)

EVENT_TYPES: Final[dict[str, type[Event]]] = {str(cls.__struct_config__.tag): cls for cls in AnyEvent.__args__}


class Header(Struct, frozen=True):
    """What is known of a malformed line: those of the common fields that are usable text."""

    event_id: Any = None
    cluster_id: Any = None
    type: Any = None

    def text(self, name: str) -> str | None:
        """The field, if it is a string of a length that the tables take."""
        value = getattr(self, name)
        return value if isinstance(value, str) and len(value) <= MAX_ID_LENGTH else None


class Line(NamedTuple):
    """One received line: where it stood, what it said, and the event in it or what is wrong with it."""

    place: str
    raw: bytes
    event: AnyEvent | None
    problem: str = ""
    header: Header = Header()
    sequence: int = 0
    recorded: bool = False
    """Whether an interrupted attempt at the batch has recorded what became of it."""

    @property
    def text(self) -> str:
        """The raw line as text; bytes that are not UTF-8 are written as ``\\xNN``."""
        return self.raw.decode("utf-8", errors="backslashreplace")


_events: Final = msgspec.json.Decoder(AnyEvent)
_headers: Final = msgspec.json.Decoder(Header)


def decode(raw: bytes, place: str = "") -> Line:
    """Decode one line. Never raises: a malformed line comes back with ``problem`` set."""
    line = raw.removesuffix(b"\r")
    if not line.strip():
        return Line(place, line, None, "the line is empty")
    try:
        return Line(place, line, _events.decode(line))
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        return Line(place, line, None, _problem(error, line), _header(line))


def _problem(error: Exception, line: bytes) -> str:
    if isinstance(error, RecursionError):
        return "the line is nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return f"the line is not UTF-8 at byte {_not_utf8_at(line)}"
    return str(error).replace("`$`", "the top level").replace("`$.", "`")


def _not_utf8_at(line: bytes) -> int:
    """The first byte that is not UTF-8: the decoder's own error counts from the start of a string in the line."""
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return error.start
    return len(line)


def _header(line: bytes) -> Header:
    try:
        return _headers.decode(line)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return Header()


def encode(event: Event) -> bytes:
    """The event as one line of JSON, without a line break."""
    return msgspec.json.encode(event)
