"""The frontier: all designs near the current one, latency against cost or MFU."""
