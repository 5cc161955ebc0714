"""Scores of runs, and tables and pictures of many of them."""
