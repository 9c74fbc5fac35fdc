"""One module for each schedule: what every rank does, in order."""
