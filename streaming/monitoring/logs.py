"""What the job says while it runs: sentences for a person, or one JSON object a line for a log store."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Final, Literal

from rich.console import Console
from rich.text import Text

from streaming.spark.failures import reason_of

FIELDS: Final = ("cluster_id", "batch_id", "plan_version", "kind", "event_id", "outcome", "place")
"""What a record may say of itself beside its message, as columns of the tables are called."""

ROOT: Final = "streaming"

_STYLES: Final = {"rejected": "yellow", "malformed": "red", "stale": "yellow"}


def log_to_screen(form: Literal["text", "json"]) -> None:
    """Send what this package logs to standard error, in one of the two forms."""
    root = logging.getLogger(ROOT)
    handler: logging.Handler = Sentences() if form == "text" else logging.StreamHandler()
    if form == "json":
        handler.setFormatter(JsonLines())
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    root.propagate = False


class JsonLines(logging.Formatter):
    """One object a line: time, level, logger, message, and the fields that the record has."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line of JSON; of an error the reason, without its stack."""
        found = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info and record.exc_info[1] is not None:
            found["error"] = reason_of(record.exc_info[1])
        fields = {name: value for name in FIELDS if (value := getattr(record, name, None)) is not None}
        return json.dumps(found | fields, ensure_ascii=False)


class Sentences(logging.Handler):
    """A line a record, coloured on a terminal."""

    def __init__(self) -> None:
        super().__init__()
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)

    def emit(self, record: logging.LogRecord) -> None:
        """Print the message; what concerns no cluster is dim, and trouble is yellow or red."""
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text += f": {reason_of(record.exc_info[1])}"
        style = _STYLES.get(getattr(record, "outcome", ""), "")
        if record.levelno >= logging.WARNING:
            style = style or "yellow"
        elif not hasattr(record, "batch_id"):
            style = "dim"
        self._console.print(Text(text, style=style))
