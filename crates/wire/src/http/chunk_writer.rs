//! The chunked coding, out (RFC 9112, section 7.1).

use onecopy_text::{ByteSink, SinkFull};

use super::error::ResponseError;
use super::field;

/// Bytes kept free in front of a chunk's data for its size and CR LF: up to 2^32 - 1 bytes of data.
pub const CHUNK_ROOM: usize = 10;

/// Size line of a chunk, for a write of several parts: this, the data, then CR LF.
#[derive(Clone, Copy, Debug)]
pub struct ChunkHead {
    bytes: [u8; 18],
    start: usize,
}

impl ChunkHead {
    /// The size line for `len_bytes` of data. A chunk of 0 bytes would end the body: it has no such line.
    ///
    /// # Panics
    /// Where `len_bytes` is 0: a bug of the caller.
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

    /// The line with its CR LF.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

/// Empties `chunk` and makes it ready to be filled: [`CHUNK_ROOM`] bytes stay free in front of the data, for
/// [`finish_chunk`].
///
/// # Errors
/// [`SinkFull`].
pub fn begin_chunk<S: ByteSink>(chunk: &mut S) -> Result<(), SinkFull> {
    chunk.cut(0);
    chunk.put(&[0; CHUNK_ROOM])
}

/// Frames what was filled into `chunk` since [`begin_chunk`], in place: size and CR LF in front, CR LF behind. Returns
/// where the framed chunk starts; it reaches to the end. `None` where nothing was filled: there is nothing to send.
///
/// Copies: none.
///
/// # Errors
/// [`SinkFull`] where there is no room for the CR LF behind.
///
/// # Panics
/// Where `chunk` was not begun, or holds 4 GiB: a bug of the caller.
pub fn finish_chunk<S: ByteSink>(chunk: &mut S) -> Result<Option<usize>, SinkFull> {
    let len = chunk.committed().len() - CHUNK_ROOM;
    if len == 0 {
        return Ok(None);
    }
    let head = ChunkHead::new(len);
    let head = head.as_bytes();
    let start = CHUNK_ROOM
        .checked_sub(head.len())
        .expect("a chunk is below 4 GiB");
    chunk.committed_mut()[start..CHUNK_ROOM].copy_from_slice(head);
    chunk.put(b"\r\n")?;
    Ok(Some(start))
}

/// Appends the last chunk with its trailer fields: the body is complete, and only then is this to be sent.
///
/// # Errors
/// [`ResponseError::Name`], [`ResponseError::Value`], [`ResponseError::SinkFull`]; the sink is then as it was.
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

/// Appends one field line, checked.
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
    fn a_chunk_is_framed_where_it_lies() {
        let mut chunk = Vec::with_capacity(64);
        begin_chunk(&mut chunk).expect("memory");
        let place = chunk.as_ptr();
        assert_eq!(finish_chunk(&mut chunk.clone()), Ok(None));
        chunk.extend_from_slice(b"hello, chunked world");
        let start = finish_chunk(&mut chunk).expect("memory").expect("filled");
        assert_eq!(&chunk[start..], b"14\r\nhello, chunked world\r\n");
        assert_eq!(chunk.as_ptr(), place);
    }

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
