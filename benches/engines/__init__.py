"""The measured operation of each benchmark for each library, in the library's fastest
configuration."""
