"""Steps that give, take and exchange replicas."""
