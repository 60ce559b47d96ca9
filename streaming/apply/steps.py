"""The steps of carrying a plan out, as values: what is explained and what is done are the same steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from streaming.apply.journal.tasks import Place, Replicas
from streaming.apply.kafka.seen import Seen
from streaming.kafka.snapshot import Partition


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """Create a topic; ``replicas`` are those of partition 0, 1, ..."""

    topic: str
    replicas: tuple[Replicas, ...]


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """Let a topic grow; ``replicas`` are those of partition ``first``, ``first + 1``, ..."""

    topic: str
    first: int
    replicas: tuple[Replicas, ...]


@dataclass(frozen=True, slots=True)
class KeepTopic:
    """A topic that the plan has given up stays: data is deleted by people."""

    topic: str


@dataclass(frozen=True, slots=True)
class Move:
    """One partition on its way.

    Attributes:
        topic, partition: which one.
        now: the replicas that it has, in the order to go back to.
        after: the replicas that it is to have.
        under_way: whether Kafka is moving it there already.
        log_dirs: the brokers that are to put it into one of their directories, and which.
        size: bytes of one replica, as the brokers have it now; 0 where that is not known.
        replaces: where a reassignment goes that is under way and that this one takes the place of; else empty.
    """

    topic: str
    partition: int
    now: Replicas
    after: Replicas
    under_way: bool = False
    log_dirs: tuple[tuple[int, str], ...] = ()
    size: int = 0
    replaces: Replicas = ()

    @property
    def place(self) -> Place:
        """Topic and partition id."""
        return self.topic, self.partition

    @property
    def incoming(self) -> Replicas:
        """The brokers that get a new replica."""
        return tuple(b for b in self.after if b not in self.now)

    @property
    def bytes(self) -> int:
        """What all new replicas together take."""
        return self.size * len(self.incoming)


@dataclass(frozen=True, slots=True)
class Cancel:
    """Take back reassignments that wait for a broker that is down."""

    moves: tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class Throttle:
    """Limit the copying for some moves to ``rate`` bytes a second on each broker that sends or receives.

    ``theirs`` are brokers and topics that somebody else has throttled for what they have under way; they stay so.
    """

    rate: int
    moves: tuple[Move, ...]
    theirs: frozenset[int | str] = frozenset()

    @property
    def brokers(self) -> tuple[int, ...]:
        """The brokers that send or receive, ascending."""
        return tuple(sorted({b for move in self.moves for b in (*move.now, *move.incoming)} - self.theirs))

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics whose copies are limited, ascending."""
        return tuple(sorted({move.topic for move in self.moves} - self.theirs))

    @property
    def seconds(self) -> float:
        """How long the broker that receives most takes at least; 0 where no size is known."""
        received: Counter[int] = Counter()
        for move in self.moves:
            received.update(dict.fromkeys(move.incoming, move.size))
        return max(received.values(), default=0) / self.rate


@dataclass(frozen=True, slots=True)
class MoveWave:
    """Move partitions, together, and wait until each of them is where it belongs."""

    number: int
    moves: tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class LeaveOut:
    """Partitions for which what is asked cannot be done now, and why."""

    places: tuple[Place, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Elect:
    """Let the preferred leaders lead."""

    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class Unthrottle:
    """Remove the throttles of brokers and topics."""

    brokers: tuple[int, ...]
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refuse:
    """Stop here: the task does not fit the cluster."""

    reason: str


Step = CreateTopic | AddPartitions | KeepTopic | Cancel | Throttle | MoveWave | LeaveOut | Elect | Unthrottle | Refuse


def outcome(steps: Iterable[Step], seen: Seen) -> Seen:
    """The cluster as it will be once the steps are done."""
    partitions = dict(seen.partitions)
    for step in steps:
        match step:
            case CreateTopic() | AddPartitions():
                first = step.first if isinstance(step, AddPartitions) else 0
                for number, replicas in enumerate(step.replicas, first):
                    partitions[step.topic, number] = _settled(number, replicas)
            case MoveWave():
                partitions |= {move.place: _settled(move.partition, move.after) for move in step.moves}
            case _:
                pass
    return replace(seen, partitions=partitions, throttled_brokers=(), throttled_topics=())


def _settled(number: int, replicas: Replicas) -> Partition:
    return Partition(number, replicas, leader=replicas[0], leader_epoch=0, isr=replicas)
