"""Preset models, chips, clusters, workloads and designs, every value with its source."""
