"""The part that executes issue code. It has no token, and never imports ``bot``."""
