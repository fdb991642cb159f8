"""The commands with their arguments, one module for each audience."""
