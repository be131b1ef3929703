//! `onecopy transcode`.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use onecopy_files::transcode::{self, Stopped, detect, detect_start, keep_under_suffix, place_of};
use onecopy_files::{AtomicFile, OnFailure};
use onecopy_text::{
    Bom, Certainty, Detection, Encoding, Place, TranscodeError, TranscodeOptions, Transcoder,
};
use onecopy_wire::CancelHandle;

use crate::args::{BomArg, OnError, Source, Transcode};
use crate::console::{ByteProgress, error, notice};
use crate::exit;
use crate::interrupt::Interrupt;
use crate::output::Output;

/// Why the command, or one file of it, fails.
enum Failure {
    /// The command line is wrong.
    Usage(String),
    /// A file cannot be opened or read.
    Read(String, io::Error),
    /// Its encoding cannot be told.
    Unknown(String, Detection),
    /// It is no text, or has characters that cannot be written.
    Text {
        name: String,
        from: Encoding,
        to: Encoding,
        error: TranscodeError,
        place: Option<Place>,
    },
    /// Stdout.
    Stdout(io::Error),
    /// A file that is written; it names the file and what was being done.
    File(io::Error),
    /// Signal handlers.
    System(io::Error),
    /// A signal came.
    Stopped,
}

impl From<onecopy_files::Error> for Failure {
    fn from(error: onecopy_files::Error) -> Failure {
        Failure::File(error.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(message) => f.write_str(message),
            Failure::Read(name, e) => write!(f, "`{name}` cannot be read: {e}"),
            Failure::Unknown(name, found) => match found.encoding {
                None => write!(
                    f,
                    "`{name}` is no text: {}\nif it is, name its encoding with `-f`",
                    found.reason
                ),
                Some(guess) => write!(
                    f,
                    "the encoding of `{name}` is only a guess, {}: {}\nname it with `-f`, or leave `--strict` out",
                    guess.name(),
                    found.reason
                ),
            },
            Failure::Text {
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
                             name another encoding with `-f`, or see `--on-error` (`-c` leaves it out)",
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
                             write another encoding with `-t`, or see `--on-error` (`-c` leaves it out)",
                            to.name()
                        )
                    }
                    e => write!(f, "`{name}`: {e}"),
                }
            }
            Failure::Stdout(source) => write!(f, "stdout cannot be written: {source}"),
            Failure::File(source) => source.fmt(f),
            Failure::System(source) => write!(f, "cannot start: {source}"),
            Failure::Stopped => f.write_str("stopped"),
        }
    }
}

impl Failure {
    fn exit_code(&self) -> i32 {
        match self {
            Failure::Usage(_) => exit::USAGE,
            Failure::Stopped => exit::STOPPED,
            Failure::Stdout(e) if e.kind() == io::ErrorKind::BrokenPipe => exit::PIPE_CLOSED,
            _ => exit::FAILED,
        }
    }
}

/// The arguments with the suffix of `-i.bak` apart, as `--in-place=.bak`: the parser knows no option whose value is there
/// or not and stands close by.
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

/// Runs the command.
pub(crate) fn run(args: &Transcode) -> i32 {
    let done = match args.list {
        true => list(),
        false => Run::new(args).and_then(|run| run.all()),
    };
    match done {
        Ok(code) => code,
        Err(failure) => tell(&failure),
    }
}

/// Tells a failure; its exit code.
fn tell(failure: &Failure) -> i32 {
    let code = failure.exit_code();
    if code != exit::PIPE_CLOSED {
        error(&failure.to_string());
    }
    code
}

fn list() -> Result<i32, Failure> {
    let mut out = Output::stdout().map_err(Failure::Stdout)?;
    let mut lines = String::new();
    for (encoding, more) in Encoding::all() {
        let names: Vec<&str> = [encoding.name()].into_iter().chain(more).collect();
        lines += &names.join("  ");
        lines.push('\n');
    }
    out.write_all(lines.as_bytes()).map_err(Failure::Stdout)?;
    Ok(exit::OK)
}

/// A run over all files.
struct Run<'a> {
    args: &'a Transcode,
    to: Encoding,
    options: TranscodeOptions,
    interrupt: Interrupt,
}

impl<'a> Run<'a> {
    fn new(args: &'a Transcode) -> Result<Run<'a>, Failure> {
        let to = args.to.encoding;
        if args.bom == Some(BomArg::Add) && !to.is_unicode() {
            return Err(Failure::Usage(format!(
                "{} has no byte order mark\nleave `--bom add` out, or write UTF-8, UTF-16 or UTF-32",
                to.name()
            )));
        }
        let on_error = match args.omit || args.to.omit {
            true => OnError::Ignore,
            false => args.on_error,
        };
        let (on_malformed, on_unencodable) = on_error.policies();
        if let Some(suffix) = &args.in_place {
            if suffix.contains('/') {
                return Err(Failure::Usage(format!(
                    "the suffix `{suffix}` has a `/` in it\ngive what is put behind the name, as in `-i.bak`"
                )));
            }
            if args.files.is_empty() || args.files.iter().any(|f| is_stdin(f)) {
                return Err(Failure::Usage(
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
        Ok(Run {
            args,
            to,
            options,
            interrupt: Interrupt::start(None).map_err(Failure::System)?,
        })
    }

    /// Converts all files; the exit code.
    fn all(&self) -> Result<i32, Failure> {
        let stdin = [Path::new("-").to_owned()];
        let files = match self.args.files.as_slice() {
            [] => &stdin,
            files => files,
        };
        if self.args.check || self.args.in_place.is_some() {
            // Each stands for itself: one that fails leaves the others alone.
            let mut code = exit::OK;
            for file in files {
                let done = match &self.args.in_place {
                    Some(suffix) => self.in_place(file, suffix),
                    None => self.one(file, self.options, &mut io::sink(), Failure::Stdout),
                };
                if let Err(failure) = done {
                    code = tell(&failure);
                }
            }
            return Ok(code);
        }
        let failed = match self.args.output {
            Some(_) => Failure::File,
            None => Failure::Stdout,
        };
        let mut out = match &self.args.output {
            Some(path) => {
                let file = AtomicFile::create(path, OnFailure::Remove)?;
                self.on_a_signal_remove(&file);
                Output::File(Box::new(file))
            }
            None => Output::stdout().map_err(Failure::Stdout)?,
        };
        let mut options = self.options;
        for file in files {
            self.one(file, options, &mut out, failed)?;
            // A mark stands at the start, not in the middle.
            if self.to.is_marked() || options.bom != Bom::ByName {
                options.bom = Bom::Strip;
            }
        }
        self.go_on()?;
        out.finish()?;
        Ok(exit::OK)
    }

    fn in_place(&self, path: &Path, suffix: &str) -> Result<(), Failure> {
        let mut file = AtomicFile::create(path, OnFailure::Remove)?;
        self.on_a_signal_remove(&file);
        self.one(path, self.options, &mut file, Failure::File)?;
        self.go_on()?;
        if !suffix.is_empty() {
            keep_under_suffix(path, suffix)?;
        }
        file.commit()?;
        Ok(())
    }

    /// Refuses to finish after a signal, which may come while the last bytes are written.
    fn go_on(&self) -> Result<(), Failure> {
        match self.interrupt.stopped() {
            None => Ok(()),
            Some(_) => Err(Failure::Stopped),
        }
    }

    /// A stop leaves no file under a temporary name. The process ends there and then: nothing else is half done.
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
        failed: fn(io::Error) -> Failure,
    ) -> Result<(), Failure> {
        let name = match is_stdin(path) {
            true => "stdin".to_owned(),
            false => path.display().to_string(),
        };
        let cannot_read = |e| Failure::Read(name.clone(), e);
        let mut input = Input::open(path).map_err(cannot_read)?;
        let from = match self.args.from {
            Source::Named(encoding) => encoding,
            Source::Auto => {
                let found = input.detect().map_err(cannot_read)?;
                self.decide(&name, found)?
            }
        };
        // A file is read again where something is wrong; what comes once is counted as it comes.
        options.counts_lines = !input.is_file;
        let mut transcoder = Transcoder::new(from, self.to, options);
        let progress = ByteProgress::new(!self.args.silent, input.len_bytes);
        let done = transcode::transcode(&mut input, out, &mut transcoder, |n| progress.set(n));
        progress.end();
        done.map_err(|stopped| match stopped {
            Stopped::Read(e) => cannot_read(e),
            Stopped::Text(error, place) => Failure::Text {
                place: place.or_else(|| input.place(from, error.at_bytes())),
                name: name.clone(),
                from,
                to: self.to,
                error,
            },
            Stopped::Write(e) => failed(e),
            e => Failure::Usage(e.to_string()),
        })
    }

    /// The encoding that was found, unless it is none, or only a guess where none is wanted.
    fn decide(&self, name: &str, found: Detection) -> Result<Encoding, Failure> {
        match found.encoding {
            Some(encoding) if found.certainty != Certainty::Guess || !self.args.strict => {
                if !self.args.silent {
                    notice(&format!("`{name}` is read as {found}"));
                }
                Ok(encoding)
            }
            _ => Err(Failure::Unknown(name.to_owned(), found)),
        }
    }
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// A file or stdin, past the standard library's buffer, and what was read of it to decide on its encoding.
struct Input {
    start: Cursor<Vec<u8>>,
    file: File,
    /// Whether it can be read twice.
    is_file: bool,
    len_bytes: Option<u64>,
}

impl Input {
    fn open(path: &Path) -> io::Result<Input> {
        let file = match is_stdin(path) {
            true => File::from(io::stdin().as_fd().try_clone_to_owned()?),
            false => File::open(path)?,
        };
        let found = file.metadata()?;
        if found.is_dir() {
            return Err(io::Error::other("it is a directory"));
        }
        // Stdin from a file may stand anywhere in it.
        let is_file = found.is_file() && !is_stdin(path);
        Ok(Input {
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

    /// Where a byte stands, as people count.
    fn place(&mut self, from: Encoding, at_bytes: u64) -> Option<Place> {
        if !self.is_file {
            return None;
        }
        self.file.rewind().ok()?;
        place_of(&mut self.file, from, at_bytes).ok()?
    }
}

impl Read for Input {
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
