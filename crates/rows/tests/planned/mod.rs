//! A [`Source`] for tests that returns rows, and optionally an error, which the test has defined.
#![allow(dead_code)] // Each test file uses only some of these items.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use onecopy_rows::{
    Block, Budget, Cell, Column, ColumnType, Date, Emitted, Error, Fetched, LongKind, RowSink,
    Schema, Source, Time, Timestamp,
};
use onecopy_text::{Chunk, Policy, Units};
use onecopy_wire::{CancelHandle, ChunkError, ChunkSource, Filled};

/// The cells of a row.
pub(crate) type RowPlan = Vec<Owned>;

/// A cell that owns its value.
#[derive(Clone, Debug)]
pub(crate) enum Owned {
    Null,
    Bool(bool),
    I64(i64),
    U64(u64),
    F32(f32),
    F64(f64),
    Decimal(String),
    Utf8(Vec<u8>),
    Utf16(Vec<u16>),
    Bytes(Vec<u8>),
    Date(Date),
    Time(Time, u8),
    Timestamp(Timestamp, u8),
    Uuid([u8; 16]),
    Long(LongKind, Vec<Owned>),
}

impl Owned {
    pub(crate) fn utf8(text: &str) -> Owned {
        Owned::Utf8(text.as_bytes().to_vec())
    }

    pub(crate) fn utf16(text: &str) -> Owned {
        Owned::Utf16(text.encode_utf16().collect())
    }

    pub(crate) fn long_utf16(parts: &[&[u16]]) -> Owned {
        let parts = parts.iter().map(|p| Owned::Utf16(p.to_vec())).collect();
        Owned::Long(LongKind::Text, parts)
    }

    /// Creates a text cell: a whole value if `cuts` is `None`, otherwise a long value that is
    /// divided at these byte offsets. An offset may be inside a character.
    pub(crate) fn utf8_in(text: &str, cuts: Option<Vec<usize>>) -> Owned {
        in_parts(text.as_bytes(), cuts, LongKind::Text, Owned::Utf8)
    }

    pub(crate) fn utf16_in(text: &str, cuts: Option<Vec<usize>>) -> Owned {
        let units: Vec<u16> = text.encode_utf16().collect();
        in_parts(&units, cuts, LongKind::Text, Owned::Utf16)
    }

    pub(crate) fn bytes_in(bytes: Vec<u8>, cuts: Option<Vec<usize>>) -> Owned {
        in_parts(&bytes, cuts, LongKind::Bytes, Owned::Bytes)
    }

    fn cell(&self) -> Cell<'_> {
        match self {
            Owned::Null => Cell::Null,
            Owned::Bool(v) => Cell::Bool(*v),
            Owned::I64(v) => Cell::I64(*v),
            Owned::U64(v) => Cell::U64(*v),
            Owned::F32(v) => Cell::F32(*v),
            Owned::F64(v) => Cell::F64(*v),
            Owned::Decimal(v) => Cell::Decimal(v.as_bytes()),
            Owned::Utf8(v) => Cell::Text(Units::Utf8(v)),
            Owned::Utf16(v) => Cell::Text(Units::Utf16(v)),
            Owned::Bytes(v) => Cell::Bytes(v),
            Owned::Date(v) => Cell::Date(*v),
            Owned::Time(v, digits) => Cell::Time(*v, *digits),
            Owned::Timestamp(v, digits) => Cell::Timestamp(*v, *digits),
            Owned::Uuid(v) => Cell::Uuid(*v),
            Owned::Long(..) => unreachable!("long values are given in parts"),
        }
    }
}

fn in_parts<T: Copy>(
    units: &[T],
    cuts: Option<Vec<usize>>,
    kind: LongKind,
    owned: impl Fn(Vec<T>) -> Owned,
) -> Owned {
    let Some(mut cuts) = cuts else {
        return owned(units.to_vec());
    };
    cuts.sort_unstable();
    let (mut parts, mut at) = (Vec::new(), 0);
    for cut in cuts.into_iter().chain([units.len()]) {
        let cut = cut.clamp(at, units.len());
        parts.push(owned(units[at..cut].to_vec()));
        at = cut;
    }
    Owned::Long(kind, parts)
}

/// The rows and the behaviour of a [`PlannedSource`].
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    names: Vec<String>,
    rows: Vec<RowPlan>,
    block_rows: usize,
    policy: Policy,
    failure: Option<Error>,
}

impl Plan {
    pub(crate) fn new(names: &[&str]) -> Plan {
        Plan {
            names: names.iter().map(|n| (*n).to_owned()).collect(),
            rows: Vec::new(),
            block_rows: 1000,
            policy: Policy::Strict,
            failure: None,
        }
    }

    pub(crate) fn row(mut self, cells: impl IntoIterator<Item = Owned>) -> Plan {
        self.rows.push(cells.into_iter().collect());
        self
    }

    pub(crate) fn block_rows(mut self, block_rows: usize) -> Plan {
        self.block_rows = block_rows;
        self
    }

    pub(crate) fn policy(mut self, policy: Policy) -> Plan {
        self.policy = policy;
        self
    }

    /// Makes the fetch after the last row return `error` instead of the end.
    pub(crate) fn fail(mut self, error: Error) -> Plan {
        self.failure = Some(error);
        self
    }

    pub(crate) fn into_source(self) -> PlannedSource {
        let columns = self.names.iter().map(|name| Column {
            name: name.clone(),
            column_type: ColumnType::Any,
            size: 0,
            nullable: None,
            type_name: String::new(),
        });
        PlannedSource {
            schema: Schema::new(columns.collect()),
            blocks: blocks(&self.rows, self.block_rows),
            current: PlannedBlock::default(),
            policy: self.policy,
            failure: self.failure,
            cancelled: Arc::new(AtomicBool::new(false)),
            during_failure: Arc::default(),
        }
    }
}

#[derive(Clone, Debug)]
enum Call {
    Cell(usize, Owned),
    LongBegin(usize, LongKind),
    LongPart(usize, Owned),
    LongEnd(usize),
}

/// The part of a row that is in one block. The parts of a long value are in different blocks.
#[derive(Clone, Debug, Default)]
struct RowPiece {
    begins: bool,
    calls: Vec<Call>,
    ends: bool,
}

/// Divides rows into blocks of `block_rows` rows. A block also ends after each part of a long value
/// except the last part.
fn blocks(rows: &[RowPlan], block_rows: usize) -> VecDeque<PlannedBlock> {
    let (mut blocks, mut block) = (VecDeque::new(), PlannedBlock::default());
    for row in rows {
        let mut piece = RowPiece {
            begins: true,
            ..RowPiece::default()
        };
        for (column, cell) in row.iter().enumerate() {
            let Owned::Long(kind, parts) = cell else {
                piece.calls.push(Call::Cell(column, cell.clone()));
                continue;
            };
            piece.calls.push(Call::LongBegin(column, *kind));
            for (i, part) in parts.iter().enumerate() {
                piece.calls.push(Call::LongPart(column, part.clone()));
                if i + 1 < parts.len() {
                    block.0.push(std::mem::take(&mut piece));
                    blocks.push_back(std::mem::take(&mut block));
                }
            }
            piece.calls.push(Call::LongEnd(column));
        }
        piece.ends = true;
        block.0.push(piece);
        if block.0.len() >= block_rows {
            blocks.push_back(std::mem::take(&mut block));
        }
    }
    if !block.0.is_empty() {
        blocks.push_back(block);
    }
    blocks
}

/// The rows of one fetch.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlannedBlock(Vec<RowPiece>);

impl Block for PlannedBlock {
    fn n_rows(&self) -> usize {
        self.0.len()
    }

    fn emit<S: RowSink>(&self, first_row: usize, sink: &mut S) -> Result<Emitted, S::Error> {
        for (i, piece) in self.0.iter().enumerate().skip(first_row) {
            if piece.begins {
                sink.begin_row()?;
            }
            for call in &piece.calls {
                match call {
                    Call::Cell(column, cell) => sink.cell(*column, cell.cell())?,
                    Call::LongBegin(column, kind) => sink.long_begin(*column, *kind)?,
                    Call::LongPart(column, part) => sink.long_part(*column, part.cell())?,
                    Call::LongEnd(column) => sink.long_end(*column)?,
                }
            }
            if piece.ends && !sink.end_row()? && i + 1 < self.0.len() {
                return Ok(Emitted::Paused { next_row: i + 1 });
            }
        }
        Ok(Emitted::All)
    }

    fn emit_columns<S: RowSink>(&self, _: usize, _: usize, _: &mut S) -> Result<(), S::Error> {
        unreachable!("the sinks of bytes want rows")
    }
}

/// A source that returns the rows of a [`Plan`].
#[derive(Debug)]
pub(crate) struct PlannedSource {
    schema: Schema,
    blocks: VecDeque<PlannedBlock>,
    current: PlannedBlock,
    policy: Policy,
    failure: Option<Error>,
    /// `true` after a cancel handle of this source was used.
    pub(crate) cancelled: Arc<AtomicBool>,
    /// A cancel handle that the fetch that fails uses before it returns its error, as if another
    /// thread had cancelled during the fetch.
    pub(crate) during_failure: Arc<Mutex<Option<CancelHandle>>>,
}

impl Source for PlannedSource {
    type Block = PlannedBlock;

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn fetch(&mut self, _: Budget) -> Result<Fetched, Error> {
        match (self.blocks.pop_front(), &self.failure) {
            (Some(block), _) => self.current = block,
            (None, Some(error)) => {
                if let Some(handle) = &*self.during_failure.lock().expect("no panic under it") {
                    handle.cancel();
                }
                return Err(error.clone());
            }
            (None, None) => return Ok(Fetched::End),
        }
        Ok(Fetched::Rows(self.current.n_rows()))
    }

    fn block(&self) -> &PlannedBlock {
        &self.current
    }

    fn cancel_handle(&self) -> CancelHandle {
        let cancelled = self.cancelled.clone();
        CancelHandle::new(move || cancelled.store(true, Relaxed))
    }

    fn text_policy(&self) -> Policy {
        self.policy
    }
}

/// Reads a stream to its end, in chunks of `capacity` bytes. Returns all bytes, and the error that
/// ended the stream; `None` if no error did.
pub(crate) fn pump(
    stream: &mut dyn ChunkSource,
    capacity: usize,
) -> (Vec<u8>, Result<(), ChunkError>) {
    let (mut all, mut chunk) = (Vec::new(), Chunk::with_capacity(capacity));
    loop {
        chunk.clear();
        let filled = stream.fill(&mut chunk);
        match filled {
            Ok(Filled::More) => {
                assert!(!chunk.is_empty(), "more to come, but nothing came");
                all.extend_from_slice(&chunk);
            }
            Ok(Filled::Done) => {
                all.extend_from_slice(&chunk);
                return (all, Ok(()));
            }
            Err(error) => {
                all.extend_from_slice(&chunk);
                return (all, Err(error));
            }
        }
    }
}
