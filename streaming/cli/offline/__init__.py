"""Commands that need no tables: plans, placements, partitions and assignments of files."""
