"""How each library does the job of a bench, in its faster configuration."""
