"""Scoring of translations by length, and the tables and plots made of the scores."""
