//! The reader of the chunked coding: it never panics, its result does not depend on how the bytes
//! are divided, and its limits are obeyed. A body that is read and written again is read as the
//! same body.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onecopy_wire::http::{
    ChunkHead, ChunkedError, ChunkedLimits, ChunkedReader, BodyChunk, write_last_chunk,
};

const LIMITS: ChunkedLimits = ChunkedLimits {
    max_body_bytes: 1000,
    max_extension_bytes: 64,
    max_trailer_bytes: 128,
};

/// The body as far as it was read, the number of bytes used, and `true` if the body is complete.
type Read = Result<(Vec<u8>, usize, bool), ChunkedError>;

fuzz_target!(|bytes: &[u8]| {
    let whole = read(bytes, &[]);
    assert_eq!(read(bytes, &[bytes.len() / 3, bytes.len() / 3 * 2]), whole);
    let every: Vec<usize> = (0..bytes.len()).collect();
    assert_eq!(read(bytes, &every), whole);
    if let Ok((body, _, true)) = whole {
        assert!(body.len() as u64 <= LIMITS.max_body_bytes);
        let mut again = Vec::new();
        if !body.is_empty() {
            again.extend_from_slice(ChunkHead::new(body.len()).as_bytes());
            again.extend_from_slice(&body);
            again.extend_from_slice(b"\r\n");
        }
        write_last_chunk([("onecopy-status", &b"ok"[..])], &mut again).expect("valid");
        let len = again.len();
        assert_eq!(read(&again, &[]), Ok((body, len, true)));
    }
});

fn read(bytes: &[u8], cuts: &[usize]) -> Read {
    let (mut reader, mut body, mut used) = (ChunkedReader::new(LIMITS), Vec::new(), 0);
    for &cut in cuts.iter().chain([&bytes.len()]) {
        let cut = cut.min(bytes.len()).max(used);
        loop {
            let (n, piece) = reader.next(&bytes[used..cut])?;
            used += n;
            match piece {
                BodyChunk::Data(data) => body.extend_from_slice(data),
                BodyChunk::NeedMore => {
                    assert_eq!(used, cut, "it wants more, but left some");
                    break;
                }
                BodyChunk::End => return Ok((body, used, true)),
            }
        }
    }
    Ok((body, used, false))
}
