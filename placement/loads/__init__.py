"""Planning by real load: bytes on disk, bytes in and out, CPU. See ``docs/algorithms/load_aware.md``."""
