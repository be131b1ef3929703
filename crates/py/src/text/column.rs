//! Columns of fixed stride, as ODBC binds them, to lists of `str`.

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
use crate::raw::buffer::{self, Bytes, as_units};
use crate::raw::collector::HeldOff;
use crate::raw::fresh::Blanks;
use crate::raw::list::Items;
use crate::raw::method::{self, Args, Function};
use crate::raw::text::make_cell;

struct DecodeColumn;

impl Function for DecodeColumn {
    const NAME: &'static str = "decode_column";
    const SIGNATURE: &'static str =
        "(data, lengths, stride, encoding='utf-16-le', errors='strict')";
    const DOC: &'static str = "\
The texts of a column of fixed stride, as a list of `str` and None.

``data`` is a buffer with a cell every ``stride`` bytes; ``lengths`` a buffer of signed integers of 4 or 8 bytes, the size of
each cell's text in bytes, negative for NULL (SQL_NULL_DATA). That is what an ODBC driver fills in column-wise binding.
Cells with the same text may share one `str`.

Raises `ValueError` where a length reaches past its cell or a cell past the data, `UnicodeDecodeError` as :func:`decode`, with
positions in the cell.

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
        let data = Bytes::of(args.required(0))?;
        let lengths = Lengths::of(args.required(1))?;
        let lengths = lengths.as_slice();
        let codec = Codec::of_argument(args.get(3), Codec::Utf16(Order::Little))?;
        let (data, stride) = (data.as_slice(), args.required(2).extract()?);
        let errors = args.get(4);
        let _no_collection = HeldOff::new(py);
        let mut tally = Tally::default();
        let made = with_encoding!(codec, E => with_kernels(Column::<E> {
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

/// A column, and all that is to be known to decode it.
struct Column<'a, 'py, E> {
    py: Python<'py>,
    data: &'a [u8],
    lengths: &'a [i64],
    stride: usize,
    codec: Codec,
    errors: Option<Borrowed<'a, 'py, PyAny>>,
    tally: &'a mut Tally,
    encoding: PhantomData<E>,
}

impl<'py, E: CellEncoding> Work for Column<'_, 'py, E> {
    type Output = PyResult<Bound<'py, PyAny>>;

    #[inline(always)]
    fn run<K: Kernels>(mut self, kernels: K) -> Self::Output {
        let (data, lengths, stride) = (self.data, self.lengths, self.stride);
        let blanks = Blanks::new(self.py);
        let is_kept = ledger::is_kept();
        let mut items = Items::new(self.py, lengths.len())?;
        let mut seen = Seen::new(lengths.len());
        // The first cell that may be looked for again.
        let mut seen_from = 0;
        // The text of the cell before.
        let mut before: Option<&[u8]> = None;
        let ahead = stride.saturating_mul(AHEAD);
        let mut rest = data;
        // Cells whose room lies in the data as a whole.
        while let i = items.len()
            && i < lengths.len()
            && stride > 0
            && let Some((room, behind)) = rest.split_at_checked(stride)
        {
            rest = behind;
            // NULL is a very long one.
            let n = lengths[i] as usize;
            let Some(cell) = room.get(..n) else {
                before = None;
                items.push(self.rare(i)?);
                continue;
            };
            kernels.fetch(room, ahead);
            kernels.fetch(room, ahead + 64);
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
                // Whatever stands in the slot: it must be a cell that was made, and have this text.
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
                // A handler in Python may have written to the data: what was seen is seen no more.
                (before, seen_from) = (None, i + 1);
            }
        }
        // The last one may end with the data, inside its room.
        for i in items.len()..lengths.len() {
            items.push(self.rare(i)?);
        }
        Ok(items.finish().into_any())
    }
}

impl<'a, 'py, E> Column<'a, 'py, E> {
    /// A cell by the way of any text, and whether no handler in Python can have run.
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

    /// A cell that is NULL, behind the end of the data, or ends with it.
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
        format!("cell {i} is behind the end of the data: {n_bytes} bytes at a stride of {stride}")
    })
}

/// Cells that are fetched ahead: the processor guesses the next ones only where the stride is short.
const AHEAD: usize = 32;

/// Slots of the table of texts seen, at most.
const MOST_SLOTS: usize = 4096;
/// Cells after which it is judged whether looking for equal texts pays.
const TRY: usize = 256;
/// Cells passed over before it is tried again, where it does not.
const PAUSE: usize = 32 * TRY;

/// Where texts were seen last, so that equal cells share one `str`.
///
/// A text equal to that of the cell before costs a comparison. Others are looked for in a table of the numbers of cells; a try
/// with few hits turns it off for a while, so that a column of distinct texts pays for one cell in 33 and nothing else.
struct Seen {
    /// A power of two of them. Nothing in them needs to be true.
    slots: Vec<u32>,
    /// The cell before which it is judged, or tried again.
    judged_at: usize,
    hits: usize,
    is_on: bool,
}

impl Seen {
    fn new(n_cells: usize) -> Seen {
        Seen {
            slots: vec![0; n_cells.clamp(1, MOST_SLOTS).next_power_of_two()],
            judged_at: TRY,
            hits: 0,
            is_on: true,
        }
    }

    /// The slot of the text of cell `i`, where the table is on.
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
        // A table that hits less often costs more than it saves.
        self.is_on = !self.is_on || 2 * self.hits >= TRY;
        self.judged_at = i + if self.is_on { TRY } else { PAUSE };
        self.hits = 0;
    }
}

/// Lengths in a buffer of signed integers.
enum Lengths<'a, 'py> {
    AsTheyAre(Bytes<'a, 'py>),
    /// Of 4 bytes, or at a place where no integer stands.
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
        let bytes = Bytes::of(object)?;
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

/// Adds the functions to the module.
pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    method::add::<DecodeColumn>(module)
}
