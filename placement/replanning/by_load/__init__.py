"""Steps of planning by real load. See ``docs/algorithms/load_aware.md``."""
