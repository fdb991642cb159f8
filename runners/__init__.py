"""The side that executes issue code: no token, and never an import of ``bot``."""
