"""Downloads that resume and verify, archives, and the dumps of Wikipedia."""
