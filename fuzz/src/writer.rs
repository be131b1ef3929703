//! A thread that writes to a `bytearray` without holding the GIL, as `readinto` in another thread
//! or another process does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyByteArrayMethods, PyCFunction, PyModule, PyTuple};

struct Writer {
    has_stopped: Arc<AtomicBool>,
    thread: JoinHandle<()>,
    /// The buffer that the thread writes to; it must live as long as the thread.
    _buffer: Py<PyByteArray>,
}

static WRITER: Mutex<Option<Writer>> = Mutex::new(None);

/// Returns the module `native_writer` for the oracles. `start(buffer, texts, first)` starts a
/// thread that copies parts of the texts to the buffer, each to its own offset from `first` on; all
/// texts are as long as the buffer. `stop()` ends the thread.
pub(crate) fn module(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    let module = PyModule::new(py, "native_writer")?;
    let start = PyCFunction::new_closure(py, None, None, |args: &Bound<'_, PyTuple>, _| {
        start(args)
    })?;
    let stop = PyCFunction::new_closure(py, None, None, |_: &Bound<'_, PyTuple>, _| stop())?;
    module.add("start", start)?;
    module.add("stop", stop)?;
    Ok(module)
}

fn start(args: &Bound<'_, PyTuple>) -> PyResult<()> {
    let (buffer, texts, first): (Bound<'_, PyByteArray>, Vec<Vec<u8>>, usize) = args.extract()?;
    let len = buffer.len();
    assert!(first < len && texts.iter().all(|text| text.len() == len));
    let at = buffer.data() as usize;
    let has_stopped = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&has_stopped);
    let thread = thread::spawn(move || {
        let mut from = first;
        for text in texts.iter().cycle() {
            if ends.load(Ordering::Relaxed) {
                return;
            }
            // SAFETY: `buffer` has `len` bytes there: it is alive as long as this thread, and the
            // oracles do not resize it. A concurrent reader expects changes.
            unsafe {
                let to = (at as *mut u8).add(from);
                std::ptr::copy_nonoverlapping(text.as_ptr().add(from), to, len - from);
            }
            from = first + (from - first + 996) % (len - first);
        }
    });
    let mut writer = WRITER.lock().expect("no thread panics here");
    assert!(writer.is_none(), "a writer is not stopped");
    *writer = Some(Writer {
        has_stopped,
        thread,
        _buffer: buffer.unbind(),
    });
    Ok(())
}

fn stop() -> PyResult<()> {
    let writer = WRITER.lock().expect("no thread panics here").take();
    let writer = writer.expect("a writer was started");
    writer.has_stopped.store(true, Ordering::Relaxed);
    writer.thread.join().expect("a writer does not panic");
    Ok(())
}
