"""Replanning: from a layout to the best balance that the least movement reaches."""
