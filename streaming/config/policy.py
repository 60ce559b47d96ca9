"""What the planner does for a cluster."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, field

from placement.strategies import StrategyName
from streaming.amounts import ByteAmount, Duration
from streaming.config.kinds import BrokerId, Count, Text, convert

Leaders = Literal["even", "keep", "everywhere"]
Gated = Literal["topics", "heal", "rebalance", "replication_factor", "restore"]


class KeepOff(Struct, frozen=True, forbid_unknown_fields=True):
    """Topics, as a pattern, and the brokers that are not for them."""

    topics: Text
    brokers: tuple[BrokerId, ...]


class LoadPolicy(Struct, frozen=True, forbid_unknown_fields=True):
    """What is made of observed loads. They are recorded in any case; ``plan`` makes heal and rebalance go by them.

    ``weight`` and ``step`` say how an observation becomes a recorded value. Limits of traffic and CPU are for brokers
    of which no limit was observed; of an observed disk plans fill at most the fraction ``disk_fill``.

    ``move_cost`` is what a copy counts besides its own bytes. Topics that ``keep_off`` names get no replica on the
    brokers that it names with them, and a rebalance takes them away from there.
    """

    plan: bool = False
    every: Duration = Duration("1h")
    weight: Annotated[float, Meta(ge=0.001, le=1)] = 0.2
    step: Annotated[float, Meta(ge=0.0001, le=0.5)] = 0.01
    on_skew: Literal["nothing", "rebalance"] = "nothing"
    trigger: float = 0.15
    settle: float = 0.09
    exact_counts: bool = False
    max_bytes: ByteAmount | None = None
    disk_fill: Annotated[float, Meta(gt=0, le=1)] = 0.85
    bytes_in_limit: ByteAmount | None = None
    bytes_out_limit: ByteAmount | None = None
    cpu_limit: Annotated[int, Meta(ge=0, le=2**50)] | None = None
    move_cost: ByteAmount | None = None
    keep_off: tuple[KeepOff, ...] = ()

    def __post_init__(self) -> None:
        """Reject bands that no broker could be in, while file and key are still known."""
        if not 0 < self.settle <= self.trigger < 1:
            raise ValueError(
                f"settle is {self.settle} and trigger {self.trigger}: both must be above 0 and below 1, "
                "and settle at most trigger"
            )

    def closed_to(self, topic: str) -> frozenset[int]:
        """The brokers that a topic is kept off; none where plans do not go by load."""
        named = (one.brokers for one in self.keep_off if self.plan and fnmatchcase(topic, one.topics))
        return frozenset(broker for brokers in named for broker in brokers)


class Policy(Struct, frozen=True, forbid_unknown_fields=True):
    """What the planner does for a cluster, recorded with every plan that it makes.

    ``grace`` is how long a failed broker may stay away before its replicas are placed elsewhere; ``settle`` is how long
    a burst of joins or failures must be quiet before one plan answers all of it.
    """

    strategy: StrategyName = "balanced"
    default_partitions: Count = 1
    default_replication_factor: Count = 1
    on_failed: Literal["heal", "nothing"] = "heal"
    on_decommissioned: Literal["heal", "nothing"] = "heal"
    on_unregistered: Literal["heal", "nothing"] = "heal"
    on_joined: Literal["nothing", "rebalance"] = "nothing"
    on_drift: Literal["adopt", "report", "restore"] = "adopt"
    grace: Duration = Duration("30m")
    settle: Duration = Duration("30s")
    min_insync_replicas: Count = 1
    wave_moves: Count = 5
    max_moves: Count | None = None
    exclude_topics: tuple[str, ...] = ()
    exclude_brokers: tuple[BrokerId, ...] = ()
    approval: tuple[Gated, ...] = ("rebalance",)
    leaders: Leaders = "even"
    loads: LoadPolicy = field(default_factory=LoadPolicy)

    def closed_to(self, topic: str) -> frozenset[int]:
        """The brokers that get no replica of a topic."""
        return self.loads.closed_to(topic).union(self.exclude_brokers)

    def to_json(self) -> str:
        """The canonical text that is recorded with each plan."""
        return msgspec.json.encode(self, enc_hook=str, order="sorted").decode()

    @classmethod
    def from_json(cls, text: str) -> Policy:
        """The policy that is on record. Where it does not speak of leaders, heals still evened them out everywhere.

        Raises:
            MsgspecError: the text is not a policy.
        """
        known = {"leaders": "everywhere"} | msgspec.json.decode(text, type=dict[str, Any])
        return convert(known, cls)
