"""Errors arrive whole in another process: verification and executors have some."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import pytest

from streaming.errors import StreamingError


def every_kind(base: type[StreamingError] = StreamingError) -> list[type[StreamingError]]:
    return [base, *(kind for child in base.__subclasses__() for kind in every_kind(child))]


def arguments_of(kind: type[StreamingError]) -> dict[str, Any]:
    """A value for every keyword that the initialiser asks for."""
    wanted = inspect.signature(kind.__init__).parameters.values()
    return {p.name: f"the {p.name}" for p in wanted if p.kind is p.KEYWORD_ONLY}


@pytest.mark.parametrize("kind", every_kind(), ids=lambda kind: kind.__name__)
def test_an_error_says_and_carries_the_same_after_pickling(kind: type[StreamingError]) -> None:
    error = kind("a sentence", **arguments_of(kind))
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (kind, "a sentence", vars(error))
