"""Drawings: display lists made from an evaluation, and the widget that shows them."""
