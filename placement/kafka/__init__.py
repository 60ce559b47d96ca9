"""What Kafka itself computes: placers, partitioner, reassignment JSON."""
