"""The strategies for the partitions of topics, by name.

A new one is a module that implements :class:`~placement.strategies.strategy.Strategy`, and its line here: events, conf
and commands take their names from this table.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal

from placement.strategies.adminutils import AdminUtils
from placement.strategies.balanced import Balanced
from placement.strategies.strategy import Request, Strategy
from placement.strategies.striped import Striped

STRATEGIES: Final[Mapping[str, Strategy]] = {
    "balanced": Balanced(),
    "adminutils": AdminUtils(),
    "striped": Striped(),
}

if TYPE_CHECKING:
    StrategyName = str
else:
    StrategyName = Literal[tuple(STRATEGIES)]

__all__ = ["STRATEGIES", "Request", "Strategy", "StrategyName"]
