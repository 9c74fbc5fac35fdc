"""Figures: drawings as files and on the clipboard."""
