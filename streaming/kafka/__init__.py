"""Real Kafka clusters: how they are reached, and what they look like."""
