"""Seeing the job run: what each batch cost, whether the query is alive, and who is told."""
