"""Values that conf allows in several places, and how those are read that TOML has no type for."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from streaming.amounts import Written

T = TypeVar("T")
Text = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=1)]
BrokerId = Annotated[int, Meta(ge=0, le=2**31 - 1)]


def convert(document: Any, into: type[T]) -> T:
    """A document as values of a type.

    Raises:
        ValidationError: it is none of that type; the place is part of the text.
    """
    return msgspec.convert(document, into, dec_hook=_read)


def _read(kind: Any, value: Any) -> Any:
    if not issubclass(kind, Written):
        raise NotImplementedError(f"conf has no values of type {kind}")
    if not isinstance(value, str):
        raise TypeError(f"Expected `str`, got `{type(value).__name__}`")
    return kind(value)
