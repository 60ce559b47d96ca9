"""What callers may hand in, checked before it becomes an array: there a wrong type or size would be cut to fit.

Every check takes the value and the name that it has for the caller, and gives back what the core works on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from placement.arrays import MAX_ID, NO_BROKER, Int32Array, Int64Array
from placement.errors import (
    InvalidArgumentError,
    InvalidAssignmentError,
    InvalidBrokerError,
    InvalidLimitError,
    InvalidReplicationFactorError,
)

T = TypeVar("T")
_SHOWN = 60


def shown(value: object) -> str:
    """A value on one short line, whatever it is."""
    try:
        text = " ".join(repr(value).split())
    except Exception:
        return f"of type {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def is_whole(value: object, least: int, most: int) -> bool:
    """Whether it is an integer, of Python or NumPy and no boolean, within these bounds."""
    return _is_integer(value) and least <= int(value) <= most  # type: ignore[call-overload]


def _is_integer(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def whole(
    value: Any,
    name: str,
    least: int | None = None,
    most: int | None = None,
    error: type[InvalidArgumentError] = InvalidArgumentError,
) -> int:
    """A whole number within these bounds.

    Raises:
        InvalidArgumentError: it is something else; ``error`` instead, where one of its kinds is given.
    """
    if not _is_integer(value):
        raise error(f"{name} is {shown(value)}: it must be a whole number", name=name, value=value)
    number = int(value)
    if least is not None and number < least:
        raise error(f"{name} is {shown(number)}: it must be at least {least}", name=name, value=number)
    if most is not None and number > most:
        raise error(f"{name} is {shown(number)}: it must be at most {most}", name=name, value=number)
    return number


def limit(value: Any, name: str, least: int = 0) -> int | None:
    """A whole number from ``least`` on, or None.

    Raises:
        InvalidLimitError: it is something else.
    """
    return None if value is None else whole(value, name, least, error=InvalidLimitError)


def fraction(value: Any, name: str, error: type[InvalidArgumentError]) -> float:
    """A number, not necessarily whole; not a number (NaN) is none.

    Raises:
        InvalidArgumentError: it is something else, as the given kind of it.
    """
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or value != value:  # noqa: PLR0124 - NaN
        raise error(f"{name} is {shown(value)}: it must be a number", name=name, value=value)
    return value  # type: ignore[no-any-return]


def flag(value: Any, name: str) -> bool:
    """True or False.

    Raises:
        InvalidArgumentError: it is something else.
    """
    if not isinstance(value, bool | np.bool_):
        raise InvalidArgumentError(f"{name} is {shown(value)}: it must be True or False", name=name, value=value)
    return bool(value)


def text(value: Any, name: str, error: type[InvalidArgumentError] = InvalidArgumentError) -> str:
    """A string.

    Raises:
        InvalidArgumentError: it is something else; ``error`` instead, where one of its kinds is given.
    """
    if not isinstance(value, str):
        raise error(f"{name} is {shown(value)}: it must be a string", name=name, value=value)
    return value


def instance(value: Any, kind: type[T], name: str) -> T:
    """Let only values of a type of this package pass.

    Raises:
        InvalidArgumentError: it is something else.
    """
    if not isinstance(value, kind):
        raise InvalidArgumentError(
            f"{name} is {shown(value)}: it must be of type {kind.__name__}", name=name, value=value
        )
    return value


def instances(values: Any, kind: type[T], name: str) -> tuple[T, ...]:
    """A list of values of a type of this package.

    Raises:
        InvalidArgumentError: it is something else, or something else is in it.
    """
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidArgumentError(
            f"{name} is {shown(values)}: it must be a list of {kind.__name__}", name=name, value=values
        )
    try:
        listed = tuple(values)
    except TypeError as error:  # an array without dimensions
        raise InvalidArgumentError(f"{name} is no list: {error}", name=name, value=values) from error
    for value in listed:
        if not isinstance(value, kind):
            raise InvalidArgumentError(
                f"{name} has {shown(value)} in it: each must be a {kind.__name__}", name=name, value=value
            )
    return listed


def choice(value: Any, name: str, choices: Sequence[str]) -> None:
    """One of some words.

    Raises:
        InvalidLimitError: it is something else.
    """
    if not isinstance(value, str) or value not in choices:
        raise InvalidLimitError(
            f"{name} is {shown(value)}: it must be one of {', '.join(choices)}", name=name, value=value
        )


def mapping(value: Any, name: str) -> Mapping[Any, Any]:
    """A mapping.

    Raises:
        InvalidArgumentError: it is something else.
    """
    if not isinstance(value, Mapping):
        raise InvalidArgumentError(f"{name} is {shown(value)}: it must be a mapping", name=name, value=value)
    return value


def replication_factor(value: Any, name: str, *, most: int) -> int:
    """A replication factor from 1 to ``most``; as many columns are made of it.

    Raises:
        InvalidReplicationFactorError: it is something else.
    """
    if is_whole(value, 1, most):
        return int(value)
    problem = "it must be a whole number"
    if _is_integer(value):
        problem = "it must be at least 1" if value < 1 else f"that is above the {most} brokers"
    raise InvalidReplicationFactorError(f"{name} is {shown(value)}: {problem}", replication_factor=value, brokers=most)


def topics(value: Any, name: str) -> frozenset[str]:
    """A collection of topic names; one name alone would be taken for its letters.

    Raises:
        InvalidAssignmentError: it is something else.
    """
    if not _is_collection(value):
        raise InvalidAssignmentError(f"{name} is {shown(value)}: it must be a list of topic names")
    for topic in value if set(map(type, value)) - {str} else ():
        if not isinstance(topic, str):
            raise InvalidAssignmentError(f"{name} names {shown(topic)}: a topic's name is a string")
    return frozenset(value)


def broker_ids(value: Any, name: str) -> frozenset[int]:
    """A collection of broker ids.

    Raises:
        InvalidBrokerError: it is something else.
    """
    if not _is_collection(value):
        raise InvalidBrokerError(
            f"{name} is {shown(value)}: it must be a list of broker ids", broker=value, field="id", value=value
        )
    for broker in value:
        if not is_whole(broker, 0, MAX_ID):
            raise InvalidBrokerError(
                f"{name} names {shown(broker)}: a broker id is an integer from 0 to {MAX_ID}",
                broker=broker,
                field="id",
                value=broker,
            )
    return frozenset(int(broker) for broker in value)


def _is_collection(value: object) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 1
    return isinstance(value, Collection) and not isinstance(value, str | bytes)


def by_topic(value: Any, name: str, check: Callable[[Any, str], Any]) -> dict[str, Any]:
    """A mapping from topic names to values that ``check`` takes, given the value and what it is of.

    Raises:
        InvalidArgumentError, InvalidAssignmentError: it is no such mapping.
        PlacementError: what ``check`` raises.
    """
    given = mapping({} if value is None else value, name)
    topics(list(given), name)
    return {topic: check(of, f"{name} of topic {topic}") for topic, of in sorted(given.items())}


def matrix(value: Any, name: str, rows: int | None = None) -> Int32Array:
    """Broker ids in rows, int32, shape ``(n, r)``, padded with ``NO_BROKER``.

    Raises:
        InvalidAssignmentError: it is no matrix of integers, has other than the given number of rows, or one is no id.
    """
    array = whole_numbers(value, name)
    if array.ndim != 2:
        raise InvalidAssignmentError(f"{name} has shape {array.shape}: it must be a matrix, one row a partition")
    _check_rows(array, name, rows)
    return _ids(array, name, NO_BROKER)


def column(value: Any, name: str, rows: int | None = None, *, least: int = 0, most: int = MAX_ID) -> Int32Array:
    """Ids or places in a column, int32, shape ``(n,)``.

    Raises:
        InvalidAssignmentError: it is no column of integers, has other than the given number of rows, or one is out of
            bounds.
    """
    array = whole_numbers(value, name)
    if array.ndim != 1:
        raise InvalidAssignmentError(f"{name} has shape {array.shape}: it must be a column")
    _check_rows(array, name, rows)
    return _ids(array, name, least, most)


def amounts(value: Any, name: str, rows: int | None = None) -> Int64Array:
    """Counts or bytes in a column, int64, shape ``(n,)``.

    Raises:
        InvalidAssignmentError: it is no column of integers of 64 bits, or has other than the given number of rows.
    """
    array = whole_numbers(value, name)
    if array.ndim != 1:
        raise InvalidAssignmentError(f"{name} has shape {array.shape}: it must be a column")
    if array.dtype == np.uint64 and array.size and int(array.max()) >= 1 << 63:
        raise InvalidAssignmentError(f"{name} has {int(array.max())}: it must be below 2^63")
    _check_rows(array, name, rows)
    return np.asarray(array, np.int64)


def changed(columns: Any, rows: int) -> None:
    """The columns of changed partitions: topics, topic_index, partition, before and after.

    Raises:
        InvalidAssignmentError: a column is none, has other than the given number of rows, or holds what is no id.
    """
    if not isinstance(columns.topics, Sequence):
        raise InvalidAssignmentError(f"topics is {shown(columns.topics)}: it must be a list of topic names")
    topics(columns.topics, "topics")
    for name in ("topic_index", "partition", "before", "after"):
        if not isinstance(getattr(columns, name), np.ndarray):
            raise InvalidAssignmentError(f"{name} is {shown(getattr(columns, name))}: it must be an array of NumPy")
    column(columns.topic_index, "topic_index", rows, most=len(columns.topics) - 1)
    column(columns.partition, "partition", rows)
    matrix(columns.before, "before", rows)
    matrix(columns.after, "after", rows)


def whole_numbers(value: Any, name: str) -> np.ndarray[Any, np.dtype[Any]]:
    """An array of integers of any shape.

    Raises:
        InvalidAssignmentError: it is something else.
    """
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidAssignmentError(f"{name} cannot be an array of whole numbers: {shown(value)}") from error
    if array.dtype.kind not in "iu" and (array.size or not array.ndim):
        raise InvalidAssignmentError(
            f"{name} is {shown(value)}: it must be an array of whole numbers, and is one of {array.dtype}"
        )
    return array


def _ids(array: Any, name: str, least: int, most: int = MAX_ID) -> Int32Array:
    least_is, most_is = (int(array.min()), int(array.max())) if array.size else (least, most)
    if least_is < least or most_is > most:
        wrong = least_is if least_is < least else most_is
        allowed = "be empty" if most < 0 else f"have integers from {max(0, least)} to {most}"
        raise InvalidAssignmentError(f"{name} has {wrong}: it must {allowed}")
    return np.asarray(array, np.int32)


def _check_rows(array: Any, name: str, rows: int | None) -> None:
    if rows is not None and array.shape[0] != rows:
        raise InvalidAssignmentError(f"{name} has {array.shape[0]} rows: it must have {rows}, one for each partition")
