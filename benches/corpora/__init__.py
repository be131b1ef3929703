"""Inputs of the benchmarks, generated: the same at every run."""
