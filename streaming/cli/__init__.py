"""The command line. Spark is imported by ``run`` alone, so that everything else starts at once."""

from __future__ import annotations

import sys

from streaming.cli.main import cli


def main() -> None:
    """Entry point of ``replica-planner``."""
    sys.exit(cli.main(standalone_mode=True))


__all__ = ["cli", "main"]
