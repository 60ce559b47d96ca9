"""Kafka's side of applying plans: the cluster as it is, what is asked of it, and throttles."""
