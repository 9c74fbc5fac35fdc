"""The itemised memory budget."""
