"""The figures and tables of the papers, recomputed: what they are, their data, and their drawings."""
