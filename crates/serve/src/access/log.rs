//! The file of an access log. Who answers a request puts its line into memory; a thread of the log writes what has gathered.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::mem;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::Access;
use super::format::Format;
use super::time::SecondText;
use crate::lock;
use crate::metrics::Metrics;
use crate::sys;

/// Lines gather for so long: one system call for many, and none that wakes the writer for each.
const TICK: Duration = Duration::from_millis(50);
/// They are written at once when they are as much as this.
const HALF_BYTES: usize = 512 * 1024;
/// While as much as this waits for the disk, further lines are dropped.
const MOST_BYTES: usize = 1024 * 1024;
/// The most that goes into a pipe as a whole (pipe(7)).
const PIPE_BYTES: usize = 4096;
/// How long the writer waits for room in a pipe that does not block, until it gives these lines up.
const FULL_PIPE: Duration = Duration::from_secs(5);

/// Where lines go.
#[derive(Debug)]
#[non_exhaustive]
pub enum To {
    /// A file, made if it is not there, and appended to.
    Path(PathBuf),
    /// What is open already: standard output.
    Descriptor(OwnedFd),
}

/// Is told that the file cannot be opened or written to; once until that is over.
pub type Tell = Arc<dyn Fn(&str) + Send + Sync>;

/// An access log. Clones are the same log.
///
/// No request waits for the disk: where it does not keep up, lines are dropped, and one line says how many. Several processes
/// may write to one file, each write(2) appends whole lines (to a pipe only up to 4 KiB a line).
#[derive(Clone)]
pub struct AccessLog(Arc<Inner>);

struct Inner {
    format: Format,
    /// Counts dropped lines.
    metrics: Metrics,
    tell: Tell,
    gathered: Mutex<Gathered>,
    /// For the writer: a first line, many lines, the end.
    changed: Condvar,
    /// Locked by the writer; where there is none any more, by whom has a late line.
    file: Mutex<LogFile>,
    writer: Mutex<Option<JoinHandle<()>>>,
    /// How often it was to be opened anew, besides by signals.
    n_reopens: AtomicU32,
}

#[derive(Default)]
struct Gathered {
    lines: Vec<u8>,
    n_dropped: u64,
    texts: SecondText,
    /// The writer waits for a first line.
    idle: bool,
    closing: bool,
    /// There is no writer: lines are written by whom they are of.
    closed: bool,
}

impl AccessLog {
    /// A log of lines in this `format`; those that are dropped are counted in `metrics` too.
    ///
    /// # Errors
    /// What open(2) says.
    pub fn open(to: To, format: Format, metrics: Metrics, tell: Tell) -> io::Result<AccessLog> {
        Ok(AccessLog(Arc::new(Inner {
            format,
            metrics,
            tell,
            gathered: Mutex::default(),
            changed: Condvar::new(),
            file: Mutex::new(LogFile::open(to)?),
            writer: Mutex::default(),
            n_reopens: AtomicU32::new(0),
        })))
    }

    /// Starts the thread that writes, which ends by [`AccessLog::close`].
    ///
    /// # Errors
    /// No thread can be had.
    pub fn start(&self) -> io::Result<()> {
        let inner = Arc::clone(&self.0);
        let name = "onecopy-access".to_owned();
        let writer = std::thread::Builder::new().name(name);
        *lock(&self.0.writer) = Some(writer.spawn(move || inner.run())?);
        Ok(())
    }

    /// Takes the line of a request; it is written within a tick. For [`crate::Config::on_access`].
    pub fn put(&self, access: &Access<'_>) {
        let inner = &*self.0;
        let now = sys::unix_time();
        let mut gathered = lock(&inner.gathered);
        let gathered = &mut *gathered;
        let before = gathered.lines.len();
        if before >= MOST_BYTES {
            gathered.n_dropped += 1;
            inner.metrics.log_dropped(1);
            return;
        }
        let Gathered { lines, texts, .. } = gathered;
        inner.format.put(lines, access, now, texts);
        if gathered.closed {
            inner.write(&mut Vec::new(), gathered);
        } else if mem::take(&mut gathered.idle)
            || before < HALF_BYTES && gathered.lines.len() >= HALF_BYTES
        {
            inner.changed.notify_one();
        }
    }

    /// Has the path opened anew before the next line: the file was moved away. [`crate::reopen_on_signal`] does so by a signal.
    pub fn reopen(&self) {
        self.0.n_reopens.fetch_add(1, Ordering::SeqCst);
    }

    /// Writes all there is and ends the writer. Lines that come after that are written by those who bring them.
    pub fn close(&self) {
        lock(&self.0.gathered).closing = true;
        self.0.changed.notify_one();
        if let Some(writer) = lock(&self.0.writer).take() {
            let _ = writer.join();
        }
        let mut gathered = lock(&self.0.gathered);
        gathered.closed = true;
        self.0.write(&mut Vec::new(), &mut gathered);
    }
}

impl std::fmt::Debug for AccessLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccessLog")
            .field("format", &self.0.format)
            .finish_non_exhaustive()
    }
}

impl Inner {
    /// The writer.
    fn run(&self) {
        let mut batch = Vec::new();
        let mut gathered = lock(&self.gathered);
        loop {
            if gathered.lines.is_empty() && !gathered.closing {
                gathered.idle = true;
                let woken = self.changed.wait_while(gathered, |g| g.idle && !g.closing);
                gathered = woken.unwrap_or_else(PoisonError::into_inner);
                gathered.idle = false;
            }
            let more = |g: &mut Gathered| !g.closing && g.lines.len() < HALF_BYTES;
            let woken = self.changed.wait_timeout_while(gathered, TICK, more);
            gathered = woken.unwrap_or_else(PoisonError::into_inner).0;
            let closing = gathered.closing;
            mem::swap(&mut batch, &mut gathered.lines);
            let n_dropped = mem::take(&mut gathered.n_dropped);
            drop(gathered);
            let n_lost = self.write_batch(&mut batch, n_dropped);
            gathered = lock(&self.gathered);
            gathered.n_dropped += n_lost;
            if closing {
                return;
            }
        }
    }

    /// Writes what has gathered, for whoever holds it.
    fn write(&self, batch: &mut Vec<u8>, gathered: &mut Gathered) {
        mem::swap(batch, &mut gathered.lines);
        let n_dropped = mem::take(&mut gathered.n_dropped);
        gathered.n_dropped += self.write_batch(batch, n_dropped);
    }

    /// Writes `batch` and empties it, then says how many lines were dropped before; the number of those that still are to be
    /// told of.
    fn write_batch(&self, batch: &mut Vec<u8>, n_dropped: u64) -> u64 {
        let mut file = lock(&self.file);
        if n_dropped > 0 {
            let texts = &mut SecondText::default();
            self.format
                .put_dropped(batch, n_dropped, sys::unix_time(), texts);
        }
        let n_asked = self
            .n_reopens
            .load(Ordering::SeqCst)
            .wrapping_add(sys::n_reopens_asked());
        let not_opened = file.reopen_if_asked(n_asked).err();
        let (failed, n_lost) = match file.write(batch) {
            Ok(()) => (not_opened, 0),
            Err(failed) => {
                let rest = &batch[failed.n_written..];
                let n_lines = rest.iter().filter(|b| **b == b'\n').count() as u64;
                // The last one tells of those that were dropped before.
                let n_new = n_lines.saturating_sub(u64::from(n_dropped > 0));
                self.metrics.log_dropped(n_new);
                let n_old = if n_lines > 0 { n_dropped } else { 0 };
                (Some(failed.text), n_new + n_old)
            }
        };
        let told = mem::replace(&mut file.troubled, failed.is_some());
        if let Some(text) = failed.filter(|_| !told) {
            (self.tell)(&text);
        }
        batch.clear();
        n_lost
    }
}

/// Why lines were not written, and how many bytes were.
struct Failed {
    text: String,
    n_written: usize,
}

struct LogFile {
    file: File,
    /// `None`: it was open already, and is never opened again.
    path: Option<PathBuf>,
    is_regular: bool,
    /// How often a reopening had been asked for when it was opened.
    n_asked: u32,
    troubled: bool,
}

impl LogFile {
    fn open(to: To) -> io::Result<LogFile> {
        let n_asked = sys::n_reopens_asked();
        let (file, path) = match to {
            To::Path(path) => (append_to(&path)?, Some(path)),
            To::Descriptor(descriptor) => (File::from(descriptor), None),
        };
        Ok(LogFile {
            is_regular: file.metadata()?.is_file(),
            file,
            path,
            n_asked,
            troubled: false,
        })
    }

    /// Opens the path anew, where that was asked for since: the file was moved away. Where it cannot be, lines go on to the
    /// one that is open, and the next batch tries again.
    fn reopen_if_asked(&mut self, n_asked: u32) -> Result<(), String> {
        let Some(path) = self.path.as_ref().filter(|_| n_asked != self.n_asked) else {
            return Ok(());
        };
        let file = append_to(path).map_err(|error| {
            let path = path.display();
            format!("the access log `{path}` cannot be opened: {error}\nlines go to the file of before until it can be")
        })?;
        self.is_regular = file.metadata().is_ok_and(|m| m.is_file());
        self.file = file;
        self.n_asked = n_asked;
        Ok(())
    }

    /// Appends whole lines: to a file in one call, to a pipe in pieces that other writers cannot part.
    fn write(&mut self, mut lines: &[u8]) -> Result<(), Failed> {
        let n_bytes = lines.len();
        while !lines.is_empty() {
            let piece = match self.is_regular {
                true => lines,
                false => &lines[..whole_lines(lines)],
            };
            match self.file.write(piece) {
                Ok(n) if n > 0 => lines = &lines[n..],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e)
                    if e.kind() == io::ErrorKind::WouldBlock
                        && sys::wait_for_room(self.file.as_fd(), FULL_PIPE) => {}
                failed => {
                    let why = failed
                        .err()
                        .unwrap_or_else(|| io::ErrorKind::WriteZero.into());
                    let name = self.path.as_ref().map(|path| path.display().to_string());
                    let name = name.as_deref().unwrap_or("standard output");
                    return Err(Failed {
                        text: format!(
                            "the access log `{name}` cannot be written to: {why}\nits lines are dropped until it can be"
                        ),
                        n_written: n_bytes - lines.len(),
                    });
                }
            }
        }
        Ok(())
    }
}

fn append_to(path: &PathBuf) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// The length of the first lines that go into a pipe as a whole; of one line if that is longer.
fn whole_lines(lines: &[u8]) -> usize {
    let most = lines.len().min(PIPE_BYTES);
    let end = |part: &[u8]| part.iter().rposition(|b| *b == b'\n').map(|at| at + 1);
    end(&lines[..most]).unwrap_or_else(|| {
        let first = lines.iter().position(|b| *b == b'\n');
        first.map_or(lines.len(), |at| at + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_for_pipes_end_with_lines() {
        let line = |n: usize| [vec![b'x'; n - 1], vec![b'\n']].concat();
        assert_eq!(whole_lines(&line(10)), 10);
        assert_eq!(whole_lines(&[line(4000), line(96)].concat()), 4096);
        assert_eq!(whole_lines(&[line(4000), line(97)].concat()), 4000);
        assert_eq!(whole_lines(&[line(9000), line(97)].concat()), 9000);
    }
}
