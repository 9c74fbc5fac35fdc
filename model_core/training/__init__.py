"""Training: parallel degrees, layer programs of a step, its memory and its time."""
