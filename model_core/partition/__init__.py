"""Sharding notation, layer programs and their readers."""
