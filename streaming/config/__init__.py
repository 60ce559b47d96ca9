"""The conf file: what it may say, its defaults, and errors that name file, key and reason."""

from streaming.config.collecting import Capacities, Capacity, Collect, CsvRates, PrometheusRates
from streaming.config.file import Config, load_config, parse_config
from streaming.config.policy import LoadPolicy, Policy
from streaming.config.running import Job, Monitoring, Tables
from streaming.config.sources import DeltaSource, FilesSource, Kafka, KafkaSource, Source

__all__ = [
    "Capacities",
    "Capacity",
    "Collect",
    "Config",
    "CsvRates",
    "DeltaSource",
    "FilesSource",
    "Job",
    "Kafka",
    "KafkaSource",
    "LoadPolicy",
    "Monitoring",
    "Policy",
    "PrometheusRates",
    "Source",
    "Tables",
    "load_config",
    "parse_config",
]
