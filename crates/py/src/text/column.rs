//! `decode_column`: decodes a column of cells to a list of `str`. The buffer contains the cells at
//! a fixed distance, as in ODBC.

use std::marker::PhantomData;

use onecopy_text::convert::{CellEncoding, Kernels, Work, with_kernels};
use onecopy_text::{Stage, Tally};
use pyo3::Borrowed;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::cell::with_encoding;
use super::codec::{Codec, Order};
use super::decode::{by_kernels, decode_otherwise};
use crate::ledger;
use crate::raw::buffer::{self, BufferBytes, as_units};
use crate::raw::collector::HeldOff;
use crate::raw::fresh::Blanks;
use crate::raw::function::{self, Args, Function};
use crate::raw::list_builder::ListBuilder;
use crate::raw::text::make_cell;

struct DecodeColumn;

impl Function for DecodeColumn {
    const NAME: &'static str = "decode_column";
    const SIGNATURE: &'static str =
        "(data, lengths, stride, encoding='utf-16-le', errors='strict')";
    const DOC: &'static str = "\
The texts of a column of fixed stride, as a list of `str` and None.

``data`` is a buffer with a cell every ``stride`` bytes; ``lengths`` a buffer of signed integers of
4 or 8 bytes, the size of each cell's text in bytes, negative for NULL (SQL_NULL_DATA). This is the
layout that an ODBC driver fills in column-wise binding. Cells with the same text may share one
`str`.

Raises `ValueError` if a length exceeds its cell or a cell is outside of the data,
`UnicodeDecodeError` as :func:`decode`, with positions in the cell.

Copies: none besides the conversion of each distinct text.

>>> import array
>>> data = 'ab  cd  '.encode('utf-16-le')
>>> onecopy.text.decode_column(data, array.array('q', [4, -1]), 8)
['ab', None]
";
    const PARAMETERS: &'static [&'static str] =
        &["data", "lengths", "stride", "encoding", "errors"];
    const REQUIRED: usize = 3;

    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let data = BufferBytes::of(args.required(0))?;
        let lengths = Lengths::of(args.required(1))?;
        let lengths = lengths.as_slice();
        let codec = Codec::of_argument(args.get(3), Codec::Utf16(Order::Little))?;
        let (data, stride) = (data.as_slice(), args.required(2).extract()?);
        let errors = args.get(4);
        let _no_collection = HeldOff::new(py);
        let mut tally = Tally::default();
        let made = with_encoding!(codec, E => with_kernels(ColumnInput::<E> {
            py,
            data,
            lengths,
            stride,
            codec,
            errors,
            tally: &mut tally,
            encoding: PhantomData,
        }))?;
        ledger::enter(py, &mut tally, Stage::Decode)?;
        Ok(made)
    }
}

/// The arguments for decoding a column. [`Work::run`] decodes it.
struct ColumnInput<'a, 'py, E> {
    py: Python<'py>,
    data: &'a [u8],
    lengths: &'a [i64],
    stride: usize,
    codec: Codec,
    errors: Option<Borrowed<'a, 'py, PyAny>>,
    tally: &'a mut Tally,
    encoding: PhantomData<E>,
}

impl<'py, E: CellEncoding> Work for ColumnInput<'_, 'py, E> {
    type Output = PyResult<Bound<'py, PyAny>>;

    #[inline(always)]
    fn run<K: Kernels>(mut self, kernels: K) -> Self::Output {
        let (data, lengths, stride) = (self.data, self.lengths, self.stride);
        let blanks = Blanks::new(self.py);
        let is_kept = ledger::is_kept();
        let mut items = ListBuilder::new(self.py, lengths.len())?;
        let mut seen = RecentTexts::new(lengths.len());
        // The index of the first reusable cell. An error handler may have changed earlier cells.
        let mut seen_from = 0;
        // The text of the previous cell, if it is not NULL and the data is unchanged.
        let mut before: Option<&[u8]> = None;
        let ahead = stride.saturating_mul(AHEAD);
        let mut rest = data;
        // This loop decodes the cells with complete slots.
        while let i = items.len()
            && i < lengths.len()
            && stride > 0
            && let Some((bytes, after)) = rest.split_at_checked(stride)
        {
            rest = after;
            // The length of NULL is negative. As `usize`, it is larger than any slot.
            let n = lengths[i] as usize;
            let Some(cell) = bytes.get(..n) else {
                before = None;
                items.push(self.rare(i)?);
                continue;
            };
            kernels.fetch(bytes, ahead);
            kernels.fetch(bytes, ahead + 64);
            if let Some(before) = before
                && before.len() == n
                && kernels.is_equal(before, cell)
            {
                items.push_again(i - 1);
                continue;
            }
            before = Some(cell);
            if let Some(slot) = seen.slot(i, || kernels.hash(cell)) {
                let at = *slot as usize;
                // The slot may contain any index: the cell must be decoded and have the same text.
                if (seen_from..i).contains(&at)
                    && lengths[at] as usize == n
                    && kernels.is_equal(&data[at * stride..][..n], cell)
                {
                    seen.hits += 1;
                    items.push_again(at);
                    continue;
                }
                *slot = i as u32;
            }
            let tally = is_kept.then_some(&mut *self.tally);
            if let Some(made) = make_cell::<K, E>(blanks, kernels, cell, tally) {
                items.push(made);
                continue;
            }
            let (made, is_quiet) = self.other(cell)?;
            items.push(made);
            if !is_quiet {
                // An error handler may have changed the data, so earlier texts are not reusable.
                (before, seen_from) = (None, i + 1);
            }
        }
        // The slot of the last cell may extend past the end of the data.
        for i in items.len()..lengths.len() {
            items.push(self.rare(i)?);
        }
        Ok(items.finish().into_any())
    }
}

impl<'a, 'py, E> ColumnInput<'a, 'py, E> {
    /// Decodes a cell of any length and script. Also returns `false` if an error handler may have
    /// run.
    #[inline(never)]
    fn other(&mut self, cell: &[u8]) -> PyResult<(Bound<'py, PyAny>, bool)> {
        Ok(match by_kernels(self.py, cell, self.codec, self.tally)? {
            Some(made) => (made, true),
            None => {
                let made = decode_otherwise(self.py, cell, self.codec, self.errors)?;
                (made, self.errors.is_none())
            }
        })
    }

    /// Decodes the cell `i` if it is NULL or its slot is incomplete. A cell longer than its slot or
    /// the data is an error.
    #[cold]
    fn rare(&mut self, i: usize) -> PyResult<Bound<'py, PyAny>> {
        let (data, stride) = (self.data, self.stride);
        let Ok(length) = usize::try_from(self.lengths[i]) else {
            return Ok(self.py.None().into_bound(self.py));
        };
        let cell = i
            .checked_mul(stride)
            .and_then(|from| data.get(from..from.checked_add(length)?));
        match cell {
            Some(cell) if length <= stride => Ok(self.other(cell)?.0),
            _ => Err(outside(data.len(), i, stride, length)),
        }
    }
}

#[cold]
fn outside(n_bytes: usize, i: usize, stride: usize, length: usize) -> PyErr {
    PyValueError::new_err(if length > stride {
        format!("the text of cell {i} is {length} bytes long, and the stride is {stride}")
    } else {
        format!("cell {i} is after the end of the data: {n_bytes} bytes at a stride of {stride}")
    })
}

/// The distance in cells from the current cell to the prefetched one. The processor itself
/// prefetches only short distances.
const AHEAD: usize = 32;

/// The maximum number of slots in the table of recent strings.
const MOST_SLOTS: usize = 4096;
/// The number of lookups between two evaluations of the hits.
const TRY: usize = 256;
/// The number of cells without lookups after too few hits.
const PAUSE: usize = 32 * TRY;

/// A hash table of recent cells. Cells with equal strings share one `str`.
struct RecentTexts {
    /// The cell indices. A slot may contain any index: the cell's contents are compared first.
    slots: Vec<u32>,
    /// The cell index of the next evaluation of `hits`.
    judged_at: usize,
    hits: usize,
    is_on: bool,
}

impl RecentTexts {
    fn new(n_cells: usize) -> RecentTexts {
        RecentTexts {
            slots: vec![0; n_cells.clamp(1, MOST_SLOTS).next_power_of_two()],
            judged_at: TRY,
            hits: 0,
            is_on: true,
        }
    }

    /// Returns the slot for cell `i`; `None` during a pause.
    #[inline(always)]
    fn slot(&mut self, i: usize, hash: impl FnOnce() -> u32) -> Option<&mut u32> {
        if i >= self.judged_at {
            self.judge(i);
        }
        if !self.is_on {
            return None;
        }
        let at = hash() as usize & (self.slots.len() - 1);
        self.slots.get_mut(at)
    }

    #[cold]
    fn judge(&mut self, i: usize) {
        // With fewer hits, lookups take longer than the time that they save.
        self.is_on = !self.is_on || 2 * self.hits >= TRY;
        self.judged_at = i + if self.is_on { TRY } else { PAUSE };
        self.hits = 0;
    }
}

/// The lengths of the cells in bytes, from a buffer of signed integers.
enum Lengths<'a, 'py> {
    AsTheyAre(BufferBytes<'a, 'py>),
    /// Lengths from 4-byte integers or from an unaligned address.
    Copied(Vec<i64>),
}

impl<'a, 'py> Lengths<'a, 'py> {
    fn of(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Lengths<'a, 'py>> {
        let format = buffer::format_of(object)?;
        let is_long = match format.trim_start_matches(['@', '=', '<']) {
            "i" => false,
            "q" | "n" => true,
            "l" => !format.starts_with(['=', '<']) && size_of::<std::ffi::c_long>() == 8,
            _ => {
                return Err(PyTypeError::new_err(format!(
                    "lengths must be a buffer of signed integers of 4 or 8 bytes, not of format '{format}'\n\
                     array.array('q', …) is one, and so is an array of numpy.int64"
                )));
            }
        };
        let bytes = BufferBytes::of(object)?;
        let all = bytes.as_slice();
        Ok(if !is_long {
            let words = all.as_chunks().0.iter();
            Lengths::Copied(words.map(|&b| i32::from_ne_bytes(b).into()).collect())
        } else if as_units::<i64>(all).is_some() {
            Lengths::AsTheyAre(bytes)
        } else {
            let words = all.as_chunks().0.iter();
            Lengths::Copied(words.map(|&b| i64::from_ne_bytes(b)).collect())
        })
    }

    fn as_slice(&self) -> &[i64] {
        match self {
            Lengths::AsTheyAre(bytes) => as_units(bytes.as_slice()).unwrap_or_default(),
            Lengths::Copied(lengths) => lengths,
        }
    }
}

/// Adds the Python functions of this file to `module`.
pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    function::add::<DecodeColumn>(module)
}
