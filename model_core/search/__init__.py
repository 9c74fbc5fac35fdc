"""Search: sweeps over arrays of designs, Pareto frontiers, layout choice, recommendation and pairing."""
