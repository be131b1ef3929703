//! Tests conversions between encodings with readers and writers that fail, that transfer one byte
//! per call, or that are interrupted.
#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.

use std::fs;
use std::io::{self, Read, Write};

use onecopy_files::transcode::{
    LOOK_BYTES, READ_BYTES, TranscodeFailure, detect, detect_start, keep_under_suffix, place_of,
    transcode,
};
use onecopy_text::{Certainty, Encoding, Order, Place, TranscodeOptions, Transcoder};

/// A reader that returns one byte per call, and `Interrupted` before each byte. After the last byte
/// it returns the given error; without an error, it reports the end of the input.
struct Drops<'a>(&'a [u8], bool, Option<io::ErrorKind>);

impl Read for Drops<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.1 = !self.1;
        match (self.1, self.0.split_first(), self.2) {
            (true, ..) => Err(io::ErrorKind::Interrupted.into()),
            (false, Some((first, rest)), _) => {
                into[0] = *first;
                self.0 = rest;
                Ok(1)
            }
            (false, None, Some(kind)) => Err(kind.into()),
            (false, None, None) => Ok(0),
        }
    }
}

struct Full;

impl Write for Full {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn to_utf8(from: Encoding) -> Transcoder {
    Transcoder::new(from, Encoding::Utf8, TranscodeOptions::default())
}

const UTF16: Encoding = Encoding::Utf16(Order::Little);

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

#[test]
fn drops_give_what_the_whole_gives_and_progress_counts_what_was_read() {
    let bytes = utf16("a€😀");
    let (mut out, mut progress) = (Vec::new(), Vec::new());
    let mut drops = Drops(&bytes, false, None);
    transcode(&mut drops, &mut out, &mut to_utf8(UTF16), |n| {
        progress.push(n)
    })
    .unwrap();
    assert_eq!(out, "a€😀".as_bytes());
    assert_eq!(progress, (1..=8).collect::<Vec<u64>>());
}

#[test]
fn a_reader_that_fails_is_told_apart_from_a_writer_and_from_text() {
    let (mut out, bytes) = (Vec::new(), utf16("ab"));
    let mut drops = Drops(&bytes, false, Some(io::ErrorKind::TimedOut));
    let stopped = transcode(&mut drops, &mut out, &mut to_utf8(UTF16), |_| ());
    assert!(
        matches!(stopped, Err(TranscodeFailure::Read(e)) if e.kind() == io::ErrorKind::TimedOut)
    );
    assert_eq!(out, b"ab");
    let stopped = transcode(&mut &bytes[..], &mut Full, &mut to_utf8(UTF16), |_| ());
    assert!(
        matches!(stopped, Err(TranscodeFailure::Write(e)) if e.kind() == io::ErrorKind::StorageFull)
    );
    let stopped = transcode(&mut &b"a\0b"[..], &mut out, &mut to_utf8(UTF16), |_| ());
    assert!(matches!(stopped, Err(TranscodeFailure::Text(e, None)) if e.at_bytes() == 2));
    // The output before the error was written.
    assert_eq!(out, b"aba");
}

#[test]
fn the_place_of_a_byte_is_found_across_parts() {
    let text = "дом\n".repeat(READ_BYTES);
    let bytes = utf16(&text);
    let place = place_of(&mut &bytes[..], UTF16, bytes.len() as u64 - 4).unwrap();
    let line = READ_BYTES as u64;
    assert_eq!(place, Some(Place { line, column: 3 }));
}

#[test]
fn a_stream_is_decided_on_by_its_start_and_a_file_by_all_of_it() {
    let mut text = vec![b'a'; LOOK_BYTES];
    text.extend("é".bytes());
    let whole = detect(&mut &text[..]).unwrap();
    assert_eq!(
        (whole.encoding, whole.certainty),
        (Some(Encoding::Utf8), Certainty::Certain)
    );
    let (start, read) = detect_start(&mut &text[..]).unwrap();
    assert_eq!(
        (start.encoding, read.len()),
        (Some(Encoding::Utf8), LOOK_BYTES)
    );
    assert!(
        start.reason.ends_with("(in the first 1048576 bytes)"),
        "{start}"
    );
    let (short, read) = detect_start(&mut &b"abc"[..]).unwrap();
    assert_eq!(
        (short.encoding, &read[..]),
        (Some(Encoding::Ascii), &b"abc"[..])
    );
}

#[test]
fn what_is_kept_under_a_suffix_is_what_stood_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, "first").unwrap();
    let kept = keep_under_suffix(&path, "~").unwrap();
    assert_eq!(kept, folder.path().join("a~"));
    // After another file has replaced it, the kept name refers to the earlier file.
    fs::write(folder.path().join("b"), "second").unwrap();
    fs::rename(folder.path().join("b"), &path).unwrap();
    assert_eq!(fs::read_to_string(&kept).unwrap(), "first");
    keep_under_suffix(&path, "~").unwrap();
    assert_eq!(fs::read_to_string(&kept).unwrap(), "second");
    fs::create_dir(folder.path().join("a.d")).unwrap();
    let error = keep_under_suffix(&path, ".d").unwrap_err().to_string();
    assert!(error.contains("a.d"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
}
