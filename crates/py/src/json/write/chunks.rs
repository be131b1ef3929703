//! The items of an iterable, in chunks of bounded size.

use onecopy_text::ByteSink;
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator};

use super::functions::{moved, write};
use super::options::{Options, options_signature, with_options};
use crate::guard::Guarded;
use crate::raw::binary::FreshBytes;
use crate::raw::method::{Args, Function};
use crate::raw::walk::{Shape, Target};

/// Bytes of a chunk, unless asked otherwise.
const CHUNK_BYTES: usize = 64 << 10;

pub(super) struct IterChunks;

impl Function for IterChunks {
    const NAME: &'static str = "iter_chunks";
    const SIGNATURE: &'static str =
        options_signature!("iterable, /, *, lines=False, chunk_bytes=65536");
    const DOC: &'static str = "\
The items of an iterable (rows, a generator, a cursor) as one JSON array, or (lines=True) as a line of JSON each, in an iterator of
`bytes`.

A chunk has `chunk_bytes` and at most one item more; it is made when it is asked for, and no more than it is held.

Copies and errors: as `dumps`. After an error the iterator is at its end: the array is left open, so that it cannot look complete.

>>> import onecopy
>>> list(onecopy.json.iter_chunks(({\"n\": n} for n in range(3)), chunk_bytes=12))
[b'[{\"n\":0},{\"n\":1}', b',{\"n\":2}]']
";
    const PARAMETERS: &'static [&'static str] = with_options!("iterable", "lines", "chunk_bytes");
    const REQUIRED: usize = 1;
    const POSITIONAL: usize = 1;

    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut options = Options::new();
        options.take(args, 3)?;
        let lines = args.get(1).map_or(Ok(false), |object| object.is_truthy())?;
        let chunk_bytes: usize = args
            .get(2)
            .map_or(Ok(CHUNK_BYTES), |object| object.extract())?;
        if chunk_bytes == 0 {
            return Err(PyValueError::new_err("`chunk_bytes` must be 1 or more"));
        }
        let chunks = JSONChunks {
            state: Guarded::new(
                "iterator",
                State {
                    items: Some(args.required(0).try_iter()?.unbind()),
                    is_open: false,
                    n_items: 0,
                },
            ),
            options,
            lines,
            chunk_bytes,
        };
        Ok(Bound::new(py, chunks)?.into_any())
    }
}

/// The chunks of `iter_chunks`.
#[pyclass(frozen, module = "onecopy.json")]
pub(crate) struct JSONChunks {
    state: Guarded<State>,
    options: Options,
    lines: bool,
    chunk_bytes: usize,
}

struct State {
    /// `None` after the last one, and after an error.
    items: Option<Py<PyIterator>>,
    /// Whether the array's bracket is written: a chunk of one byte holds that alone.
    is_open: bool,
    n_items: u64,
}

#[pymethods]
impl JSONChunks {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut state = self.state.lock(py)?;
        // Taken out: after an error there is none.
        let Some(items) = state.items.take() else {
            return Ok(None);
        };
        let mut items = items.into_bound(py);
        let full = |_| PyMemoryError::new_err(());
        let mut bytes = FreshBytes::new(py, self.chunk_bytes.saturating_add(ROOM_BYTES))?;
        if !state.is_open && !self.lines {
            state.is_open = true;
            bytes.put_byte(b'[').map_err(full)?;
        }
        let mut is_done = false;
        while bytes.committed().len() < self.chunk_bytes {
            let Some(item) = items.next() else {
                is_done = true;
                break;
            };
            if state.n_items > 0 && !self.lines {
                bytes.put_byte(b',').map_err(full)?;
            }
            write(
                item?.as_borrowed(),
                Shape::Value,
                &self.options,
                Target::new(&mut bytes),
            )?;
            state.n_items += 1;
            if self.lines {
                bytes.put_byte(b'\n').map_err(full)?;
            }
        }
        if !is_done {
            state.items = Some(items.unbind());
        } else if !self.lines {
            bytes.put_byte(b']').map_err(full)?;
        }
        moved(py, bytes.moved_bytes())?;
        if bytes.committed().is_empty() {
            return Ok(None);
        }
        bytes.finish().map(Some)
    }
}

/// Room past the size of a chunk, for the item that ends it: as much as a block of a long text asks for. (With less the chunk moves
/// as soon as texts have more than a few thousand characters.)
const ROOM_BYTES: usize = 32 << 10;
