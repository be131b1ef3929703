//! [`TransferProgress`] displays a progress bar for each phase of a transfer if stderr is a
//! terminal, and prints one line at the end.

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount};
use onecopy_transfer::{Observer, Phase, Summary};

use crate::console::{ByteProgress, notice};
use crate::interrupt::Interrupt;

/// The largest number of omitted files and folders whose names are printed. For further ones, only
/// their number is printed.
const MOST_TOLD: u64 = 10;

/// Displays the progress of a transfer, and stops the transfer after a signal.
pub(super) struct TransferProgress<'a> {
    interrupt: &'a Interrupt,
    quiet: bool,
    bar: Option<ByteProgress>,
    n_bytes: u64,
    n_left_out: u64,
    started: Instant,
    /// The hash of the file that was transferred last; `None` if no hash was computed. The hash is
    /// displayed if only one file was transferred.
    hash: Option<[u8; 32]>,
    n_files: u64,
}

impl<'a> TransferProgress<'a> {
    pub(super) fn new(interrupt: &'a Interrupt, quiet: bool) -> TransferProgress<'a> {
        TransferProgress {
            interrupt,
            quiet,
            bar: None,
            n_bytes: 0,
            n_left_out: 0,
            started: Instant::now(),
            hash: None,
            n_files: 0,
        }
    }

    fn end_bar(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.end();
        }
    }

    /// Writes the last line of the output: the result of the transfer, its number of files and
    /// bytes, and its duration.
    pub(super) fn finish(mut self, done: &str, summary: &Summary) {
        self.end_bar();
        if self.n_left_out > MOST_TOLD {
            let more = self.n_left_out - MOST_TOLD;
            self.notice(&format!("{more} more were left out"));
        }
        let seconds = self.started.elapsed().as_secs_f64();
        let mut line = format!(
            "{done} {} {} ({} bytes)",
            HumanCount(summary.n_files),
            if summary.n_files == 1 {
                "file"
            } else {
                "files"
            },
            HumanCount(summary.n_bytes),
        );
        if summary.n_moved < summary.n_bytes {
            let there = HumanCount(summary.n_bytes - summary.n_moved);
            let _ = write!(line, ", {there} of them already present");
        }
        let rate = (summary.n_moved as f64 / seconds.max(1e-3)) as u64;
        let _ = write!(line, " in {seconds:.1} s, {}/s", HumanBytes(rate));
        match (summary.hashed, self.hash.filter(|_| summary.n_files == 1)) {
            (true, Some(hash)) => {
                line.push_str("\nBLAKE3 ");
                for byte in hash {
                    let _ = write!(line, "{byte:02x}");
                }
            }
            (true, None) => line.push_str(", each checked by its BLAKE3"),
            (false, _) => line.push_str(", not checked (`--no-hash`)"),
        }
        self.notice(&line);
    }

    fn notice(&self, text: &str) {
        if !self.quiet {
            notice(text);
        }
    }
}

impl Observer for TransferProgress<'_> {
    fn phase(&mut self, phase: Phase) {
        self.end_bar();
        let show = !self.quiet;
        (self.bar, self.n_bytes) = match phase {
            Phase::Looking => (Some(ByteProgress::named(show, "looking", None)), 0),
            Phase::Moving { n_bytes, n_present } => {
                self.started = Instant::now();
                let bar = ByteProgress::new(show, Some(n_bytes));
                bar.begin_at(n_present);
                (Some(bar), n_present)
            }
            _ => (Some(ByteProgress::named(show, "syncing", None)), 0),
        };
    }

    fn bytes(&mut self, n_bytes: u64) {
        self.n_bytes += n_bytes;
        if let Some(bar) = &self.bar {
            bar.set(self.n_bytes);
        }
    }

    fn file(&mut self, _path: &str, hash: Option<[u8; 32]>) {
        self.hash = hash;
        self.n_files += 1;
    }

    fn left_out(&mut self, path: &Path, what: &str) {
        self.n_left_out += 1;
        if self.n_left_out <= MOST_TOLD {
            self.notice(&format!("`{}` is {what} and is left out", path.display()));
        }
    }

    fn stops(&self) -> bool {
        self.interrupt.stopped().is_some()
    }
}

impl Drop for TransferProgress<'_> {
    fn drop(&mut self) {
        self.end_bar();
    }
}

/// Returns the pause before the next attempt, after `n_tries` repeated attempts. The first pause is
/// half a second; each later one is twice as long, up to half a minute.
pub(super) fn pause(n_tries: u32) -> Duration {
    Duration::from_millis(500 << n_tries.min(6)).min(Duration::from_secs(30))
}
