"""Vectors recorded from Kafka's released code, one JSON object a line: id, in, out."""

import json
from pathlib import Path
from typing import Any

from placement import Broker

CASES = Path(__file__).parents[1] / "cases"

Vector = dict[str, Any]


def vectors(name: str) -> list[Vector]:
    with (CASES / f"{name}.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def examples(kind: str) -> list[Vector]:
    """The worked examples of the literature of one kind."""
    listed: list[Vector] = json.loads((CASES / "seed_examples.json").read_text(encoding="utf-8"))
    return [example for example in listed if example["kind"] == kind]


def brokers_of(described: list[dict[str, Any]]) -> list[Broker]:
    """Kafka's fenced brokers are those that are dead here."""
    return [Broker(b["id"], b.get("rack"), state="dead" if b.get("fenced") else "alive") for b in described]
