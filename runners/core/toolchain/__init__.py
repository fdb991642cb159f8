"""What a toolchain states about its compiler, and the helpers that its diagnosers share. Start at ``contract.py``."""
