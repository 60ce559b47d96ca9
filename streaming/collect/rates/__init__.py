"""Rates that the admin API does not have, from a CSV file or from Prometheus."""
