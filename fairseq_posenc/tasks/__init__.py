"""fairseq tasks that know of positions."""
