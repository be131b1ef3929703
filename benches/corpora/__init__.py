"""Generated inputs of the benchmarks; they are the same in every run."""
