"""Balanced placement of new topics."""
