//! `encode_many` and `dump_many` write concatenated documents.

use onecopy_text::ByteSink;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator};

use super::encode::{moved, write};
use super::options::{BsonWriteOptions, options_signature, with_options};
use crate::guard::Guarded;
use crate::raw::binary::FreshBytes;
use crate::raw::function::{self, Args, Function};
use crate::stream_output::FlushTo;

/// The default size of a chunk.
const CHUNK_BYTES: usize = 64 << 10;

/// The extra capacity of a chunk. The last document may fill it.
const ROOM_BYTES: usize = 8 << 10;

struct EncodeMany;

impl Function for EncodeMany {
    const NAME: &'static str = "bson_encode_many";
    const SIGNATURE: &'static str = options_signature!("iterable, /, *, chunk_bytes=65536");
    const DOC: &'static str = "\
The concatenated documents of an iterable (rows, a generator), as `mongodump` writes them, in an
iterator of `bytes`.

A chunk holds whole documents: `chunk_bytes` and at most one document more. It is made when it is
requested, and only one is in memory.

Copies and errors: as `encode`. After an error the iterator is at its end, and the partial chunk is
lost.

>>> import onecopy.bson
>>> [len(chunk) for chunk in onecopy.bson.encode_many(({\"n\": n} for n in range(5)), chunk_bytes=24)]
[24, 24, 12]
";
    const PARAMETERS: &'static [&'static str] = with_options!("iterable", "chunk_bytes");
    const REQUIRED: usize = 1;
    const POSITIONAL: usize = 1;

    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut options = BsonWriteOptions::new();
        options.take(args, 2)?;
        let chunk_bytes: usize = args
            .get(1)
            .map_or(Ok(CHUNK_BYTES), |object| object.extract())?;
        if chunk_bytes == 0 {
            return Err(PyValueError::new_err("`chunk_bytes` must be 1 or more"));
        }
        let items = args.required(0).try_iter()?.unbind();
        let chunks = BSONChunks {
            items: Guarded::new("iterator", Some(items)),
            options,
            chunk_bytes,
        };
        Ok(Bound::new(py, chunks)?.into_any())
    }
}

/// The iterator that `encode_many` returns. Each item is a chunk of complete documents.
#[pyclass(frozen, module = "onecopy.bson")]
pub(crate) struct BSONChunks {
    /// `None` after the last object and after an error.
    items: Guarded<Option<Py<PyIterator>>>,
    options: BsonWriteOptions,
    chunk_bytes: usize,
}

#[pymethods]
impl BSONChunks {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut kept = self.items.lock(py)?;
        // Stored again only after success: an error ends the iteration.
        let Some(items) = kept.take() else {
            return Ok(None);
        };
        let mut items = items.into_bound(py);
        let mut bytes = FreshBytes::new(py, self.chunk_bytes.saturating_add(ROOM_BYTES))?;
        let mut is_done = false;
        while bytes.committed().len() < self.chunk_bytes {
            let Some(item) = items.next() else {
                is_done = true;
                break;
            };
            write(item?.as_borrowed(), &self.options, &mut bytes)?;
        }
        if !is_done {
            *kept = Some(items.unbind());
        }
        moved(py, bytes.moved_bytes())?;
        if bytes.committed().is_empty() {
            return Ok(None);
        }
        bytes.finish().map(Some)
    }
}

struct DumpMany;

impl Function for DumpMany {
    const NAME: &'static str = "bson_dump_many";
    const SIGNATURE: &'static str = options_signature!("iterable, file, /, *");
    const DOC: &'static str = "\
Writes the concatenated documents of an iterable to a binary file, a socket, or any object with
`write`, in chunks of 64 KiB: memory holds one chunk and one document.

Returns the number of bytes written. Other threads run while a plain file or socket is written to.

Copies: as `encode`.

Raises as `encode`, and the errors of the file (`OSError`). Whole documents that were written before
remain.

>>> import io, onecopy.bson
>>> file = io.BytesIO()
>>> onecopy.bson.dump_many(({\"n\": n} for n in range(5)), file)
60
";
    const PARAMETERS: &'static [&'static str] = with_options!("iterable", "file");
    const REQUIRED: usize = 2;
    const POSITIONAL: usize = 2;

    fn call<'py>(py: Python<'py>, args: &Args<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut options = BsonWriteOptions::new();
        options.take(args, 2)?;
        let mut output = FlushTo::of(&args.required(1))?;
        let mut chunk: Vec<u8> = Vec::new();
        let mut written: u64 = 0;
        let mut flush = |chunk: &mut Vec<u8>| -> PyResult<()> {
            if !chunk.is_empty() {
                onecopy_text::planted::extra_work_on_chunk(chunk);
                output.write(py, chunk)?;
                written += chunk.len() as u64;
                chunk.clear();
            }
            Ok(())
        };
        for item in args.required(0).try_iter()? {
            let before = chunk.len();
            if let Err(error) = write(item?.as_borrowed(), &options, &mut chunk) {
                // The documents before the failed one are written first.
                chunk.truncate(before);
                flush(&mut chunk)?;
                return Err(error);
            }
            if chunk.len() >= CHUNK_BYTES {
                flush(&mut chunk)?;
            }
        }
        flush(&mut chunk)?;
        Ok(written.into_pyobject(py)?.into_any())
    }
}

pub(super) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    function::add::<EncodeMany>(module)?;
    function::add::<DumpMany>(module)
}
