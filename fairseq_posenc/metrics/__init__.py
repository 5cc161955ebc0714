"""Metrics of fine-tuning that tasks and tools share, computed over whole sets."""
