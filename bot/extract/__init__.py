"""Issue text → testcase and claim. Nothing here executes, imports or fetches anything."""
