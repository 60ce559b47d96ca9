"""The two pieces of Java that decide what Kafka draws at random: its generator and its hash order.

A placement drawn by Kafka can be repeated only by drawing the same numbers in the same order, and some
of Kafka's loops run over a ``HashMap``, whose order follows from the hash codes of its keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from placement import checks
from placement.errors import PlacementError

T = TypeVar("T")

_MULTIPLIER: Final = 0x5DEECE66D
_ADDEND: Final = 0xB
_MASK: Final = (1 << 48) - 1
_LEAST_TABLE: Final = 16


class JavaRandom:
    """``java.util.Random``: the linear congruential generator that its documentation specifies.

    The same seed gives the same draws in every process and on every machine.
    """

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        """Start as Java does.

        Raises:
            InvalidArgumentError: the seed is no whole number.
        """
        self._state = (checks.whole(seed, "seed") ^ _MULTIPLIER) & _MASK

    def next_int(self, bound: int) -> int:
        """A number from 0 to ``bound - 1``, as ``nextInt(bound)`` gives it.

        Raises:
            PlacementError: bound is not positive.
        """
        if bound <= 0:
            raise PlacementError(f"a draw needs a bound above 0, not {bound}")
        if bound & -bound == bound:
            return (bound * self._next31()) >> 31
        while True:
            bits = self._next31()
            value = bits % bound
            # Java detects the incomplete last interval by the overflow of this sum.
            if bits - value + bound - 1 < 1 << 31:
                return value

    def _next31(self) -> int:
        self._state = (self._state * _MULTIPLIER + _ADDEND) & _MASK
        return self._state >> 17


def java_string_hash(text: str) -> int:
    """``String.hashCode()`` over UTF-16 code units, as an unsigned 32-bit number."""
    result = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for i in range(0, len(units), 2):
        result = (31 * result + (units[i] << 8 | units[i + 1])) & 0xFFFFFFFF
    return result


def topic_partition_hash(partition: tuple[str, int]) -> int:
    """``TopicPartition.hashCode()`` of a topic and partition id, as an unsigned 32-bit number."""
    return (31 * (31 + partition[1]) + java_string_hash(partition[0])) & 0xFFFFFFFF


def utf16_order(text: str) -> bytes:
    """A sort key that orders strings as ``String.compareTo`` does ("10" before "9")."""
    return text.encode("utf-16-be", "surrogatepass")


def java_hash_order(keys: Iterable[T], hash_code: Callable[[T], int]) -> list[T]:
    """Distinct keys in the order in which a ``java.util.HashMap`` filled in this order gives them out.

    A bucket keeps its keys in the order of insertion, through every doubling of the table, and the
    table doubles when it is more than three quarters full.
    """
    distinct = list(dict.fromkeys(keys))
    table = _LEAST_TABLE
    while len(distinct) * 4 > table * 3:
        table *= 2

    def bucket(key: T) -> int:
        code = hash_code(key) & 0xFFFFFFFF
        return (code ^ code >> 16) & (table - 1)

    return sorted(distinct, key=bucket)
