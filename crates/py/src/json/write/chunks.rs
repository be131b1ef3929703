//! `iter_chunks`: writes the items of an iterable as chunks of JSON.

use onecopy_text::ByteSink;
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator};

use super::encode::{moved, write};
use super::options::{JsonWriteOptions, options_signature, with_options};
use crate::guard::Guarded;
use crate::raw::binary::FreshBytes;
use crate::raw::encode::json::{JsonShape, JsonTarget};
use crate::raw::function::{Args, Function};

/// The default of `chunk_bytes`.
const CHUNK_BYTES: usize = 64 << 10;

pub(super) struct IterChunks;

impl Function for IterChunks {
    const NAME: &'static str = "iter_chunks";
    const SIGNATURE: &'static str =
        options_signature!("iterable, /, *, lines=False, chunk_bytes=65536");
    const DOC: &'static str = "\
The items of an iterable (rows, a generator, a cursor) as one JSON array, or (lines=True) as a line
of JSON each, in an iterator of `bytes`.

A chunk has `chunk_bytes` and at most one item more; it is made when it is requested, and only one
is in memory.

Copies and errors: as `dumps`; `ValueError` for `indent`. After an error the iterator is at its end:
the array is left open, so that it cannot look complete.

>>> import onecopy
>>> list(onecopy.json.iter_chunks(({\"n\": n} for n in range(3)), chunk_bytes=12))
[b'[{\"n\":0},{\"n\":1}', b',{\"n\":2}]']
";
    const PARAMETERS: &'static [&'static str] = with_options!("iterable", "lines", "chunk_bytes");
    const REQUIRED: usize = 1;
    const POSITIONAL: usize = 1;

    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut options = JsonWriteOptions::new();
        options.take_for_items(args, 3)?;
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
                ChunksState {
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

/// The iterator that `iter_chunks` returns. Each item is a chunk of JSON.
#[pyclass(frozen, module = "onecopy.json")]
pub(crate) struct JSONChunks {
    state: Guarded<ChunksState>,
    options: JsonWriteOptions,
    lines: bool,
    chunk_bytes: usize,
}

struct ChunksState {
    /// The iterator of items; `None` after the last item or an error.
    items: Option<Py<PyIterator>>,
    /// `true` after the opening bracket of the array.
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
        // Removes the iterator until the call succeeds. An error therefore ends the iteration.
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
                JsonShape::Value,
                &self.options,
                JsonTarget::new(&mut bytes),
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

/// The space after a chunk for the end of its last item. With less space, each long string would
/// make the chunk grow.
const ROOM_BYTES: usize = 32 << 10;
