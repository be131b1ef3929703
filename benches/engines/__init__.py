"""The job of a benchmark for each library, in its faster configuration."""
