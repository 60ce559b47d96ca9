"""The JSON forms of Kafka's reassignment tool, in and out.

Out is byte for byte what ``kafka-reassign-partitions`` prints. In is stricter than the tool: what it takes
by chance (text after the document, negative ids) is refused, with the place of the error. Source of the
forms: ``org.apache.kafka.tools.reassign.ReassignPartitionsCommand``; the old topic form is the one that
``/brokers/topics/<topic>`` has in ZooKeeper.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NoReturn

from placement import checks
from placement.errors import InvalidArgumentError, InvalidJsonError
from placement.kafka.java_random import utf16_order
from placement.kafka.reassignment_columns import assignment_as_printed
from placement.model import Assignment

_MAX_INT: Final = 2**31 - 1
_SUPPORTED_VERSION: Final = 1
_ANY_LOG_DIR: Final = '"any"'

Row = tuple[str, int, list[int]]


def assignment_to_json(assignment: Assignment) -> str:
    """Kafka's reassignment JSON of the whole layout, on one line, without a line break at the end.

    Topics are in the order of ``String.compareTo``, partitions by id; every log directory is ``any``.
    """
    return reassignment_json(assignment.rows())


def reassignment_json(rows: Iterable[tuple[str, int, Sequence[int]]]) -> str:
    """Kafka's reassignment JSON of ``(topic, partition, replicas)`` rows, which come by topic and partition id."""
    listed = list(rows)
    names = {topic: json.dumps(topic, ensure_ascii=False) for topic in {topic for topic, _, _ in listed}}
    if not all(topic.isascii() for topic in names):
        listed.sort(key=lambda row: (utf16_order(row[0]), row[1]))
    dirs = {size: ",".join([_ANY_LOG_DIR] * size) for size in {len(replicas) for _, _, replicas in listed}}
    entries = [
        f'{{"topic":{names[topic]},"partition":{partition},"replicas":[{",".join(map(str, replicas))}],'
        f'"log_dirs":[{dirs[len(replicas)]}]}}'
        for topic, partition, replicas in listed
    ]
    return f'{{"version":1,"partitions":[{",".join(entries)}]}}'


def reassignment_with_dirs_json(rows: Iterable[tuple[str, int, Sequence[int], Sequence[str]]]) -> str:
    """Kafka's reassignment JSON of ``(topic, partition, replicas, log directories)`` rows."""
    ordered = sorted(rows, key=lambda row: (utf16_order(row[0]), row[1]))
    entries = [
        {"topic": topic, "partition": partition, "replicas": list(replicas), "log_dirs": list(dirs)}
        for topic, partition, replicas, dirs in ordered
    ]
    return json.dumps({"version": 1, "partitions": entries}, ensure_ascii=False, separators=(",", ":"))


def assignment_from_json(text: str, *, topic: str = "topic") -> Assignment:
    """Read a layout from reassignment JSON, or from the old topic form.

    Args:
        text: ``{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]},...]}``, log directories
            are checked and dropped; or ``{"version":1,"partitions":{"10":[1,2],...}}``, gaps in the ids kept.
        topic: the name that the rows of the old form get, because it has none.

    Raises:
        InvalidJsonError: not that form; ``place`` says where.
        InvalidAssignmentError: a partition given twice, a replica list that is empty or repeats a broker.
    """
    if not isinstance(text, str):
        _refuse("$", text, "text")
    if not checks.text(topic, "topic", InvalidArgumentError):
        raise InvalidArgumentError("topic is empty: it must be the name of a topic", name="topic", value=topic)
    printed = assignment_as_printed(text)
    if printed is not None:
        return printed
    document = read_document(text)
    partitions = document.get("partitions")
    if isinstance(partitions, dict):
        return Assignment.from_rows(_old_rows(partitions, topic))
    if not isinstance(partitions, list):
        _refuse("$.partitions", partitions, "a list, or an object of replica lists")
    return Assignment.from_rows(_rows(partitions))


def topics_to_move(text: str) -> tuple[str, ...]:
    """Topic names of a topics-to-move file, ``{"topics":[{"topic":"t"},...],"version":1}``, in its order.

    Raises:
        InvalidJsonError: not that form, or a topic is named more than once.
    """
    document = read_document(text)
    entries = document.get("topics", [])
    if not isinstance(entries, list):
        _refuse("$.topics", entries, "a list")
    names = [_topic(_fields(entry, f"$.topics[{i}]"), f"$.topics[{i}]") for i, entry in enumerate(entries)]
    twice = list(dict.fromkeys(name for name in names if names.count(name) > 1))
    if twice:
        raise InvalidJsonError(
            f"the topics to move contain duplicate entries: [{','.join(twice)}]", place="$.topics", value=tuple(twice)
        )
    return tuple(names)


def read_document(text: str) -> dict[str, object]:
    """The JSON object of a versioned file.

    Raises:
        InvalidJsonError: no JSON, an object that repeats a key, no object, or a version other than 1.
    """
    try:
        document = json.loads(text, object_pairs_hook=_distinct_keys, parse_constant=_no_constant)
    except InvalidJsonError:
        raise
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InvalidJsonError(f"not valid JSON at {place}: {error.msg}", place=place) from error
    except (ValueError, RecursionError) as error:
        raise InvalidJsonError(f"not valid JSON: {error}") from error
    if not isinstance(document, dict):
        _refuse("$", document, "an object")
    version = document.get("version", _SUPPORTED_VERSION)
    if type(version) is not int or version != _SUPPORTED_VERSION:
        _refuse("$.version", version, "1, the only version there is")
    return document


def _rows(entries: list[object]) -> Iterator[Row]:
    for i, entry in enumerate(entries):
        place = f"$.partitions[{i}]"
        fields = _fields(entry, place)
        topic = _topic(fields, place)
        partition = fields.get("partition")
        if type(partition) is not int or not 0 <= partition <= _MAX_INT:
            _refuse(f"{place}.partition", partition, f"an integer from 0 to {_MAX_INT}")
        replicas = _replicas(fields.get("replicas"), f"{place}.replicas")
        if "log_dirs" in fields:
            _check_log_dirs(fields["log_dirs"], len(replicas), f"{place}.log_dirs")
        yield topic, partition, replicas


def _old_rows(partitions: dict[str, object], topic: str) -> Iterator[Row]:
    for name, replicas in partitions.items():
        place = f"$.partitions[{json.dumps(name)}]"
        if not (name.isascii() and name.isdigit() and str(int(name)) == name and int(name) <= _MAX_INT):
            _refuse(place, name, f"named by an integer from 0 to {_MAX_INT}")
        yield topic, int(name), _replicas(replicas, place)


def _fields(entry: object, place: str) -> dict[str, object]:
    if not isinstance(entry, dict):
        _refuse(place, entry, "an object")
    return entry


def _topic(fields: dict[str, object], place: str) -> str:
    topic = fields.get("topic")
    if not isinstance(topic, str) or not topic:
        _refuse(f"{place}.topic", topic, "the name of a topic")
    if not topic.isascii() and any("\ud800" <= c <= "\udfff" for c in topic):
        _refuse(f"{place}.topic", topic, "text without lone surrogates")
    return topic


def _replicas(value: object, place: str) -> list[int]:
    if not isinstance(value, list):
        _refuse(place, value, "a list of broker ids")
    for i, broker in enumerate(value):
        if type(broker) is not int or not 0 <= broker <= _MAX_INT:
            _refuse(f"{place}[{i}]", broker, f"a broker id, an integer from 0 to {_MAX_INT}")
    return value


def _check_log_dirs(value: object, replicas: int, place: str) -> None:
    if not isinstance(value, list) or not all(isinstance(path, str) for path in value):
        _refuse(place, value, "a list of paths")
    if len(value) != replicas:
        _refuse(place, value, f"as long as the replica list, {replicas}")


def _distinct_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidJsonError(f"a JSON object has the key {twice!r} more than once", place=twice, value=twice)
    return result


def _no_constant(name: str) -> NoReturn:
    raise InvalidJsonError(f"{name} is not JSON", value=name)


def _refuse(place: str, value: object, expected: str) -> NoReturn:
    raise InvalidJsonError(f"{place} is {checks.shown(value)}: it must be {expected}", place=place, value=value)
