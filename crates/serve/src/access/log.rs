//! [`AccessLog`]: the file of an access log. The thread that serves a request appends the request's
//! line to a buffer in memory. A writer thread writes the buffer to the file.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::mem;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use onecopy_wire::lock::{lock, unpoisoned};

use super::Access;
use super::format::Format;
use super::time::SecondText;
use crate::metrics::Metrics;
use crate::sys;

/// The time for which lines are collected before the writer thread writes them. Therefore one
/// system call writes many lines, and most requests need not wake the writer thread.
const TICK: Duration = Duration::from_millis(50);
/// If the buffer contains at least this number of bytes, the writer thread writes the buffer
/// immediately, without waiting for the end of [`TICK`].
const HALF_BYTES: usize = 512 * 1024;
/// The size in bytes at which the buffer is full. While the buffer is full, new lines are dropped.
const MOST_BYTES: usize = 1024 * 1024;
/// The largest number of bytes that one write(2) to a pipe transfers atomically (pipe(7)).
const PIPE_BYTES: usize = 4096;
/// If the log is a non-blocking pipe that is full, the longest time for which the writer thread
/// waits for space in the pipe. After this time, it drops the collected lines.
const FULL_PIPE: Duration = Duration::from_secs(5);

/// The destination of an access log.
#[derive(Debug)]
#[non_exhaustive]
pub enum LogTarget {
    /// A file, to which lines are appended. It is created if it does not exist.
    Path(PathBuf),
    /// A descriptor that is already open, for example standard output.
    Descriptor(OwnedFd),
}

/// The function that is called with a message when the log file cannot be opened or written. After
/// one such call, it is not called again until the file has been opened and written successfully.
pub type ReportProblem = Arc<dyn Fn(&str) + Send + Sync>;

/// An access log. Clones share the same file.
///
/// A request never waits for the disk. If the disk is too slow, lines are dropped, and a later line
/// reports how many. Several processes may write to one file, because each write(2) appends whole
/// lines. For a pipe, this holds only for lines of at most 4 KiB.
#[derive(Clone)]
pub struct AccessLog(Arc<LogState>);

struct LogState {
    format: Format,
    /// The metrics of the server, in which the dropped lines are counted.
    metrics: Metrics,
    report: ReportProblem,
    gathered: Mutex<Gathered>,
    /// Wakes the writer thread: when a line is added to the empty buffer, when the buffer reaches
    /// [`HALF_BYTES`], and when the log is closed.
    changed: Condvar,
    /// The log file. The writer thread locks it for each write. After the writer thread has ended,
    /// each thread that logs a line locks the file and writes to it.
    file: Mutex<LogFile>,
    writer: Mutex<Option<JoinHandle<()>>>,
    /// The number of calls to [`AccessLog::reopen`]. `sys::n_reopens_asked` separately counts the
    /// signals that request a reopen.
    n_reopens: AtomicU32,
}

#[derive(Default)]
struct Gathered {
    lines: Vec<u8>,
    n_dropped: u64,
    texts: SecondText,
    /// `true` while the buffer is empty and the writer thread waits for a line.
    idle: bool,
    closing: bool,
    /// `true` after the writer thread has ended. From then on, each thread that adds a line writes
    /// it to the file itself.
    closed: bool,
}

impl AccessLog {
    /// Opens an access log, which writes lines in the format `format` to the destination `to`. The
    /// log adds the number of dropped lines to `metrics`, and calls `report` if a write fails.
    ///
    /// # Errors
    /// The error of open(2).
    pub fn open(
        to: LogTarget,
        format: Format,
        metrics: Metrics,
        report: ReportProblem,
    ) -> io::Result<AccessLog> {
        Ok(AccessLog(Arc::new(LogState {
            format,
            metrics,
            report,
            gathered: Mutex::default(),
            changed: Condvar::new(),
            file: Mutex::new(LogFile::open(to)?),
            writer: Mutex::default(),
            n_reopens: AtomicU32::new(0),
        })))
    }

    /// Starts the writer thread. [`AccessLog::close`] ends it.
    ///
    /// # Errors
    /// The error of the system if the thread cannot be created.
    pub fn start(&self) -> io::Result<()> {
        let inner = Arc::clone(&self.0);
        let name = "onecopy-access".to_owned();
        let writer = std::thread::Builder::new().name(name);
        *lock(&self.0.writer) = Some(writer.spawn(move || inner.run())?);
        Ok(())
    }

    /// Adds the line of a request to the buffer. The line is written to the file within about 50
    /// ms. If the buffer is full, the line is dropped. Call this method from
    /// [`crate::Config::on_access`].
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

    /// Requests that the log file is opened again by its path before the next line is written. This
    /// is needed after the file was renamed by log rotation. [`crate::reopen_on_signal`] makes the
    /// same request when a signal arrives.
    pub fn reopen(&self) {
        self.0.n_reopens.fetch_add(1, Ordering::SeqCst);
    }

    /// Writes all lines in the buffer and ends the writer thread. A thread that adds a line after
    /// this call writes the line to the file itself.
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

impl LogState {
    /// The function of the writer thread. It writes the collected lines until the log is closed.
    fn run(&self) {
        let mut batch = Vec::new();
        let mut gathered = lock(&self.gathered);
        loop {
            if gathered.lines.is_empty() && !gathered.closing {
                gathered.idle = true;
                let woken = self.changed.wait_while(gathered, |g| g.idle && !g.closing);
                gathered = unpoisoned(woken);
                gathered.idle = false;
            }
            let more = |g: &mut Gathered| !g.closing && g.lines.len() < HALF_BYTES;
            let woken = self.changed.wait_timeout_while(gathered, TICK, more);
            gathered = unpoisoned(woken).0;
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

    /// Writes the lines in `gathered` to the file. For this, swaps their buffer with `batch`, which
    /// must be empty.
    fn write(&self, batch: &mut Vec<u8>, gathered: &mut Gathered) {
        mem::swap(batch, &mut gathered.lines);
        let n_dropped = mem::take(&mut gathered.n_dropped);
        gathered.n_dropped += self.write_batch(batch, n_dropped);
    }

    /// Writes the lines in `batch` to the log file, and empties `batch`. If `n_dropped` is not 0,
    /// adds a line that reports this number of dropped lines. If the write fails, the lines are
    /// dropped; returns the number of dropped lines that are not reported yet.
    fn write_batch(&self, batch: &mut Vec<u8>, n_dropped: u64) -> u64 {
        let mut file = lock(&self.file);
        if n_dropped > 0 {
            let texts = &mut SecondText::default();
            self.format
                .put_dropped(batch, n_dropped, sys::unix_time(), texts);
        }
        let n_reopens = self
            .n_reopens
            .load(Ordering::SeqCst)
            .wrapping_add(sys::n_reopens_asked());
        let not_opened = file.reopen_if_requested(n_reopens).err();
        let (failed, n_lost) = match file.write(batch) {
            Ok(()) => (not_opened, 0),
            Err(failed) => {
                let rest = &batch[failed.n_written..];
                let n_lines = rest.iter().filter(|b| **b == b'\n').count() as u64;
                // The last line in `batch` reports earlier dropped lines, so it is not counted as a
                // dropped line itself.
                let n_new = n_lines.saturating_sub(u64::from(n_dropped > 0));
                self.metrics.log_dropped(n_new);
                let n_old = if n_lines > 0 { n_dropped } else { 0 };
                (Some(failed.text), n_new + n_old)
            }
        };
        let reported = mem::replace(&mut file.troubled, failed.is_some());
        if let Some(text) = failed.filter(|_| !reported) {
            (self.report)(&text);
        }
        batch.clear();
        n_lost
    }
}

/// The error message of a failed write to the log file, and the number of bytes that were written
/// before the failure.
struct WriteFailure {
    text: String,
    n_written: usize,
}

struct LogFile {
    file: File,
    /// The path of the log file; `None` for an inherited descriptor, which cannot be opened again.
    path: Option<PathBuf>,
    is_regular: bool,
    /// The number of requests to reopen the log file that had been made when this file was opened.
    /// If there are more requests now, the file must be opened again.
    n_reopens: u32,
    troubled: bool,
}

impl LogFile {
    fn open(to: LogTarget) -> io::Result<LogFile> {
        let n_reopens = sys::n_reopens_asked();
        let (file, path) = match to {
            LogTarget::Path(path) => (append_to(&path)?, Some(path)),
            LogTarget::Descriptor(descriptor) => (File::from(descriptor), None),
        };
        Ok(LogFile {
            is_regular: file.metadata()?.is_file(),
            file,
            path,
            n_reopens,
            troubled: false,
        })
    }

    /// Opens the path again if a reopen was requested since the last open. If opening fails, lines
    /// are still written to the file that was opened before, and the next call tries again.
    fn reopen_if_requested(&mut self, n_reopens: u32) -> Result<(), String> {
        let Some(path) = self.path.as_ref().filter(|_| n_reopens != self.n_reopens) else {
            return Ok(());
        };
        let file = append_to(path).map_err(|error| {
            let path = path.display();
            format!("the access log `{path}` cannot be opened: {error}\nlines go to the file of before until it can be")
        })?;
        self.is_regular = file.metadata().is_ok_and(|m| m.is_file());
        self.file = file;
        self.n_reopens = n_reopens;
        Ok(())
    }

    /// Appends `lines`, which consist of whole lines. A regular file gets them in one call to
    /// write(2). A pipe gets them in writes that are short enough to be atomic.
    fn write(&mut self, mut lines: &[u8]) -> Result<(), WriteFailure> {
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
                        && sys::wait_writable(self.file.as_fd(), FULL_PIPE) => {}
                failed => {
                    let why = failed
                        .err()
                        .unwrap_or_else(|| io::ErrorKind::WriteZero.into());
                    let name = self.path.as_ref().map(|path| path.display().to_string());
                    let name = name.as_deref().unwrap_or("standard output");
                    return Err(WriteFailure {
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

/// Returns how many bytes of `lines` are written to a pipe in one call. The bytes end with the last
/// whole line that fits into an atomic write. If the first line does not fit, they are this line.
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
