"""Hand-written attention for a CPU: forward and backward in chunks that fit its caches."""
