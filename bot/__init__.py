"""The side that may hold a GitHub token: reads, plans, judges and speaks, and never executes issue code."""
