"""Find the pass with which a TVM testcase begins to fail. Start with `search`."""
