"""What callers may hand in, checked before it becomes an array: there a wrong type or size would be cut to fit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from placement.errors import (
    InvalidAssignmentError,
    InvalidBrokerError,
    InvalidLimitError,
    InvalidReplicationFactorError,
    PlacementError,
)
from placement.model import MAX_ID, NO_BROKER, Int32Array


def is_whole(value: object, least: int, most: int) -> bool:
    """Whether it is an integer, of Python or NumPy and no boolean, within these bounds."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and least <= int(value) <= most


def limit(value: Any, name: str, least: int = 0) -> int | None:
    """A whole number from ``least`` on, or None.

    Raises:
        InvalidLimitError: it is something else.
    """
    if value is None:
        return None
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise InvalidLimitError(f"{name} is {value!r}: it must be a whole number", name=name, value=value)
    number = int(value)
    if number < least:
        raise InvalidLimitError(f"{name} is {number}: it must be at least {least}", name=name, value=number)
    return number


def flag(value: Any, name: str) -> bool:
    """True or False.

    Raises:
        PlacementError: it is something else.
    """
    if not isinstance(value, bool | np.bool_):
        raise PlacementError(f"{name} is {value!r}: it must be True or False")
    return bool(value)


def instance(value: Any, kind: type, name: str) -> None:
    """Let only values of a type of this package pass.

    Raises:
        PlacementError: it is something else.
    """
    if not isinstance(value, kind):
        raise PlacementError(f"{name} is {value!r:.80}: it must be of type {kind.__name__}")


def replication_factor(value: Any, name: str, *, most: int) -> int:
    """A replication factor from 1 to ``most``; as many columns are made of it.

    Raises:
        InvalidReplicationFactorError: it is something else.
    """
    if is_whole(value, 1, most):
        return int(value)
    number = isinstance(value, int | np.integer) and not isinstance(value, bool)
    problem = (
        ("must be at least 1" if value < 1 else f"is above the {most} brokers") if number else "is no whole number"
    )
    raise InvalidReplicationFactorError(
        f"replication factor {value!r} {problem}", replication_factor=value, brokers=most
    )


def topics(value: Any, name: str) -> frozenset[str]:
    """A collection of topic names; one name alone would be taken for its letters.

    Raises:
        InvalidAssignmentError: it is something else.
    """
    if isinstance(value, str | bytes) or not isinstance(value, Collection):
        raise InvalidAssignmentError(f"{name} is {value!r}: it must be a list of topic names")
    for topic in value:
        if not isinstance(topic, str):
            raise InvalidAssignmentError(f"{name} names {topic!r}: a topic's name is a string")
    return frozenset(value)


def broker_ids(value: Any, name: str) -> frozenset[int]:
    """A collection of broker ids.

    Raises:
        InvalidBrokerError: it is something else.
    """
    if isinstance(value, str | bytes) or not isinstance(value, Collection | np.ndarray):
        raise InvalidBrokerError(
            f"{name} is {value!r}: it must be a list of broker ids", broker=value, field="id", value=value
        )
    for broker in value:
        if not is_whole(broker, 0, MAX_ID):
            raise InvalidBrokerError(
                f"{name} names {broker!r}: a broker id is an integer from 0 to {MAX_ID}",
                broker=broker,
                field="id",
                value=broker,
            )
    return frozenset(int(broker) for broker in value)


def by_topic(value: Any, name: str, check: Callable[[Any, str], Any]) -> dict[str, Any]:
    """A mapping from topic names to values that ``check`` takes, given the value and what it is of.

    Raises:
        InvalidAssignmentError: it is no such mapping.
        PlacementError: what ``check`` raises.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidAssignmentError(f"{name} is {value!r}: it must be a mapping from topic names")
    topics(list(value), name)
    return {topic: check(given, f"{name} of topic {topic}") for topic, given in sorted(value.items())}


def matrix(value: Any, name: str) -> Int32Array:
    """Broker ids in rows, int32, shape ``(n, r)``, padded with ``NO_BROKER``.

    Raises:
        InvalidAssignmentError: it is no matrix of integers, or one is no broker id.
    """
    array = whole_numbers(value, name)
    if array.ndim != 2:
        raise InvalidAssignmentError(f"{name} has shape {array.shape}: it must be a matrix, one row a partition")
    return _narrowed(array, name, NO_BROKER)


def column(value: Any, name: str) -> Int32Array:
    """Ids in a column, int32, shape ``(n,)``.

    Raises:
        InvalidAssignmentError: it is no column of integers, or one is no id.
    """
    array = whole_numbers(value, name)
    if array.ndim != 1:
        raise InvalidAssignmentError(f"{name} has shape {array.shape}: it must be a column")
    return _narrowed(array, name, -MAX_ID)


def whole_numbers(value: Any, name: str) -> np.ndarray[Any, np.dtype[Any]]:
    """An array of integers of any shape.

    Raises:
        InvalidAssignmentError: it is something else.
    """
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidAssignmentError(f"{name} cannot be an array of numbers: {error}") from error
    if array.dtype.kind not in "iu" and array.size:
        raise InvalidAssignmentError(f"{name} has type {array.dtype}: it must be of integers")
    return array


def _narrowed(array: Any, name: str, least: int) -> Int32Array:
    if array.dtype != np.int32 and array.size and not least <= int(array.min()) <= int(array.max()) <= MAX_ID:
        wrong = int(array.min()) if int(array.min()) < least else int(array.max())
        raise InvalidAssignmentError(f"{name} has {wrong}: ids are integers from 0 to {MAX_ID}")
    return np.asarray(array, np.int32)
