//! `RowStream`: the rows of a source in an output format, as a `ChunkSource`. `cursor.json()`
//! returns a row stream, and the HTTP server sends its chunks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use onecopy_text::{ByteSink, Chunk, Ledger, Policy, Stage, Tally};
use onecopy_wire::csv::Dialect;
use onecopy_wire::{CancelHandle, ChunkError, ChunkSource, Filled, NonFinite, WriteError};

use crate::error::{Error, ErrorKind};
use crate::sink::byte_rows::SinkProgress;
use crate::sink::format::ValueOptions;
use crate::sink::{
    BsonOptions, BsonRows, ByteRows, CsvRows, JsonRows, NdjsonRows, RowFormat, SinkError, Turn,
};
use crate::source::{BlockPosition, Budget, PumpError, Pumped, Source};

/// The largest part of a long value that a row stream requests from its source, in bytes: half of
/// [`CHUNK_BYTES`]. Two bytes of UTF-16 become at most three bytes of UTF-8, so a converted part
/// without escapes fits in one chunk.
pub const PART_BYTES: usize = 32 << 10;

/// The default size of a chunk in bytes. If the caller passes a chunk without capacity, a row
/// stream fills it to this size.
pub const CHUNK_BYTES: usize = 64 << 10;

/// The longest time for which a row stream fills a chunk. After this time, the stream passes the
/// chunk on before its next fetch that may block, even if the chunk contains few bytes.
pub const CHUNK_DELAY: Duration = Duration::from_millis(20);

/// The number of bytes at the end of a chunk that a row stream does not fill. A server writes the
/// framing of the chunked coding there.
const FRAME_BYTES: usize = 16;

/// An output format of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// JSON: one array of objects.
    Json,
    /// NDJSON: one object per line.
    Ndjson,
    /// CSV by RFC 4180, with a header line.
    Csv,
    /// BSON: one document per row.
    Bson(BsonOptions),
}

impl Format {
    /// Returns the name of the format in options and file names.
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

/// The options of a row stream: its format, and how values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamOptions {
    /// The output format.
    pub format: Format,
    /// The treatment of malformed text in the rows.
    pub policy: Policy,
    /// The treatment of NaN and infinities.
    pub non_finite: NonFinite,
    /// The delimiter and the line end of CSV; other formats ignore them.
    pub dialect: Dialect,
}

impl StreamOptions {
    /// Creates options for `format`: malformed text and NaN are errors, and CSV has its default
    /// delimiter and line end.
    #[must_use]
    pub fn new(format: Format) -> StreamOptions {
        StreamOptions {
            format,
            policy: Policy::Strict,
            non_finite: NonFinite::Error,
            dialect: Dialect::default(),
        }
    }

    /// Creates options for `format` as [`StreamOptions::new`] does, but with `policy` as the
    /// treatment of malformed text.
    #[must_use]
    pub fn with_policy(format: Format, policy: Policy) -> StreamOptions {
        StreamOptions {
            policy,
            ..StreamOptions::new(format)
        }
    }
}

/// Streams the rows of `source` in `format`, with the text policy of the source's connection.
///
/// # Errors
/// The errors of [`chunks_with`].
pub fn chunks<S: Source + 'static>(
    source: S,
    format: Format,
    ledger: &Ledger,
) -> Result<Box<dyn ChunkSource>, Error> {
    let options = StreamOptions::with_policy(format, source.text_policy());
    chunks_with(source, &options, ledger)
}

/// Streams the rows of `source` as bytes, in the format and with the policies of `options`.
///
/// # Errors
/// [`ErrorKind::Programming`] if the statement returns no rows, or the format requires distinct
/// column names and two columns have the same name.
pub fn chunks_with<S: Source + 'static>(
    source: S,
    options: &StreamOptions,
    ledger: &Ledger,
) -> Result<Box<dyn ChunkSource>, Error> {
    let schema = source.schema().clone();
    if !schema.has_rows() {
        return Err(Error::new(
            ErrorKind::Programming,
            "the statement returns no rows\nstream a SELECT, or add RETURNING",
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

/// A stream of rows as chunks. The source and the format are type parameters, so no call per cell
/// is dispatched dynamically.
///
/// The stream passes a chunk on after a complete row or a part of a long value, as soon as the free
/// capacity of the chunk is less than the size of the longest row so far. Before a fetch that may
/// block, it passes the chunk on if a quarter of the chunk is filled or [`CHUNK_DELAY`] has passed.
/// A small response is therefore one chunk. If the format requires that a row is in one chunk
/// (BSON), a chunk is passed on only between two rows, and grows to the size of its longest row. If
/// filling a chunk fails, the chunk contains the complete rows before the failure.
#[derive(Debug)]
pub struct RowStream<S, F> {
    source: S,
    format: F,
    ledger: Ledger,
    cancelled: Arc<AtomicBool>,
    position: BlockPosition,
    progress: SinkProgress,
    state: RowStreamState,
    /// The number of bytes to which each chunk is filled; `None` before the first fill. It is the
    /// capacity of the first chunk. A later chunk can have a larger capacity, because it grew for a
    /// long row when it was used before.
    chunk_bytes: Option<usize>,
}

#[derive(Debug)]
enum RowStreamState {
    Fresh,
    Running,
    Done,
    Failed(Error),
}

impl<S: Source, F: RowFormat> RowStream<S, F> {
    /// Creates a stream that begins with the first row of the source.
    pub fn new(source: S, format: F, ledger: &Ledger) -> RowStream<S, F> {
        RowStream {
            source,
            format,
            ledger: ledger.clone(),
            cancelled: Arc::new(AtomicBool::new(false)),
            position: BlockPosition::default(),
            progress: SinkProgress::default(),
            state: RowStreamState::Fresh,
            chunk_bytes: None,
        }
    }

    fn fill_running(&mut self, chunk: &mut Chunk) -> Result<Filled, Error> {
        let start = chunk.len();
        let first_bytes = *self.chunk_bytes.get_or_insert(match chunk.capacity() {
            0 => CHUNK_BYTES,
            capacity => capacity,
        });
        // If the chunk already contains that many bytes, its owner collects the whole response in
        // it and has reserved its capacity.
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
        if matches!(self.state, RowStreamState::Fresh) {
            self.format
                .begin(chunk)
                .map_err(|e| self.sink_error(between(e)))?;
            self.state = RowStreamState::Running;
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
                    self.state = RowStreamState::Done;
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
                        // The remaining rows of the block are in memory: they are added to this
                        // chunk while they fit.
                        sink.forget_deadline();
                    }
                }
                // The bytes of the failed row are removed, so that the complete rows before it can
                // be sent.
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
            RowStreamState::Done => return Ok(Filled::Done),
            RowStreamState::Failed(error) => return Err(error.clone().into()),
            RowStreamState::Fresh | RowStreamState::Running => {}
        }
        let filled = self.fill_running(chunk);
        let mut fetched = Tally::default();
        fetched.copied_again(self.source.take_moved_bytes());
        fetched.enter(&self.ledger, Stage::Fetch);
        // The chunk may have grown: for a long row, for a long part, or because its owner requested
        // it. Its contents were then moved, which is counted here.
        self.format.tally().copied_again(chunk.take_moved_bytes());
        self.format.tally().enter(&self.ledger, Stage::Encode);
        filled.map_err(|mut error| {
            // A driver may report the cancellation as another error.
            if self.cancelled.load(Relaxed) {
                error.kind = ErrorKind::Cancelled;
            }
            self.state = RowStreamState::Failed(error.clone());
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
