"""The streaming job: the query, its batches, and the tables that it writes."""
