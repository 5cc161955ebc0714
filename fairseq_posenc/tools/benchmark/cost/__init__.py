"""The papers' tables of the cost of position encodings, measured anew beside their figures."""
