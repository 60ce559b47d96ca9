"""Kafka's ``AdminUtils``: placement of replicas before KRaft, exactly."""
