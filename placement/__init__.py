"""The placement core: pure functions on values, NumPy only.

No Spark, no clock, no I/O, no logging, no global randomness. Same input, same output, byte for byte.
"""

from placement.assignors import Assignor, assign_consumers
from placement.balanced.place import place_balanced
from placement.errors import (
    DuplicateBrokerError,
    IncompleteRackError,
    InvalidArgumentError,
    InvalidAssignmentError,
    InvalidBrokerError,
    InvalidGroupError,
    InvalidJsonError,
    InvalidKeyError,
    InvalidLimitError,
    InvalidLoadError,
    InvalidPartitionError,
    InvalidPartitionsError,
    InvalidReplicationFactorError,
    InvalidStartIndexError,
    PlacementError,
)
from placement.kafka.adminutils.infer import extend_adminutils, infer_start
from placement.kafka.adminutils.place import place_adminutils
from placement.kafka.key_skew import key_skew
from placement.kafka.partitioner import partition_for_key, partitions_for_keys
from placement.kafka.striped import place_striped
from placement.loads.model import Band, Limits, Loads, LogDir, PartitionLoad
from placement.loads.report import LoadReport
from placement.model import Assignment, Broker
from placement.plan import Balance, Move, Moves, Replan, Unhealed
from placement.replanning.replan import replan
from placement.replica_counts import ReplicaCounts
from placement.terms import Terms
from placement.verification.verify import Change, Verification, Violation, verify, verify_moves
from placement.waves.cut import WaveLimits, Waves, in_waves, replicas_up

Load = ReplicaCounts  # what it was called; load is bytes and rates

__all__ = [
    "Assignment",
    "Assignor",
    "Balance",
    "Band",
    "Broker",
    "Change",
    "DuplicateBrokerError",
    "IncompleteRackError",
    "InvalidArgumentError",
    "InvalidAssignmentError",
    "InvalidBrokerError",
    "InvalidGroupError",
    "InvalidJsonError",
    "InvalidKeyError",
    "InvalidLimitError",
    "InvalidLoadError",
    "InvalidPartitionError",
    "InvalidPartitionsError",
    "InvalidReplicationFactorError",
    "InvalidStartIndexError",
    "Limits",
    "Load",
    "LoadReport",
    "Loads",
    "LogDir",
    "Move",
    "Moves",
    "PartitionLoad",
    "PlacementError",
    "Replan",
    "ReplicaCounts",
    "Terms",
    "Unhealed",
    "Verification",
    "Violation",
    "WaveLimits",
    "Waves",
    "assign_consumers",
    "extend_adminutils",
    "in_waves",
    "infer_start",
    "key_skew",
    "partition_for_key",
    "partitions_for_keys",
    "place_adminutils",
    "place_balanced",
    "place_striped",
    "replan",
    "replicas_up",
    "verify",
    "verify_moves",
]
