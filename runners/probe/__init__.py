"""Run a testcase once in an environment and record the result. Start reading at `run.run_probe`.

``observe.py`` compares the result with the claim; ``sessions.py`` keeps sandboxes open between probes.
"""
