"""The command group: one line on stderr for every error that a person can do something about."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import IO, Any, Final

import click

_COMMANDS: Final = {
    "run": "streaming.cli.job",
    "submit": "streaming.cli.job",
    "approve": "streaming.cli.deciding",
    "reject": "streaming.cli.deciding",
    "rollback": "streaming.cli.deciding",
    "resume": "streaming.cli.deciding",
    "maintain": "streaming.cli.job",
    "health": "streaming.cli.health",
    "collect": "streaming.cli.collecting",
    "apply": "streaming.cli.applying",
    "plans": "streaming.cli.reading",
    "show": "streaming.cli.reading",
    "status": "streaming.cli.reading",
    "describe": "streaming.cli.reading",
    "why": "streaming.cli.audit",
    "diff": "streaming.cli.audit",
    "report": "streaming.cli.audit",
    "events": "streaming.cli.reading",
    "place": "streaming.cli.offline.offline",
    "replan": "streaming.cli.offline.offline",
    "verify": "streaming.cli.verifying",
    "seals": "streaming.cli.verifying",
    "generate": "streaming.cli.offline.groups",
    "partition": "streaming.cli.offline.groups",
    "assign": "streaming.cli.offline.groups",
}

_SPARK: Final = ("pyspark", "delta", "pandas")
_WITHOUT_SPARK: Final = (
    "this command needs Spark, and this environment has no pyspark and delta-spark: "
    "install replica-planner[spark], or run it where Spark is"
)


class BadUsage(click.UsageError):
    """An argument that is missing, unknown or of the wrong kind, said in one line like every other error."""

    def __init__(self, error: click.UsageError) -> None:
        """Take over what click found."""
        super().__init__(error.format_message(), error.ctx)

    def show(self, file: IO[Any] | None = None) -> None:
        """Say it on stderr, with the command that explains how it is meant."""
        command = self.ctx.command_path if self.ctx else "replica-planner"
        reason = " ".join(self.message.split()).rstrip(".")
        click.echo(f"replica-planner: {reason}; see {command} --help", file=file, err=True)


class LazyGroup(click.Group):
    """Imports a command's module only when the command is used, and turns known errors into one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, in the order of the documentation."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now."""
        module = _COMMANDS.get(cmd_name)
        command = getattr(import_module(module), cmd_name) if module else None
        return command if isinstance(command, click.Command) else None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Without any argument the help is what was asked for."""
        return super().parse_args(ctx, args or ["--help"])

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Read the options before the command's name."""
        try:
            return super().make_context(*args, **kwargs)
        except click.UsageError as error:
            raise BadUsage(error) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; what went wrong with the input is said in one line, with exit code 2."""
        from placement.errors import PlacementError
        from streaming.errors import StreamingError

        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            raise BadUsage(error) from None
        except (StreamingError, PlacementError) as error:
            from streaming.cli.screens.render import on_one_line

            click.echo(f"replica-planner: {on_one_line(str(error))}", err=True)
            ctx.exit(2)
        except BrokenPipeError:
            ctx.exit(0)
        except ModuleNotFoundError as error:
            if error.name not in _SPARK:
                raise
            click.echo(f"replica-planner: {_WITHOUT_SPARK}", err=True)
            ctx.exit(2)


@click.group(
    "replica-planner",
    cls=LazyGroup,
    # Without colour: what names and reasons bring of a terminal's commands is not passed on to it.
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100, "color": False},
)
@click.version_option(version("replica-planner"), prog_name="replica-planner")
def cli() -> None:
    """Plan where Kafka's replicas live: versioned, explained, with the least movement.

    \b
    Examples:
      replica-planner run                                 the streaming job, with conf/local.toml
      replica-planner submit events.jsonl                 hand events to it
      replica-planner plans                               what it decided
      replica-planner place --brokers B.json --partitions 12 --replication-factor 3
    """


def conf_option(command: Any) -> Any:
    """``--conf``, the same on every command that reads one."""
    return click.option(
        "--conf",
        metavar="FILE",
        help="Conf file. Without it: $REPLICA_PLANNER_CONF, conf/local.toml, built-in defaults.",
    )(command)


def json_option(command: Any) -> Any:
    """``--json``, the same on every command that reads."""
    return click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")(command)
