"""Chips and networks: rooflines, topology and the cost of collectives."""
