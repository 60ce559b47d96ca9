"""Reassignment JSON exactly as Kafka prints it, read in columns.

A layout of a cluster has hundreds of thousands of partitions, and most files are as the tool or this package
printed them: without blanks, fields in one order, every log directory ``any``. Those need no tree of objects.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from placement.model import NO_BROKER, Assignment

_HEAD: Final = '{"version":1,"partitions":['
_TAIL: Final = "]}"
_NUMBER: Final = r"(?:0|[1-9][0-9]{0,9})"
_ENTRY: Final = re.compile(
    r'\{"topic":"([^"\\\x00-\x1f\ud800-\udfff]+)",'
    rf'"partition":({_NUMBER}),"replicas":\[({_NUMBER}(?:,{_NUMBER})*)\],"log_dirs":\[("any"(?:,"any")*)\]\}}'
)
_ENTRY_LENGTH: Final = len('{"topic":"","partition":,"replicas":[],"log_dirs":[]}')
_MAX_INT: Final = 2**31 - 1


def assignment_as_printed(text: str) -> Assignment | None:
    """The layout, or None where the text is not exactly in that form, right or wrong.

    Raises:
        InvalidAssignmentError: a partition given twice, or a replica list that repeats a broker.
    """
    if not (text.startswith(_HEAD) and text.endswith(_TAIL)):
        return None
    entries = _ENTRY.findall(text)
    if not entries:
        return None
    topics, partitions, replicas, log_dirs = zip(*entries, strict=True)
    # Matches do not overlap, so with the commas between them they fill the text only if nothing else is there.
    filled = sum(len("".join(column)) for column in (topics, partitions, replicas, log_dirs))
    if filled + len(entries) * (_ENTRY_LENGTH + 1) - 1 + len(_HEAD) + len(_TAIL) != len(text):
        return None
    lengths = np.fromiter((ids.count(",") for ids in replicas), np.int64, len(entries)) + 1
    directories = np.fromiter((dirs.count(",") for dirs in log_dirs), np.int64, len(entries)) + 1
    ids = np.fromstring(",".join(partitions), np.int64, sep=",")
    brokers = np.fromstring(",".join(replicas), np.int64, sep=",")
    if (lengths != directories).any() or max(ids.max(), brokers.max()) > _MAX_INT:
        return None
    matrix = np.full((len(entries), int(lengths.max())), NO_BROKER, np.int32)
    matrix[np.arange(matrix.shape[1]) < lengths[:, None]] = brokers
    number: dict[str, int] = {}
    index = np.fromiter((number.setdefault(topic, len(number)) for topic in topics), np.int32, len(entries))
    return Assignment(list(number), index, ids.astype(np.int32), matrix)
