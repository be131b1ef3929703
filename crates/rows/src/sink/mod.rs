//! Row sinks that write JSON, NDJSON and CSV.
