"""Carrying plans out on a real cluster."""
