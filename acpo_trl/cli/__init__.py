"""The command line: parse, check, build, call."""
