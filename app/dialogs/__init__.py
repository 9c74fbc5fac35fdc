"""Dialogs that search: recommendations, and the pairing of prefill and decode."""
