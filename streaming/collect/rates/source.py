"""Whatever the conf names as the source of rates."""

from __future__ import annotations

from pathlib import Path
from typing import assert_never

from streaming.collect.rates.csv_file import rates_in_csv
from streaming.collect.rates.prometheus import rates_in_prometheus
from streaming.collect.rates.values import Rates
from streaming.config import CsvRates, PrometheusRates


def read_rates(source: CsvRates | PrometheusRates | None) -> Rates:
    """What the source says now; nothing without one.

    Raises:
        InputError: it cannot be read, or says something else than rates; names place and reason.
    """
    match source:
        case None:
            return {}
        case CsvRates():
            return rates_in_csv(Path(source.path))
        case PrometheusRates():
            return rates_in_prometheus(source)
        case _:
            assert_never(source)
