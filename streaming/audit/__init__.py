"""Checking the record: derived again, compared, and as DataFrames."""

from typing import Any


def __getattr__(name: str) -> Any:
    """``Audit`` comes with Spark; what ``verify`` needs of this package does without."""
    if name == "Audit":
        from streaming.audit.frames import Audit

        return Audit
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
