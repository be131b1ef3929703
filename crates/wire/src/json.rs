//! The JSON writer (RFC 8259).
