"""The placement core: pure functions on values, NumPy only.

No Spark, no clock, no I/O, no logging, no global randomness. Same input, same output, byte for byte.
"""
