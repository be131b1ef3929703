//! The CSV writer (RFC 4180).
