"""Supervise the steps of a probe: start or fork processes, watch, kill and collect them. Start with `supervisor`."""
