"""A small HTTP server that answers queries as Prometheus documents it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs


@contextmanager
def prometheus(answers: dict[str, Any], status: int = 200) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """A server that answers queries; its address, and of every request path, query and credentials."""
    asked: list[tuple[str, str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = self.rfile.read(int(self.headers["Content-Length"])).decode()
            (query,) = parse_qs(form)["query"]
            asked.append((self.path, query, self.headers.get("Authorization", "")))
            answer = answers[query]
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "/elsewhere")
            self.end_headers()
            self.wfile.write(answer if isinstance(answer, bytes) else json.dumps(answer).encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


def vector(*series: tuple[dict[str, str], str]) -> dict[str, Any]:
    """An instant vector as Prometheus documents it."""
    result = [{"metric": labels, "value": [1435781451.781, value]} for labels, value in series]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


def labels(partition: str, **more: str) -> dict[str, str]:
    return {"topic": "t", "partition": partition, **more}
