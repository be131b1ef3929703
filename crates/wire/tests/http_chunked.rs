//! Tests the chunked coding: bodies that must be rejected, and bodies whose result must not depend
//! on how the bytes are divided.

use onecopy_wire::http::{
    BodyChunk, ChunkHead, ChunkedError, ChunkedLimits, ChunkedReader, write_last_chunk,
};
use proptest::prelude::*;

/// Returns the result of reading `bytes` in parts that end at these cuts: the body, the number of
/// bytes used, and `true` if the body is complete.
fn read(
    bytes: &[u8],
    cuts: &[usize],
    limits: ChunkedLimits,
) -> Result<(Vec<u8>, usize, bool), ChunkedError> {
    let (mut reader, mut body, mut used) = (ChunkedReader::new(limits), Vec::new(), 0);
    for &cut in cuts.iter().chain([&bytes.len()]) {
        let cut = cut.min(bytes.len());
        loop {
            let (n, piece) = reader.next(&bytes[used..cut.max(used)])?;
            used += n;
            match piece {
                BodyChunk::Data(data) => {
                    assert!(!data.is_empty());
                    body.extend_from_slice(data);
                }
                BodyChunk::NeedMore => break,
                BodyChunk::End => {
                    assert!(reader.is_end());
                    return Ok((body, used, true));
                }
            }
        }
    }
    Ok((body, used, false))
}

fn whole(bytes: &[u8]) -> Result<(Vec<u8>, usize, bool), ChunkedError> {
    read(bytes, &[], ChunkedLimits::default())
}

#[test]
fn chunks_extensions_and_trailers_are_read() {
    let bytes =
        b"5\r\nhello\r\n00A;name=\"v\";x\r\n, chunked!\r\n0\r\nX-U: 1\r\nX-V: 3\r\n\r\nGET /";
    assert_eq!(
        whole(bytes),
        Ok((b"hello, chunked!".to_vec(), bytes.len() - 5, true))
    );
    assert_eq!(whole(b"0\r\n\r\n"), Ok((vec![], 5, true)));
}

#[test]
fn blanks_around_the_parts_of_an_extension_are_ignored() {
    let bytes = b"3 ; a = b\r\nabc\r\n2\t \t;c\t=\t\"d\" ;e\r\nde\r\n0 ;f\r\n\r\n";
    assert_eq!(whole(bytes), Ok((b"abcde".to_vec(), bytes.len(), true)));
}

#[test]
fn the_error_of_a_chunk_size_states_the_permitted_form() {
    for bytes in [&b"0000000000000000005\r\n"[..], b"5 \r\n", b"x\r\n"] {
        let error = whole(bytes).expect_err("not a size");
        let text = "a chunk size does not consist of 1 to 16 hexadecimal digits";
        assert_eq!(error.to_string(), text);
    }
}

#[test]
fn a_body_that_ends_early_is_not_complete() {
    let bytes = b"5\r\nhello\r\n0\r\nX: y\r\n\r\n";
    for len in 0..bytes.len() {
        let (_, used, is_end) = whole(&bytes[..len]).expect("well-formed so far");
        assert_eq!((used, is_end), (len, false));
    }
}

#[test]
fn malformed_chunks_are_refused() {
    use ChunkedError::{DataEnd, Extension, LineEnd, Size, Trailer};
    let cases: [(&[u8], ChunkedError); 32] = [
        (b"10000000000000005\r\n", Size),
        (b"0x5\r\nhello\r\n", Size),
        (b"+5\r\nhello\r\n", Size),
        (b"-5\r\nhello\r\n", Size),
        (b"0_5\r\nhello\r\n", Size),
        (b"\r\nhello\r\n", Size),
        (b";x\r\nhello\r\n", Size),
        (b" 5\r\nhello\r\n", Size),
        (b"5 \r\nhello\r\n", Size),
        (b"5\t\r\nhello\r\n", Size),
        (b"5 0;x\r\nhello\r\n", Size),
        (b"5 x\r\nhello\r\n", Size),
        (b"5 \n;x\r\nhello\r\n", Size),
        (b"00000000000000005\r\nhello\r\n", Size),
        (b"5\nhello\r\n", Size),
        (b"5\rhello\r\n", LineEnd),
        (b"5\r\nhelloo\r\n", DataEnd),
        (b"5\r\nhello\n", DataEnd),
        (b"5\r\nhello0\r\n\r\n", DataEnd),
        (b"5\r\nhello\rx", DataEnd),
        (b"5;x\nhello\r\n", Extension),
        (b"5;x\ry\r\nhello\r\n", LineEnd),
        (b"5;x\0\r\n", Extension),
        (b"0\r\n\n", Trailer),
        (b"0\n\r\n", Size),
        (b"0\r\n\r\r", LineEnd),
        (b"0\r\n folded: x\r\n", Trailer),
        (b"0\r\nX : y\r\n", Trailer),
        (b"0\r\nContent-Length: 5\r\n", Trailer),
        (b"0\r\nX: y\r\ntransfer-ENCODING: chunked\r\n", Trailer),
        (b"0\r\nProxy-Authorization: x\r\n", Trailer),
        (b"0\r\nX: y\n\r\n", Trailer),
    ];
    for (bytes, expected) in cases {
        assert_eq!(whole(bytes), Err(expected), "{}", bytes.escape_ascii());
    }
}

#[test]
fn limits_are_kept() {
    let limits = ChunkedLimits {
        max_body_bytes: 6,
        max_extension_bytes: 4,
        max_trailer_bytes: 8,
    };
    let refused = |bytes: &[u8]| read(bytes, &[], limits).expect_err("past a limit");
    assert!(
        read(
            b"3\r\nabc\r\n3;123\r\ndef\r\n0\r\nX: 5678\r\n\r\n",
            &[],
            limits
        )
        .is_ok()
    );
    // The chunk is rejected because of its size, before its data arrives.
    assert_eq!(refused(b"3\r\nabc\r\n4\r\n"), ChunkedError::BodyTooLarge);
    assert_eq!(refused(b"ffffffffffffffff\r\n"), ChunkedError::BodyTooLarge);
    assert_eq!(
        refused(b"3\r\nabc\r\nffffffffffffffff\r\n"),
        ChunkedError::BodyTooLarge
    );
    assert_eq!(refused(b"1;12\r\na\r\n1;345\r\n"), ChunkedError::Extension);
    assert_eq!(refused(b"1     ;\r\na\r\n"), ChunkedError::Extension);
    assert_eq!(refused(b"0\r\nX: y\r\nY: zz\r\n"), ChunkedError::Trailer);
    assert_eq!(ChunkedError::BodyTooLarge.status(), 413);
}

fn bodies() -> impl Strategy<Value = Vec<u8>> {
    let well_formed = prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..5)
        .prop_map(|parts| {
            let mut bytes = Vec::new();
            for part in &parts {
                bytes.extend_from_slice(ChunkHead::new(part.len()).as_bytes());
                bytes.extend_from_slice(part);
                bytes.extend_from_slice(b"\r\n");
            }
            write_last_chunk([("onecopy-status", &b"ok"[..])], &mut bytes).expect("valid");
            bytes.extend_from_slice(b"next");
            bytes
        });
    let spoiled =
        (well_formed.clone(), 0..100_usize, any::<u8>()).prop_map(|(mut bytes, at, byte)| {
            let at = at % bytes.len();
            bytes[at] = byte;
            bytes
        });
    prop_oneof![
        well_formed,
        spoiled,
        "[0-9a-f;\r\n: x]{0,40}".prop_map(String::into_bytes)
    ]
}

proptest! {
    #[test]
    fn any_split_reads_the_same(bytes in bodies(), mut cuts in prop::collection::vec(0..200_usize, 0..8)) {
        cuts.sort_unstable();
        let expected = whole(&bytes);
        prop_assert_eq!(read(&bytes, &cuts, ChunkedLimits::default()), expected.clone());
        let every: Vec<usize> = (0..bytes.len()).collect();
        prop_assert_eq!(read(&bytes, &every, ChunkedLimits::default()), expected);
    }

    #[test]
    fn what_the_writer_framed_reads_back(parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..300), 0..6)) {
        let mut sent = Vec::new();
        for part in &parts {
            sent.extend_from_slice(ChunkHead::new(part.len()).as_bytes());
            sent.extend_from_slice(part);
            sent.extend_from_slice(b"\r\n");
        }
        write_last_chunk([("onecopy-status", &b"ok; rows=3"[..])], &mut sent).expect("valid");
        prop_assert_eq!(whole(&sent), Ok((parts.concat(), sent.len(), true)));
    }
}
