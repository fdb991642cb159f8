"""Sweeps over whole trackers, with recorded runs in place of compilers."""
