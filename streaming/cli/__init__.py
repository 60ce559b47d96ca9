"""The command line. Spark is imported by ``run`` alone, so that everything else starts at once."""

from __future__ import annotations

import gc
import os
import sys

from streaming.cli.main import cli
from streaming.job.garbage import SELDOM


class WithoutPandas:
    """Makes pandas look as if it were not installed.

    Arrow imports it only to ask whether a list is a frame: 0.3 s of CPU in a command that takes 0.5 without.
    """

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        """Refuse pandas; say nothing about anything else.

        Raises:
            ModuleNotFoundError: it is pandas.
        """
        if fullname == "pandas":
            raise ModuleNotFoundError("commands do without pandas", name=fullname)


def main() -> None:
    """Entry point of ``replica-planner``. Returns on success: on Databricks even ``sys.exit(0)`` fails a task."""
    if sys.argv[1:2] != ["run"]:  # Spark needs pandas
        sys.meta_path.insert(0, WithoutPandas())
        gc.set_threshold(*SELDOM)
        os.environ.setdefault(
            "RUST_LOG", "error"
        )  # warnings of the storages' clients come again as the reason of an error
    try:
        cli.main()
    except SystemExit as end:
        if end.code:
            raise


__all__ = ["cli", "main"]
