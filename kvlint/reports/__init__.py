"""One module an output: pure functions from a `Report` to text."""
