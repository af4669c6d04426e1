"""Is an answer the same mathematical object as the gold answer? Used inside the worker processes."""
