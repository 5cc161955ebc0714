"""What recipes ask of Python; no commands of a user."""
