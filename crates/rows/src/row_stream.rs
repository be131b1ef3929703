//! A source and a format as a chunk source: what `cursor.json()` is and what the server pumps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use onecopy_text::{ByteSink, Chunk, Ledger, Policy, Stage, Tally};
use onecopy_wire::csv::Dialect;
use onecopy_wire::{CancelHandle, ChunkError, ChunkSource, Filled, NonFinite, WriteError};

use crate::error::{Error, ErrorKind};
use crate::sink::byte_rows::Progress;
use crate::sink::format::ValueOptions;
use crate::sink::{
    BsonOptions, BsonRows, ByteRows, CsvRows, JsonRows, NdjsonRows, RowFormat, SinkError, Turn,
};
use crate::source::{BlockPosition, Budget, PumpError, Pumped, Source};

/// Largest part of a long value that a row stream asks its source for, in bytes: half of a usual chunk of 64 KiB, so
/// that a part converted from UTF-16 (three bytes for two at most, but for escapes) still fits one.
pub const PART_BYTES: usize = 32 << 10;

/// Size that a chunk of no capacity is filled to, in bytes.
pub const CHUNK_BYTES: usize = 64 << 10;

/// A chunk is handed on when so much time has passed since its fill began, however little it holds.
pub const CHUNK_DELAY: Duration = Duration::from_millis(20);

/// Room left in a chunk for the framing that a server puts behind the data, in bytes.
const FRAME_BYTES: usize = 16;

/// A format that rows can be streamed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// One array of objects.
    Json,
    /// One object a line.
    Ndjson,
    /// RFC 4180 with a header line.
    Csv,
    /// One document a row.
    Bson(BsonOptions),
}

impl Format {
    /// Its name, as users write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Format::Json => "json",
            Format::Ndjson => "ndjson",
            Format::Csv => "csv",
            Format::Bson(_) => "bson",
        }
    }
}

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamOptions {
    /// The format.
    pub format: Format,
    /// What to do with malformed text.
    pub policy: Policy,
    /// What to write for NaN and the infinities.
    pub non_finite: NonFinite,
    /// Delimiter and line end of CSV.
    pub dialect: Dialect,
}

impl StreamOptions {
    /// This format, strict, with no form for NaN, and the usual CSV.
    #[must_use]
    pub fn new(format: Format) -> StreamOptions {
        StreamOptions {
            format,
            policy: Policy::Strict,
            non_finite: NonFinite::Error,
            dialect: Dialect::default(),
        }
    }
}

/// The rows of `source` as a stream of bytes in `format`, with the text policy of the source's connection.
///
/// # Errors
/// As [`chunks_with`].
pub fn chunks<S: Source + 'static>(
    source: S,
    format: Format,
    ledger: &Ledger,
) -> Result<Box<dyn ChunkSource>, Error> {
    let options = StreamOptions {
        policy: source.text_policy(),
        ..StreamOptions::new(format)
    };
    chunks_with(source, &options, ledger)
}

/// The rows of `source` as a stream of bytes.
///
/// # Errors
/// [`ErrorKind::Programming`] where the statement gives no rows, or where the format needs distinct column names and
/// these are not.
pub fn chunks_with<S: Source + 'static>(
    source: S,
    options: &StreamOptions,
    ledger: &Ledger,
) -> Result<Box<dyn ChunkSource>, Error> {
    let schema = source.schema().clone();
    if schema.n_columns() == 0 {
        return Err(Error::new(
            ErrorKind::Programming,
            "the statement gives no rows\nstream a SELECT, or add RETURNING",
        ));
    }
    let values = ValueOptions {
        policy: options.policy,
        non_finite: options.non_finite,
    };
    Ok(match options.format {
        Format::Json => Box::new(RowStream::new(
            source,
            JsonRows::new(&schema, values)?,
            ledger,
        )),
        Format::Ndjson => Box::new(RowStream::new(
            source,
            NdjsonRows::new(&schema, values)?,
            ledger,
        )),
        Format::Csv => Box::new(RowStream::new(
            source,
            CsvRows::new(&schema, options.dialect, values),
            ledger,
        )),
        Format::Bson(bson) => Box::new(RowStream::new(
            source,
            BsonRows::new(&schema, bson, options.policy)?,
            ledger,
        )),
    })
}

/// Rows on their way into chunks. The choice of source and format was made when it was made: nothing is looked up per
/// cell.
///
/// A fill ends when another row as long as the longest so far may not fit, between two parts of a long value likewise,
/// after [`CHUNK_DELAY`] with what is there, or before a fetch that may block where a quarter of a chunk is there. A
/// small answer so comes whole in one fill. Where rows have to stay whole (BSON) it ends between two of them alone, and a chunk
/// grows as far as its longest row wants. A fill that fails leaves the complete rows before the failure in the chunk.
#[derive(Debug)]
pub struct RowStream<S, F> {
    source: S,
    format: F,
    ledger: Ledger,
    cancelled: Arc<AtomicBool>,
    position: BlockPosition,
    progress: Progress,
    state: State,
    /// Size that chunks are filled to: what the first one could hold. A chunk that had to grow for a long row may be
    /// larger when it comes back, and would otherwise be filled further each time.
    chunk_bytes: Option<usize>,
}

#[derive(Debug)]
enum State {
    Fresh,
    Running,
    Done,
    Failed(Error),
}

impl<S: Source, F: RowFormat> RowStream<S, F> {
    /// A stream from the source's first row on.
    pub fn new(source: S, format: F, ledger: &Ledger) -> RowStream<S, F> {
        RowStream {
            source,
            format,
            ledger: ledger.clone(),
            cancelled: Arc::new(AtomicBool::new(false)),
            position: BlockPosition::default(),
            progress: Progress::default(),
            state: State::Fresh,
            chunk_bytes: None,
        }
    }

    fn fill_running(&mut self, chunk: &mut Chunk) -> Result<Filled, Error> {
        let start = chunk.len();
        let first_bytes = *self.chunk_bytes.get_or_insert(match chunk.capacity() {
            0 => CHUNK_BYTES,
            capacity => capacity,
        });
        // One that comes with a chunk's worth in it is where the whole answer is gathered: its owner made the room.
        let chunk_bytes = match start >= first_bytes {
            true => chunk.capacity(),
            false => first_bytes,
        };
        let missing = chunk_bytes.saturating_sub(chunk.capacity());
        if chunk.is_empty() && missing > 0 {
            chunk
                .spare(chunk_bytes)
                .map_err(|e| self.sink_error(between(e.into())))?;
        }
        if matches!(self.state, State::Fresh) {
            self.format
                .begin(chunk)
                .map_err(|e| self.sink_error(between(e)))?;
            self.state = State::Running;
        }
        let turn = Turn {
            enough_bytes: chunk_bytes.saturating_sub(FRAME_BYTES),
            deadline: Some(Instant::now() + CHUNK_DELAY),
        };
        let worth_sending = start + chunk_bytes.saturating_sub(start) / 4;
        let mut late = false;
        let mut sink = ByteRows::new(&mut self.format, chunk, &mut self.progress, turn);
        loop {
            if self.cancelled.load(Relaxed) {
                sink.take_back();
                return Err(cancelled());
            }
            let budget = Budget::default();
            match self.source.pump(&mut self.position, budget, &mut sink) {
                Ok(Pumped::End) => {
                    self.format
                        .end(chunk)
                        .map_err(|e| self.sink_error(between(e)))?;
                    self.state = State::Done;
                    return Ok(Filled::Done);
                }
                Ok(Pumped::More) => {
                    let len = sink.len();
                    let may_block = self.position.next_row >= self.position.n_rows;
                    late |= sink.is_late();
                    if sink.is_bound() {
                        continue;
                    }
                    let waiting = may_block && (late || len >= worth_sending);
                    if len > start && (sink.is_full() || waiting) {
                        return Ok(Filled::More);
                    }
                    if late {
                        // The rest of the block is there: it goes with this chunk as far as it fits.
                        sink.forget_deadline();
                    }
                }
                // The rows before it may go out: nothing of the one that failed stands behind them.
                Err(error) => {
                    sink.take_back();
                    return Err(match error {
                        PumpError::Source(error) => error,
                        PumpError::Sink(error) => self.sink_error(error),
                    });
                }
            }
        }
    }

    fn sink_error(&self, error: SinkError) -> Error {
        error.into_error(self.source.schema(), self.progress.n_rows)
    }
}

fn between(error: WriteError) -> SinkError {
    SinkError {
        error,
        column: None,
    }
}

fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "the row stream was cancelled")
}

impl<S: Source, F: RowFormat> ChunkSource for RowStream<S, F> {
    fn fill(&mut self, chunk: &mut Chunk) -> Result<Filled, ChunkError> {
        match &self.state {
            State::Done => return Ok(Filled::Done),
            State::Failed(error) => return Err(error.clone().into()),
            State::Fresh | State::Running => {}
        }
        let filled = self.fill_running(chunk);
        let mut fetched = Tally::default();
        fetched.copied_again(self.source.take_moved_bytes());
        fetched.enter(&self.ledger, Stage::Fetch);
        // It grew, for a long row or part or by its owner's wish, and what it held then moved.
        self.format.tally().copied_again(chunk.take_moved_bytes());
        self.format.tally().enter(&self.ledger, Stage::Encode);
        filled.map_err(|mut error| {
            // A driver that was told to stop may say so in words of its own.
            if self.cancelled.load(Relaxed) {
                error.kind = ErrorKind::Cancelled;
            }
            self.state = State::Failed(error.clone());
            error.into()
        })
    }

    fn cancel_handle(&self) -> CancelHandle {
        let (flag, source) = (self.cancelled.clone(), self.source.cancel_handle());
        CancelHandle::new(move || {
            flag.store(true, Relaxed);
            source.cancel();
        })
    }

    fn n_rows(&self) -> u64 {
        self.progress.n_rows
    }
}
