"""Check rules that a testcase may violate. The control of each check is a run that follows the rule."""
