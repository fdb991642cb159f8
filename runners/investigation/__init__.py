"""Decide what to run next for a plan. Start reading at `investigate.investigate`, which reads as a summary."""
