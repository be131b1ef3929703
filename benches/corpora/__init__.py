"""Generated inputs of the benchmarks, the same in every run."""
