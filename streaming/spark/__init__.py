"""The engine: Java, JARs, and the Spark session."""
