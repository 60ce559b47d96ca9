"""The streaming job around the placement core, and the command line."""
