"""Parallel text for translation: the WMT corpora of the papers, from archives to binary data."""
