"""Evaluate Relax programs with NumPy: a reference for the values that compiled code returns."""
