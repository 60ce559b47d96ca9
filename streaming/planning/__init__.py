"""What is decided: the state of a cluster, and from events to plan versions. No Spark, no tables."""
