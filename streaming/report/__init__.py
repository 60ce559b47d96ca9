"""A plan and the history of its cluster as one HTML file that loads nothing from anywhere."""

from __future__ import annotations

import json
import re
from html import escape
from importlib.resources import files
from typing import Any

from streaming.history.tables import History
from streaming.report.data import report_data
from streaming.report.story import Line, standing, told


def write_report(history: History, cluster: str, version: int | None = None) -> str:
    """The report of a plan version, by default the newest that moves replicas.

    Raises:
        HistoryError: the cluster has no such version.
    """
    data = report_data(history, cluster, version)
    return page(data)


def page(data: dict[str, Any]) -> str:
    """The page around the data: styles, the charts' library and the script, all inlined."""
    from plotly.offline import get_plotlyjs

    parts = files(__package__)
    plan = data["plan"]
    title = f"{data['cluster']} version {plan['version']}: {plan['kind']}"
    title += "" if plan["effective"] else f" ({plan['approval']})"
    values = {
        "title": escape(title),
        "now": "".join(map(_line, standing(data["cluster"], data["now"]))),
        "story": "".join(f"<p>{escape(sentence)}</p>" for sentence in told(data)),
        "style": (parts / "report.css").read_text(encoding="utf-8"),
        "library": get_plotlyjs(),
        "data": json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
        "script": (parts / "report.js").read_text(encoding="utf-8"),
    }
    text = (parts / "page.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{ (\w+) \}\}", lambda place: values[place[1]], text)


def _line(line: Line) -> str:
    name, text, urgent = line
    mark = ' class="urgent"' if urgent else ""
    return f"<dt>{escape(name)}</dt><dd{mark}>{escape(text)}</dd>"
