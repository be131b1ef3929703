//! Files in one encoding to files in another, in constant memory.

use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use onecopy_text::{Detection, Detector, Encoding, Place, TranscodeError, Transcoder};

use crate::error::{Action, Error};

/// Bytes that are read at a time: past this a read costs no less, and with what they become they leave the second cache.
pub const READ_BYTES: usize = 128 * 1024;

/// Bytes of a stream that cannot be read twice, on which its encoding is decided.
pub const LOOK_BYTES: usize = 1024 * 1024;

/// Why a stream was not transcoded to its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum Stopped {
    /// It cannot be read.
    Read(io::Error),
    /// What it becomes cannot be written.
    Write(io::Error),
    /// It is no text in its encoding, or has a character that cannot be written; where lines were counted, with its place.
    Text(TranscodeError, Option<Place>),
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stopped::Read(e) => write!(f, "cannot be read: {e}"),
            Stopped::Write(e) => write!(f, "cannot be written: {e}"),
            Stopped::Text(e, None) => e.fmt(f),
            Stopped::Text(e, Some(p)) => write!(f, "{e} (line {}, column {})", p.line, p.column),
        }
    }
}

impl std::error::Error for Stopped {}

/// Converts all that `input` gives to `output`, a part at a time. `progress` is told the bytes read so far.
///
/// Copies: none here; those of [`Transcoder::push`].
///
/// # Errors
/// [`Stopped`]; what came before is written.
pub fn transcode(
    input: &mut impl Read,
    output: &mut impl Write,
    transcoder: &mut Transcoder,
    mut progress: impl FnMut(u64),
) -> Result<(), Stopped> {
    let mut part = vec![0; READ_BYTES];
    // As much as the common ways make of a part; others grow it once.
    let mut made = Vec::with_capacity(2 * READ_BYTES);
    let mut n_read = 0;
    loop {
        let n = match input.read(&mut part) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            n => n.map_err(Stopped::Read)?,
        };
        made.clear();
        let result = match n {
            0 => transcoder.finish(&mut made),
            n => transcoder.push(&part[..n], &mut made),
        };
        output.write_all(&made).map_err(Stopped::Write)?;
        result.map_err(|e| Stopped::Text(e, transcoder.place()))?;
        if n == 0 {
            return Ok(());
        }
        n_read += n as u64;
        progress(n_read);
    }
}

/// Line and column of a byte of a text, found by reading it up to there.
///
/// # Errors
/// The system's.
pub fn place_of(input: &mut impl Read, from: Encoding, at_bytes: u64) -> io::Result<Option<Place>> {
    let mut transcoder = Transcoder::new(
        from,
        Encoding::Utf8,
        onecopy_text::TranscodeOptions {
            on_malformed: onecopy_text::OnMalformed::Replace,
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
        Err(Stopped::Read(e)) => Err(e),
        _ => Ok(transcoder.place()),
    }
}

/// Which encoding a text is in; reads it to its end.
///
/// # Errors
/// The system's.
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

/// Which encoding the first [`LOOK_BYTES`] of a stream are in, and these bytes.
///
/// Plain ASCII is told as UTF-8 where more follows: what follows may be more than ASCII.
///
/// # Errors
/// The system's.
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

/// Keeps what stands at `path` under its name and `suffix` too: a hard link, or a copy where the file system has none.
/// What stood there is replaced.
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
    // A link's target is what is replaced: that is what is kept.
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
