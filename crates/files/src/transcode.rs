//! [`transcode`] converts files to another encoding, and [`detect`] detects the encoding of a file,
//! both in constant memory.

use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use onecopy_text::{Detection, Detector, Encoding, Place, TranscodeError, Transcoder};

use crate::error::{Action, Error};

/// The number of bytes requested by one read. Larger reads are not faster per byte, and their input
/// and output would not fit into the L2 cache.
pub const READ_BYTES: usize = 128 * 1024;

/// The number of bytes at the start of a stream from which its encoding is detected, if the stream
/// cannot be read twice.
pub const LOOK_BYTES: usize = 1024 * 1024;

/// The error of a conversion of a file or stream, which was not converted to its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum TranscodeFailure {
    /// The input cannot be read.
    Read(io::Error),
    /// The output cannot be written.
    Write(io::Error),
    /// The input is invalid in its encoding, or contains a character that the output encoding
    /// cannot represent. The line and column are `None` unless the [`Transcoder`] counts lines.
    Text(TranscodeError, Option<Place>),
}

impl fmt::Display for TranscodeFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TranscodeFailure::Read(e) => write!(f, "cannot be read: {e}"),
            TranscodeFailure::Write(e) => write!(f, "cannot be written: {e}"),
            TranscodeFailure::Text(e, None) => e.fmt(f),
            TranscodeFailure::Text(e, Some(p)) => {
                write!(f, "{e} (line {}, column {})", p.line, p.column)
            }
        }
    }
}

impl std::error::Error for TranscodeFailure {}

/// Converts `input` to `output` in parts of [`READ_BYTES`]. After each part, `progress` is called
/// with the number of bytes read so far.
///
/// Only [`Transcoder::push`] copies the text.
///
/// # Errors
/// [`TranscodeFailure`]. The output that precedes the error has been written.
pub fn transcode(
    input: &mut impl Read,
    output: &mut impl Write,
    transcoder: &mut Transcoder,
    mut progress: impl FnMut(u64),
) -> Result<(), TranscodeFailure> {
    let mut part = vec![0; READ_BYTES];
    // This capacity suffices for the result of most conversions of one part; otherwise the buffer
    // grows once.
    let mut made = Vec::with_capacity(2 * READ_BYTES);
    let mut n_read = 0;
    loop {
        let n = match input.read(&mut part) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            n => n.map_err(TranscodeFailure::Read)?,
        };
        made.clear();
        let result = match n {
            0 => transcoder.finish(&mut made),
            n => transcoder.push(&part[..n], &mut made),
        };
        output.write_all(&made).map_err(TranscodeFailure::Write)?;
        result.map_err(|e| TranscodeFailure::Text(e, transcoder.place()))?;
        if n == 0 {
            return Ok(());
        }
        n_read += n as u64;
        progress(n_read);
    }
}

/// Returns the line and column of the byte at position `at_bytes` of a text, by reading the text up
/// to this byte.
///
/// # Errors
/// The error of the system.
pub fn place_of(input: &mut impl Read, from: Encoding, at_bytes: u64) -> io::Result<Option<Place>> {
    let mut transcoder = Transcoder::new(
        from,
        Encoding::Utf8,
        onecopy_text::TranscodeOptions {
            on_malformed: onecopy_text::Policy::Replace,
            counts_lines: true,
            ..Default::default()
        },
    );
    match transcode(
        &mut input.take(at_bytes),
        &mut io::sink(),
        &mut transcoder,
        |_| (),
    ) {
        Err(TranscodeFailure::Read(e)) => Err(e),
        _ => Ok(transcoder.place()),
    }
}

/// Detects the encoding of a text by reading it to its end.
///
/// # Errors
/// The error of the system.
pub fn detect(input: &mut impl Read) -> io::Result<Detection> {
    let mut detector = Detector::new();
    let mut part = vec![0; READ_BYTES];
    loop {
        match input.read(&mut part) {
            Ok(0) => return Ok(detector.finish(true)),
            Ok(n) => detector.push(&part[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// Detects the encoding of a stream from its first [`LOOK_BYTES`] bytes; returns the detection and
/// these bytes.
///
/// If these bytes are ASCII and the stream is longer, the detected encoding is UTF-8, because later
/// bytes of the stream may not be ASCII.
///
/// # Errors
/// The error of the system.
pub fn detect_start(input: &mut impl Read) -> io::Result<(Detection, Vec<u8>)> {
    let mut start = Vec::new();
    input.take(LOOK_BYTES as u64).read_to_end(&mut start)?;
    let is_whole = start.len() < LOOK_BYTES;
    let mut detector = Detector::new();
    detector.push(&start);
    let mut found = detector.finish(is_whole);
    if !is_whole {
        if found.encoding == Some(Encoding::Ascii) {
            found.encoding = Some(Encoding::Utf8);
        }
        found.reason += &format!(" (in the first {} bytes)", start.len());
    }
    Ok((found, start))
}

/// Keeps the file at `path` under a second name, which is the name followed by `suffix`. Creates a
/// hard link, or a copy of the file if the file system has no hard links. An existing file with the
/// second name is replaced.
///
/// # Errors
/// [`Error`] with the path of the copy.
pub fn keep_under_suffix(path: &Path, suffix: &str) -> Result<PathBuf, Error> {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    let kept = PathBuf::from(name);
    let mut aside = kept.as_os_str().to_owned();
    aside.push(".partial");
    let aside = PathBuf::from(aside);
    let failed = |action| {
        let kept = kept.clone();
        move |e| Error::io(action, &kept, e)
    };
    let _ = fs::remove_file(&aside);
    // If `path` is a symbolic link, its target will be replaced, so the target is kept.
    let original = fs::canonicalize(path).map_err(failed(Action::Inspect))?;
    if fs::hard_link(&original, &aside).is_err() {
        fs::copy(&original, &aside).map_err(failed(Action::Create))?;
    }
    fs::rename(&aside, &kept).map_err(|e| {
        let _ = fs::remove_file(&aside);
        failed(Action::Rename)(e)
    })?;
    Ok(kept)
}
