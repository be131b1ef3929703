//! HTTP/1.1 heads and the chunked coding (RFC 9112).
