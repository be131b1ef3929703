//! Columns of fixed stride, as ODBC binds them, to lists of `str`.

use onecopy_text::{Policy, Stage, Tally, Units};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::codec::{Codec, Order};
use super::decode::decode_bytes;
use crate::ledger;
use crate::raw::buffer::{Bytes, as_units};
use crate::raw::collector::HeldOff;
use crate::raw::method::{self, Args, Function};
use crate::raw::text;

/// Slots of the table of texts seen.
const SLOTS: usize = 1024;
/// Cells in a stretch after which it is judged whether looking for equal texts pays.
const STRETCH: usize = 256;
/// Cells passed over before it is tried again, where it does not.
const PAUSE: usize = 8 * STRETCH;
/// Cells of such a try.
const TRY: usize = 32;

/// The texts seen last, so that equal cells share one `str`.
///
/// A text equal to that of the cell before costs a comparison. Others are looked for in a table by a few of their bytes; a
/// stretch of cells with few hits turns the table off for a while, so that a column of distinct texts pays for a try every
/// [`PAUSE`] cells and nothing else.
struct Seen<'a, 'py> {
    last: Option<(&'a [u8], Bound<'py, PyAny>)>,
    slots: Vec<Option<(&'a [u8], Bound<'py, PyAny>)>>,
    /// Cells until the next judgement, or the next try.
    left: usize,
    hits: usize,
    is_on: bool,
}

impl<'a, 'py> Seen<'a, 'py> {
    fn new() -> Seen<'a, 'py> {
        Seen {
            last: None,
            slots: std::iter::repeat_with(|| None).take(SLOTS).collect(),
            left: TRY,
            hits: 0,
            is_on: true,
        }
    }

    /// The `str` of the cell: one that was made before, or one that `make` makes.
    #[inline]
    fn get(
        &mut self,
        cell: &'a [u8],
        make: impl FnOnce() -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some((last, made)) = &self.last
            && *last == cell
        {
            return Ok(made.clone());
        }
        if self.left == 0 {
            self.judge();
        }
        self.left -= 1;
        if !self.is_on {
            let made = make()?;
            self.last = Some((cell, made.clone()));
            return Ok(made);
        }
        let slot = &mut self.slots[slot_of(cell)];
        if let Some((seen, made)) = slot
            && *seen == cell
        {
            self.hits += 1;
            self.last = Some((cell, made.clone()));
            return Ok(made.clone());
        }
        let made = make()?;
        *slot = Some((cell, made.clone()));
        self.last = Some((cell, made.clone()));
        Ok(made)
    }

    #[cold]
    fn judge(&mut self) {
        let cells = if self.is_on { TRY } else { 0 };
        // Half of the shortest stretch: a table that hits less often costs more than it saves.
        self.is_on = !self.is_on || 2 * self.hits >= cells;
        self.left = if self.is_on { TRY } else { PAUSE };
        self.hits = 0;
    }
}

/// The slot of a text: by its length and its first, middle and last bytes.
#[inline]
fn slot_of(cell: &[u8]) -> usize {
    let n = cell.len();
    let word = |at: usize| u64::from_le_bytes(cell[at..at + 8].try_into().expect("8 bytes"));
    let mixed = if n >= 8 {
        let middle = word((n - 8) / 2);
        let ends = word(0) ^ word(n - 8).rotate_left(29);
        (ends ^ middle.rotate_left(13)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    } else {
        let mut bytes = [0; 8];
        bytes[..n].copy_from_slice(cell);
        u64::from_le_bytes(bytes).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    };
    let mixed = mixed ^ (n as u64).wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
    (mixed >> 32) as usize % SLOTS
}

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
        let stride: usize = args.required(2).extract()?;
        let codec = Codec::of_argument(args.get(3), Codec::Utf16(Order::Little))?;
        let (data, errors) = (data.as_slice(), args.get(4));
        let mut tally = Tally::default();
        let mut cells = Vec::with_capacity(lengths.len());
        let _no_collection = HeldOff::new(py);
        let mut seen = Seen::new();
        for i in 0..lengths.len() {
            let length = lengths.at(i);
            let Ok(length) = usize::try_from(length) else {
                cells.push(py.None().into_bound(py));
                continue;
            };
            let cell = cell_of(data, i, stride, length)?;
            let made = seen.get(cell, || {
                let strict = Policy::Strict;
                let made = match codec {
                    Codec::Utf16(Order::Little) => as_units(cell)
                        .and_then(|u| text::make(py, Units::Utf16(u), strict, &mut tally).ok()),
                    Codec::Utf8 => text::make(py, Units::Utf8(cell), strict, &mut tally).ok(),
                    Codec::Latin1 => text::make(py, Units::Latin1(cell), strict, &mut tally).ok(),
                    _ => None,
                };
                match made {
                    Some(made) => Ok(made),
                    None => decode_bytes(py, cell, codec, errors),
                }
            })?;
            cells.push(made);
        }
        drop(seen);
        ledger::enter(py, &mut tally, Stage::Decode)?;
        Ok(PyList::new(py, cells)?.into_any())
    }
}

/// The text of cell `i`.
#[inline]
fn cell_of(data: &[u8], i: usize, stride: usize, length: usize) -> PyResult<&[u8]> {
    let cell = i
        .checked_mul(stride)
        .and_then(|from| data.get(from..from.checked_add(length)?));
    match cell {
        Some(cell) if length <= stride => Ok(cell),
        _ => Err(outside(data.len(), i, stride, length)),
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

/// Lengths in a buffer of signed integers.
struct Lengths<'a, 'py> {
    bytes: Bytes<'a, 'py>,
    size: usize,
}

impl<'a, 'py> Lengths<'a, 'py> {
    fn of(object: pyo3::Borrowed<'a, 'py, PyAny>) -> PyResult<Lengths<'a, 'py>> {
        let format = crate::raw::buffer::format_of(object)?;
        let size = match format.trim_start_matches(['@', '=', '<']) {
            "i" => 4,
            "q" | "n" => 8,
            "l" => {
                if format.starts_with(['=', '<']) {
                    4
                } else {
                    size_of::<std::ffi::c_long>()
                }
            }
            _ => {
                return Err(PyTypeError::new_err(format!(
                    "lengths must be a buffer of signed integers of 4 or 8 bytes, not of format '{format}'\n\
                     array.array('q', …) is one, and so is an array of numpy.int64"
                )));
            }
        };
        let bytes = Bytes::of(object)?;
        Ok(Lengths { bytes, size })
    }

    fn len(&self) -> usize {
        self.bytes.as_slice().len() / self.size
    }

    #[inline]
    fn at(&self, i: usize) -> i64 {
        let bytes = &self.bytes.as_slice()[i * self.size..][..self.size];
        match bytes.try_into() {
            Ok(bytes) => i64::from_ne_bytes(bytes),
            Err(_) => i32::from_ne_bytes(bytes.try_into().expect("4 bytes")).into(),
        }
    }
}

/// Adds the functions to the module.
pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    method::add::<DecodeColumn>(module)
}
