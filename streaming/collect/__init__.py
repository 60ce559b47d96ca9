"""Watching a real Kafka cluster: what changes there becomes events for the job."""
