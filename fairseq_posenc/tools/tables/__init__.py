"""Many scores beside each other: tables, pictures, and the papers' own figures."""
