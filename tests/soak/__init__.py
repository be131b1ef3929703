"""Long-running tests, which are not part of `make test`."""
