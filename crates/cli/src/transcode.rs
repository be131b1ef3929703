//! `onecopy transcode`: converts files, or stdin, to another encoding.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use onecopy_files::transcode::{
    self, TranscodeFailure, detect, detect_start, keep_under_suffix, place_of,
};
use onecopy_text::{
    Bom, Certainty, Detection, Encoding, Place, Policy, TranscodeError, TranscodeOptions,
    Transcoder,
};

use crate::args::{BomArg, Source, Transcode};
use crate::console::{ByteProgress, notice};
use crate::exit;
use crate::failure::Failure;
use crate::input;
use crate::interrupt::Interrupt;
use crate::output::Output;

/// Returns the message for a file whose encoding cannot be detected, or can be detected only with
/// uncertainty.
fn undetected(name: &str, found: &Detection) -> String {
    match found.encoding {
        None => format!(
            "`{name}` is not text: {}\nif it is, name its encoding with `-f`",
            found.reason
        ),
        Some(guess) => format!(
            "the encoding of `{name}` is only a guess, {}: {}\nname it with `-f`, or leave `--strict` out",
            guess.name(),
            found.reason
        ),
    }
}

/// Returns the message for a text that could not be converted. The text is invalid in the encoding
/// `from`, or it contains a character that the encoding `to` cannot represent.
fn not_converted(
    name: &str,
    from: Encoding,
    to: Encoding,
    error: &TranscodeError,
    place: Option<Place>,
) -> String {
    let place = place.map_or(String::new(), |p| {
        format!(" (line {}, column {})", p.line, p.column)
    });
    match error {
        TranscodeError::Malformed(e) => {
            let bytes: Vec<String> = e.bytes().iter().map(|b| format!("0x{b:02x}")).collect();
            format!(
                "`{name}`: {} at byte {}{place} is not valid {}: {}\n\
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
            format!(
                "`{name}`: U+{code_point:04X}{shown} at byte {at_bytes}{place} cannot be written in {}\n\
                 write another encoding with `-t`, or see `--errors` (`-c` leaves it out)",
                to.name()
            )
        }
        e => format!("`{name}`: {e}"),
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

/// Runs the command `onecopy transcode`; returns the exit code of the process.
pub(crate) fn run(args: &Transcode) -> i32 {
    let done = match args.list {
        true => list(),
        false => TranscodeRun::new(args).and_then(|run| run.all()),
    };
    match done {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}

fn list() -> Result<i32, Failure> {
    let mut out = Output::stdout()?;
    let mut lines = String::new();
    for (encoding, more) in Encoding::all() {
        let names: Vec<&str> = [encoding.name()].into_iter().chain(more).collect();
        lines += &names.join("  ");
        lines.push('\n');
    }
    out.write(lines.as_bytes())?;
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
    fn new(args: &'a Transcode) -> Result<TranscodeRun<'a>, Failure> {
        let to = args.to.encoding;
        if args.bom == Some(BomArg::Add) && !to.is_unicode() {
            return Err(Failure::Usage(format!(
                "{} has no byte order mark\nleave `--bom add` out, or write UTF-8, UTF-16 or UTF-32",
                to.name()
            )));
        }
        let policy = match args.omit || args.to.omit {
            true => Policy::Ignore,
            false => args.errors,
        };
        if let Some(suffix) = &args.in_place {
            if suffix.contains('/') {
                return Err(Failure::Usage(format!(
                    "the suffix `{suffix}` has a `/` in it\ngive the suffix of the name, as in `-i.bak`"
                )));
            }
            if args.files.is_empty() || args.files.iter().any(|f| input::is_dash(f)) {
                return Err(Failure::Usage(
                    "stdin has no place to be converted in\nname files, or leave `-i` out"
                        .to_owned(),
                ));
            }
        }
        let options = TranscodeOptions {
            on_malformed: policy,
            on_unencodable: policy,
            bom: args.bom.map_or(Bom::ByName, Bom::from),
            eol: args.eol.into(),
            counts_lines: false,
        };
        Ok(TranscodeRun {
            args,
            to,
            options,
            interrupt: Interrupt::start(None).map_err(Failure::System)?,
        })
    }

    /// Converts all files that the command line lists, or stdin if it lists none; returns the exit
    /// code.
    fn all(&self) -> Result<i32, Failure> {
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
                    None => self.one(file, self.options, None),
                };
                if let Err(failure) = done {
                    code = failure.report();
                }
            }
            return Ok(code);
        }
        let output = self.args.output.as_deref();
        let mut out = Output::removed_on_signal(output, &self.interrupt)?;
        let mut options = self.options;
        for file in files {
            self.one(file, options, Some(&mut out))?;
            // A byte order mark must be at the start of the output, not in the middle.
            if self.to.is_marked() || options.bom != Bom::ByName {
                options.bom = Bom::Strip;
            }
        }
        self.go_on()?;
        out.finish()?;
        Ok(exit::OK)
    }

    fn in_place(&self, path: &Path, suffix: &str) -> Result<(), Failure> {
        let mut file = Output::removed_on_signal(Some(path), &self.interrupt)?;
        self.one(path, self.options, Some(&mut file))?;
        self.go_on()?;
        if !suffix.is_empty() {
            keep_under_suffix(path, suffix)?;
        }
        file.finish()
    }

    /// Returns an error if a signal has arrived. This function is also called after the last write
    /// to a file, because the signal may arrive during this write.
    fn go_on(&self) -> Result<(), Failure> {
        match self.interrupt.stopped() {
            None => Ok(()),
            Some(_) => Err(Failure::Stopped("")),
        }
    }

    /// Converts one file and writes the result to `output`. Without `output`, only checks that the
    /// file can be converted.
    fn one(
        &self,
        path: &Path,
        mut options: TranscodeOptions,
        mut output: Option<&mut Output>,
    ) -> Result<(), Failure> {
        let name = input::name(path);
        let cannot_read = |e| Failure::Read(name.clone(), e);
        let mut input = TranscodeInput::open(path).map_err(cannot_read)?;
        let from = match self.args.from {
            Source::Named(encoding) => encoding,
            Source::Auto => {
                let found = input.detect().map_err(cannot_read)?;
                self.decide(&name, found)?
            }
        };
        // For an error message, the line number is needed. A file is read a second time to find it;
        // a stream cannot be read again, so its lines are counted during the conversion.
        options.counts_lines = !input.is_file;
        let mut transcoder = Transcoder::new(from, self.to, options);
        let progress = ByteProgress::new(!self.args.quiet, input.len_bytes);
        let mut nowhere = io::sink();
        let mut out: &mut dyn Write = match &mut output {
            Some(output) => output.as_write(),
            None => &mut nowhere,
        };
        let done = transcode::transcode(&mut input, &mut out, &mut transcoder, |n| {
            progress.set(n);
        });
        progress.end();
        done.map_err(|stopped| match stopped {
            TranscodeFailure::Read(e) => cannot_read(e),
            TranscodeFailure::Text(error, place) => {
                let place = place.or_else(|| input.place(from, error.at_bytes()));
                Failure::Other(not_converted(&name, from, self.to, &error, place))
            }
            TranscodeFailure::Write(e) => match output {
                Some(output) => output.failure(e),
                None => Failure::System(e),
            },
            e => Failure::Other(e.to_string()),
        })
    }

    /// Returns the encoding that was detected. Returns an error if none was detected, and with
    /// `--strict` also if the detection is uncertain.
    fn decide(&self, name: &str, found: Detection) -> Result<Encoding, Failure> {
        match found.encoding {
            Some(encoding) if found.certainty != Certainty::Guess || !self.args.strict => {
                if !self.args.quiet {
                    notice(&format!("`{name}` is read as {found}"));
                }
                Ok(encoding)
            }
            _ => Err(Failure::Other(undetected(name, &found))),
        }
    }
}

/// The input of a conversion: the bytes in `start`, which were already read to detect the encoding,
/// and then the rest of the file or of stdin. Its reads have no further buffer.
struct TranscodeInput {
    start: Cursor<Vec<u8>>,
    file: File,
    /// `true` if the input is a regular file, which can be read a second time.
    is_file: bool,
    len_bytes: Option<u64>,
}

impl TranscodeInput {
    fn open(path: &Path) -> io::Result<TranscodeInput> {
        let (file, found) = input::open(path)?;
        // If stdin is a file, its position may not be the start, so it is treated as a stream.
        let is_file = found.is_file() && !input::is_dash(path);
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
