"""Reading the tables without a JVM."""
