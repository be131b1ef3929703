//! `onecopy transcode`: converts files, or stdin, to another encoding.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use onecopy_files::transcode::{
    self, TranscodeFailure, detect, detect_start, keep_under_suffix, place_of,
};
use onecopy_files::{AtomicFile, OnFailure};
use onecopy_text::{
    Bom, Certainty, Detection, Encoding, Place, TranscodeError, TranscodeOptions, Transcoder,
};
use onecopy_wire::CancelHandle;

use crate::args::{BomArg, Source, Transcode, TranscodeErrors};
use crate::console::{ByteProgress, error, notice};
use crate::exit;
use crate::interrupt::Interrupt;
use crate::output::Output;

/// The reason for which the whole command or the conversion of one file fails.
enum FileFailure {
    /// The command line is wrong.
    Usage(String),
    /// A file cannot be opened or read.
    Read(String, io::Error),
    /// The encoding of a file cannot be detected.
    Unknown(String, Detection),
    /// The text is not valid in its encoding, or has a character that the output encoding does not
    /// have.
    Text {
        name: String,
        from: Encoding,
        to: Encoding,
        error: TranscodeError,
        place: Option<Place>,
    },
    /// Stdout cannot be written.
    Stdout(io::Error),
    /// The output file cannot be written; the error names the file and the operation.
    File(io::Error),
    /// Signal handlers cannot be installed.
    System(io::Error),
    /// A signal stopped the command.
    Stopped,
}

impl From<onecopy_files::Error> for FileFailure {
    fn from(error: onecopy_files::Error) -> FileFailure {
        FileFailure::File(error.into())
    }
}

impl fmt::Display for FileFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileFailure::Usage(message) => f.write_str(message),
            FileFailure::Read(name, e) => write!(f, "`{name}` cannot be read: {e}"),
            FileFailure::Unknown(name, found) => match found.encoding {
                None => write!(
                    f,
                    "`{name}` is not text: {}\nif it is, name its encoding with `-f`",
                    found.reason
                ),
                Some(guess) => write!(
                    f,
                    "the encoding of `{name}` is only a guess, {}: {}\nname it with `-f`, or leave `--strict` out",
                    guess.name(),
                    found.reason
                ),
            },
            FileFailure::Text {
                name,
                from,
                to,
                error,
                place,
            } => {
                let place = place.map_or(String::new(), |p| {
                    format!(" (line {}, column {})", p.line, p.column)
                });
                match error {
                    TranscodeError::Malformed(e) => {
                        let bytes: Vec<String> =
                            e.bytes().iter().map(|b| format!("0x{b:02x}")).collect();
                        write!(
                            f,
                            "`{name}`: {} at byte {}{place} is no {}: {}\n\
                             name another encoding with `-f`, or see `--errors` (`-c` leaves it out)",
                            bytes.join(" "),
                            e.at_bytes,
                            from.name(),
                            e.reason
                        )
                    }
                    TranscodeError::Unencodable {
                        at_bytes,
                        code_point,
                    } => {
                        let shown = char::from_u32(*code_point)
                            .filter(|c| !c.is_control())
                            .map_or(String::new(), |c| format!(" `{c}`"));
                        write!(
                            f,
                            "`{name}`: U+{code_point:04X}{shown} at byte {at_bytes}{place} cannot be written in {}\n\
                             write another encoding with `-t`, or see `--errors` (`-c` leaves it out)",
                            to.name()
                        )
                    }
                    e => write!(f, "`{name}`: {e}"),
                }
            }
            FileFailure::Stdout(source) => write!(f, "stdout cannot be written: {source}"),
            FileFailure::File(source) => source.fmt(f),
            FileFailure::System(source) => write!(f, "cannot start: {source}"),
            FileFailure::Stopped => f.write_str("stopped"),
        }
    }
}

impl FileFailure {
    fn exit_code(&self) -> i32 {
        match self {
            FileFailure::Usage(_) => exit::USAGE,
            FileFailure::Stopped => exit::STOPPED,
            FileFailure::Stdout(e) if e.kind() == io::ErrorKind::BrokenPipe => exit::PIPE_CLOSED,
            _ => exit::FAILED,
        }
    }
}

/// Rewrites `-i.bak` as `--in-place=.bak`, because the argument parser does not support a short
/// option with an optional attached value.
pub(crate) fn with_suffix_apart(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut args: Vec<OsString> = args.collect();
    if args.get(1).is_some_and(|name| name == "transcode") {
        let options = args.iter_mut().skip(2).take_while(|arg| *arg != "--");
        for arg in options {
            if let Some(suffix) = arg.as_bytes().strip_prefix(b"-i")
                && !suffix.is_empty()
            {
                *arg = OsString::from_vec([b"--in-place=", suffix].concat());
            }
        }
    }
    args
}

/// Runs `onecopy transcode`.
pub(crate) fn run(args: &Transcode) -> i32 {
    let done = match args.list {
        true => list(),
        false => TranscodeRun::new(args).and_then(|run| run.all()),
    };
    match done {
        Ok(code) => code,
        Err(failure) => report(&failure),
    }
}

/// Reports a failure; returns its exit code.
fn report(failure: &FileFailure) -> i32 {
    let code = failure.exit_code();
    if code != exit::PIPE_CLOSED {
        error(&failure.to_string());
    }
    code
}

fn list() -> Result<i32, FileFailure> {
    let mut out = Output::stdout().map_err(FileFailure::Stdout)?;
    let mut lines = String::new();
    for (encoding, more) in Encoding::all() {
        let names: Vec<&str> = [encoding.name()].into_iter().chain(more).collect();
        lines += &names.join("  ");
        lines.push('\n');
    }
    out.write_all(lines.as_bytes())
        .map_err(FileFailure::Stdout)?;
    Ok(exit::OK)
}

/// The options and the state of the conversion of all files.
struct TranscodeRun<'a> {
    args: &'a Transcode,
    to: Encoding,
    options: TranscodeOptions,
    interrupt: Interrupt,
}

impl<'a> TranscodeRun<'a> {
    fn new(args: &'a Transcode) -> Result<TranscodeRun<'a>, FileFailure> {
        let to = args.to.encoding;
        if args.bom == Some(BomArg::Add) && !to.is_unicode() {
            return Err(FileFailure::Usage(format!(
                "{} has no byte order mark\nleave `--bom add` out, or write UTF-8, UTF-16 or UTF-32",
                to.name()
            )));
        }
        let errors = match args.omit || args.to.omit {
            true => TranscodeErrors::Ignore,
            false => args.errors,
        };
        let (on_malformed, on_unencodable) = errors.policies();
        if let Some(suffix) = &args.in_place {
            if suffix.contains('/') {
                return Err(FileFailure::Usage(format!(
                    "the suffix `{suffix}` has a `/` in it\ngive the suffix of the name, as in `-i.bak`"
                )));
            }
            if args.files.is_empty() || args.files.iter().any(|f| is_stdin(f)) {
                return Err(FileFailure::Usage(
                    "stdin has no place to be converted in\nname files, or leave `-i` out"
                        .to_owned(),
                ));
            }
        }
        let options = TranscodeOptions {
            on_malformed,
            on_unencodable,
            bom: args.bom.map_or(Bom::ByName, Bom::from),
            eol: args.eol.into(),
            counts_lines: false,
        };
        Ok(TranscodeRun {
            args,
            to,
            options,
            interrupt: Interrupt::start(None).map_err(FileFailure::System)?,
        })
    }

    /// Converts all files; returns the exit code.
    fn all(&self) -> Result<i32, FileFailure> {
        let stdin = [Path::new("-").to_owned()];
        let files = match self.args.files.as_slice() {
            [] => &stdin,
            files => files,
        };
        if self.args.check || self.args.in_place.is_some() {
            // Files are independent: if one fails, the others are still converted.
            let mut code = exit::OK;
            for file in files {
                let done = match &self.args.in_place {
                    Some(suffix) => self.in_place(file, suffix),
                    None => self.one(file, self.options, &mut io::sink(), FileFailure::Stdout),
                };
                if let Err(failure) = done {
                    code = report(&failure);
                }
            }
            return Ok(code);
        }
        let failed = match self.args.output {
            Some(_) => FileFailure::File,
            None => FileFailure::Stdout,
        };
        let mut out = match &self.args.output {
            Some(path) => {
                let file = AtomicFile::create(path, OnFailure::Remove)?;
                self.on_a_signal_remove(&file);
                Output::File(Box::new(file))
            }
            None => Output::stdout().map_err(FileFailure::Stdout)?,
        };
        let mut options = self.options;
        for file in files {
            self.one(file, options, &mut out, failed)?;
            // A byte order mark must be at the start of the output, not in the middle.
            if self.to.is_marked() || options.bom != Bom::ByName {
                options.bom = Bom::Strip;
            }
        }
        self.go_on()?;
        out.finish()?;
        Ok(exit::OK)
    }

    fn in_place(&self, path: &Path, suffix: &str) -> Result<(), FileFailure> {
        let mut file = AtomicFile::create(path, OnFailure::Remove)?;
        self.on_a_signal_remove(&file);
        self.one(path, self.options, &mut file, FileFailure::File)?;
        self.go_on()?;
        if !suffix.is_empty() {
            keep_under_suffix(path, suffix)?;
        }
        file.commit()?;
        Ok(())
    }

    /// Returns an error if a signal has arrived. It is also called after the last write to a file,
    /// because the signal may arrive during this write.
    fn go_on(&self) -> Result<(), FileFailure> {
        match self.interrupt.stopped() {
            None => Ok(()),
            Some(_) => Err(FileFailure::Stopped),
        }
    }

    /// From now on, a signal deletes the temporary file of `file` and ends the process immediately.
    /// Files are converted one after the other, so no other output file is incomplete at that time.
    fn on_a_signal_remove(&self, file: &AtomicFile) {
        let temporary = file.temporary_path().to_owned();
        self.interrupt.cancels(CancelHandle::new(move || {
            let _ = std::fs::remove_file(&temporary);
            signal_hook::low_level::exit(exit::STOPPED);
        }));
    }

    /// Converts one file.
    fn one(
        &self,
        path: &Path,
        mut options: TranscodeOptions,
        out: &mut impl Write,
        failed: fn(io::Error) -> FileFailure,
    ) -> Result<(), FileFailure> {
        let name = match is_stdin(path) {
            true => "stdin".to_owned(),
            false => path.display().to_string(),
        };
        let cannot_read = |e| FileFailure::Read(name.clone(), e);
        let mut input = TranscodeInput::open(path).map_err(cannot_read)?;
        let from = match self.args.from {
            Source::Named(encoding) => encoding,
            Source::Auto => {
                let found = input.detect().map_err(cannot_read)?;
                self.decide(&name, found)?
            }
        };
        // After an error, a file is read again to find the line. A stream cannot be read again, so
        // its lines are counted as it arrives.
        options.counts_lines = !input.is_file;
        let mut transcoder = Transcoder::new(from, self.to, options);
        let progress = ByteProgress::new(!self.args.quiet, input.len_bytes);
        let done = transcode::transcode(&mut input, out, &mut transcoder, |n| progress.set(n));
        progress.end();
        done.map_err(|stopped| match stopped {
            TranscodeFailure::Read(e) => cannot_read(e),
            TranscodeFailure::Text(error, place) => FileFailure::Text {
                place: place.or_else(|| input.place(from, error.at_bytes())),
                name: name.clone(),
                from,
                to: self.to,
                error,
            },
            TranscodeFailure::Write(e) => failed(e),
            e => FileFailure::Usage(e.to_string()),
        })
    }

    /// Returns the detected encoding. Returns an error if no encoding was detected, or if the
    /// detection is uncertain and `--strict` is set.
    fn decide(&self, name: &str, found: Detection) -> Result<Encoding, FileFailure> {
        match found.encoding {
            Some(encoding) if found.certainty != Certainty::Guess || !self.args.strict => {
                if !self.args.quiet {
                    notice(&format!("`{name}` is read as {found}"));
                }
                Ok(encoding)
            }
            _ => Err(FileFailure::Unknown(name.to_owned(), found)),
        }
    }
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The input of a conversion: a file or stdin, and the bytes that were already read from it to
/// detect the encoding. It is read without the buffer of the standard library.
struct TranscodeInput {
    start: Cursor<Vec<u8>>,
    file: File,
    /// `true` if the input is a regular file, which can be read a second time.
    is_file: bool,
    len_bytes: Option<u64>,
}

impl TranscodeInput {
    fn open(path: &Path) -> io::Result<TranscodeInput> {
        let file = match is_stdin(path) {
            true => File::from(io::stdin().as_fd().try_clone_to_owned()?),
            false => File::open(path)?,
        };
        let found = file.metadata()?;
        if found.is_dir() {
            return Err(io::Error::other("it is a directory"));
        }
        // If stdin is a file, its position may not be the start, so it is treated as a stream.
        let is_file = found.is_file() && !is_stdin(path);
        Ok(TranscodeInput {
            start: Cursor::default(),
            file,
            is_file,
            len_bytes: found.is_file().then_some(found.len()),
        })
    }

    fn detect(&mut self) -> io::Result<Detection> {
        if self.is_file {
            let found = detect(&mut self.file)?;
            self.file.rewind()?;
            return Ok(found);
        }
        let (found, start) = detect_start(&mut self.file)?;
        self.start = Cursor::new(start);
        Ok(found)
    }

    /// Returns the line and column of the byte at position `at_bytes`, by reading the file a second
    /// time. Returns `None` if the input is not a file, or if it cannot be read.
    fn place(&mut self, from: Encoding, at_bytes: u64) -> Option<Place> {
        if !self.is_file {
            return None;
        }
        self.file.rewind().ok()?;
        place_of(&mut self.file, from, at_bytes).ok()?
    }
}

impl Read for TranscodeInput {
    fn read(&mut self, part: &mut [u8]) -> io::Result<usize> {
        match self.start.read(part)? {
            0 => self.file.read(part),
            n => Ok(n),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suffix_of_in_place_stands_close_by() {
        let apart = |args: &str| {
            let args = args.split(' ').map(OsString::from);
            let args = with_suffix_apart(args).into_iter();
            args.map(|a| a.into_string().expect("ASCII"))
                .collect::<Vec<_>>()
                .join(" ")
        };
        let expected = "onecopy transcode --in-place=.bak a -- -ix";
        assert_eq!(apart("onecopy transcode -i.bak a -- -ix"), expected);
        assert_eq!(apart("onecopy transcode -i a"), "onecopy transcode -i a");
        assert_eq!(apart("onecopy query -ix"), "onecopy query -ix");
    }
}
