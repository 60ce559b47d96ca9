"""The placement core: pure functions on values, NumPy only.

No Spark, no clock, no I/O, no logging, no global randomness. Same input, same output, byte for byte.
"""

from placement.adminutils import place_adminutils
from placement.adminutils_infer import extend_adminutils, infer_start
from placement.model import Assignment, Broker
from placement.striped import place_striped

__all__ = [
    "Assignment",
    "Broker",
    "extend_adminutils",
    "infer_start",
    "place_adminutils",
    "place_striped",
]
