"""Choose the runs of a plan, one after another. Start reading at `investigate.investigate_plan`, the summary."""
