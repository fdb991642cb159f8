"""Define the operators of Relax in NumPy. ``table.py`` contains their names. Some have no equivalent."""
