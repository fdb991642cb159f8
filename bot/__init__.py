"""The side that may hold a GitHub token: it reads, plans, judges and answers, and never executes issue code."""
