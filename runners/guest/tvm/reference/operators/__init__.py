"""The operators of Relax in NumPy. ``table.py`` has their names; operators without an equivalent are left out."""
