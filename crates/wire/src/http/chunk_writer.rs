//! [`ChunkHead`] and [`write_last_chunk`]: the writer of the chunked coding (RFC 9112, section
//! 7.1).

use onecopy_text::ByteSink;

use super::error::ResponseError;
use super::field;

/// The line that contains the size of a chunk. The caller sends this line, then the data of the
/// chunk, and then the CR LF that ends the chunk (for example by one vectored write).
#[derive(Clone, Copy, Debug)]
pub struct ChunkHead {
    bytes: [u8; 18],
    start: usize,
}

impl ChunkHead {
    /// Creates the size line for a chunk of `len_bytes` bytes. `len_bytes` must not be 0, because a
    /// chunk of 0 bytes marks the end of the body.
    ///
    /// # Panics
    /// Panics if `len_bytes` is 0, which is a bug in the caller.
    #[must_use]
    pub fn new(len_bytes: usize) -> ChunkHead {
        assert!(len_bytes > 0, "a chunk of 0 bytes ends the body");
        let mut bytes = [0; 18];
        let mut start = bytes.len() - 2;
        bytes[start..].copy_from_slice(b"\r\n");
        let mut rest = len_bytes as u64;
        while rest > 0 {
            start -= 1;
            bytes[start] = b"0123456789abcdef"[(rest & 15) as usize];
            rest >>= 4;
        }
        ChunkHead { bytes, start }
    }

    /// Returns the bytes of the size line, including its CR LF.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

/// Appends the last chunk and the trailer fields. The last chunk marks the body as complete, so the
/// caller must write it only after the complete body.
///
/// # Errors
/// Returns [`ResponseError::Name`], [`ResponseError::Value`] or [`ResponseError::SinkFull`]. The
/// sink is then unchanged.
pub fn write_last_chunk<'t, S: ByteSink>(
    trailers: impl IntoIterator<Item = (&'t str, &'t [u8])>,
    sink: &mut S,
) -> Result<(), ResponseError> {
    let mark = sink.mark();
    let result = (|| {
        sink.put(b"0\r\n")?;
        for (name, value) in trailers {
            write_field(name.as_bytes(), value, sink)?;
        }
        Ok(sink.put(b"\r\n")?)
    })();
    if result.is_err() {
        sink.rewind(mark);
    }
    result
}

/// Validates a field of a response head or of a trailer, and appends its line to the sink.
pub(super) fn write_field<S: ByteSink>(
    name: &[u8],
    value: &[u8],
    sink: &mut S,
) -> Result<(), ResponseError> {
    if !field::is_token(name) {
        return Err(ResponseError::Name(name.escape_ascii().to_string()));
    }
    if !field::is_value(value) {
        return Err(ResponseError::Value(name.escape_ascii().to_string()));
    }
    let mut window = sink.window(name.len() + value.len() + 4)?;
    window.put(name);
    window.put(b": ");
    window.put(value);
    window.put(b"\r\n");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_lines_are_lower_case_hexadecimal() {
        assert_eq!(ChunkHead::new(1).as_bytes(), b"1\r\n");
        assert_eq!(ChunkHead::new(0xABCDEF).as_bytes(), b"abcdef\r\n");
        assert_eq!(
            ChunkHead::new(usize::MAX).as_bytes(),
            b"ffffffffffffffff\r\n"
        );
    }

    #[test]
    fn the_last_chunk_carries_the_trailer() {
        let mut sink = b"x".to_vec();
        write_last_chunk([("onecopy-status", &b"ok; rows=3"[..])], &mut sink).expect("valid");
        assert_eq!(sink, b"x0\r\nonecopy-status: ok; rows=3\r\n\r\n");
    }

    #[test]
    fn a_trailer_that_would_break_its_line_is_refused_and_nothing_stays() {
        let mut sink = b"x".to_vec();
        for (name, value) in [
            ("a b", &b"v"[..]),
            ("a", b"v\r\nx: y"),
            ("a", b"\0"),
            ("", b"v"),
        ] {
            assert!(write_last_chunk([("ok", &b"1"[..]), (name, value)], &mut sink).is_err());
            assert_eq!(sink, b"x");
        }
    }
}
