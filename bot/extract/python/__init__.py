"""Put the Python pieces of an issue together as one program. Start with `testcase.extract_python`."""
