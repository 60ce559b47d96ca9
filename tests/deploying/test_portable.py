"""The job leaves to Spark what is Spark's: outside of the session's start nothing reaches below the DataFrame API."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path

from streaming.config import parse_config
from streaming.job.microbatch import MicroBatches

STREAMING = Path(__file__).parents[2] / "streaming"
BELOW = {"_jvm", "_jsc", "_sc", "_jdf", "_jsparkSession", "sparkContext", "SparkContext", "rdd", "parallelize"}
STARTS_A_JVM = "spark/session.py"


def names(path: Path) -> set[str]:
    """Every name and attribute in a module."""
    tree = ast.walk(ast.parse(path.read_text()))
    return {n.attr if isinstance(n, ast.Attribute) else n.id for n in tree if isinstance(n, (ast.Attribute, ast.Name))}


def test_no_module_but_the_session_reaches_below_dataframes() -> None:
    found = {str(path.relative_to(STREAMING)): names(path) & BELOW for path in STREAMING.rglob("*.py")}
    assert {path: used for path, used in found.items() if used} == {STARTS_A_JVM: {"SparkContext"}}


def test_the_batch_function_is_pickled_with_its_conf_alone() -> None:
    config = parse_config('[tables]\nroot = "/t"\n', "test")
    batches = MicroBatches(config, observer=print, meter=print)
    copy = pickle.loads(pickle.dumps(batches))
    assert copy.config == config
    assert (copy.observer, copy.meter) == (None, None)
