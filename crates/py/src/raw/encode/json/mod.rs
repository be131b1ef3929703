//! `JsonEncoder`: writes Python objects as JSON.
//!
//! | module | contents |
//! |---|---|
//! | `array`, `array_items`, `numpy_scalar` | NumPy arrays, their items, and scalars |
//! | `by_python_code` | objects that may need Python code |
//! | `format` | implements the interface of the loop over members |
//! | `options` | the encoder's options, target and errors |
//! | `rows` | rows and columns of values as objects |
//! | `put_standard` | values of the standard library's types |
//! | `step` | the fast path of values |
//! | `styled` | line breaks, indents and sorted keys |
//! | `texts` | texts of any length |
//! | `ucs2_text` | text that is written directly into the resulting `str` |

mod array;
mod array_items;
mod by_python_code;
mod format;
mod numpy_scalar;
mod options;
mod put_standard;
mod rows;
mod step;
mod styled;
mod texts;
mod ucs2_text;

use std::cell::Cell;
use std::ops::{Deref, DerefMut};

use onecopy_text::convert::{self, JSON_PLAIN_BYTES, Kernels, Work, with_kernels};
use onecopy_text::{Pen, Policy, Put, Tally, Units};
use pyo3::prelude::*;
use pyo3::{Borrowed, ffi};

use super::builtin_types::{self, ObjectKind};
use super::format::MemberEncoder as _;
use super::state::EncoderState;
use super::{classes, containers};
use crate::raw::gil;
use crate::raw::ndarray::Memory;
use format::JsonFormat;
pub(crate) use numpy_scalar::put as put_scalar;
pub(crate) use options::{
    EncodeFailure, JsonShape, JsonStop, JsonTarget, ObjectForm, ObjectForms, Style,
};
use styled::LineBreaks;
pub(crate) use ucs2_text::Ucs2Text;

/// Appends the JSON of an object to the chunk of `target`.
///
/// Inlined, because a call would pass the arguments in memory and stall the processor.
#[inline(always)]
pub(crate) fn write<'py>(
    object: Borrowed<'_, 'py, PyAny>,
    shape: JsonShape<'_>,
    style: &Style,
    forms: &dyn ObjectForms<'py>,
    target: JsonTarget<'_>,
    tally: Option<&mut Tally>,
) -> Result<(), EncodeFailure> {
    let mut encoder = JsonEncoder {
        shared: EncoderState::new(object.py()),
        style,
        shape,
        forms,
        is_latin1: target.latin1.is_some_and(Cell::get),
        // A copy gives the chunk's reference the lifetime of the other references.
        target: JsonTarget {
            chunk: target.chunk,
            ..target
        },
        lines: LineBreaks::default(),
        within: String::new(),
        is_counted: tally.is_some(),
        n_texts: 0,
        text_bytes: 0,
    };
    let done = with_kernels(EncodeWork {
        encoder: &mut encoder,
        root: object.as_ptr(),
    });
    if let Some(tally) = tally {
        tally.converted_many(encoder.n_texts, encoder.text_bytes);
    }
    done.map_err(|stop| EncodeFailure {
        stop,
        path: encoder.path() + &encoder.within,
    })
}

struct EncodeWork<'w, 'a, 'py> {
    encoder: &'w mut JsonEncoder<'a, 'py>,
    root: *mut ffi::PyObject,
}

impl Work for EncodeWork<'_, '_, '_> {
    type Output = Result<(), JsonStop>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Result<(), JsonStop> {
        // SAFETY: attached by the lifetime of the encoder. The caller holds the root.
        unsafe {
            if self.encoder.style.is_plain() {
                self.encoder.run::<K, false>(kernels, self.root)
            } else {
                self.encoder.run::<K, true>(kernels, self.root)
            }
        }
    }
}

/// The next action of the encoder for an object.
enum JsonNext<'py> {
    /// The object is written.
    Done,
    /// Write the members of the object.
    Members,
    /// Write the object like its built-in base class.
    Contents(ObjectKind),
    /// Write this object instead.
    Instead(*mut ffi::PyObject),
    /// Write this scalar instead.
    Scalar(Bound<'py, PyAny>),
    /// Write this NumPy array or scalar with [`JsonEncoder::large`].
    Memory(Box<Memory<'py>>),
}

/// The state of one call to [`write()`].
struct JsonEncoder<'a, 'py> {
    shared: EncoderState<'py>,
    style: &'a Style,
    shape: JsonShape<'a>,
    forms: &'a dyn ObjectForms<'py>,
    target: JsonTarget<'a>,
    /// `true` while the chunk contains Latin-1, and not UTF-8.
    is_latin1: bool,
    lines: LineBreaks,
    /// The path from a NumPy array to the failed item, for example `[3][5]`.
    within: String,
    /// `true` if the caller counts the text for `onecopy.ledger()`.
    is_counted: bool,
    n_texts: u64,
    text_bytes: u64,
}

impl<'py> Deref for JsonEncoder<'_, 'py> {
    type Target = EncoderState<'py>;

    #[inline(always)]
    fn deref(&self) -> &EncoderState<'py> {
        &self.shared
    }
}

impl DerefMut for JsonEncoder<'_, '_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.shared
    }
}

/// The space in bytes for a key and a short value, half for each. Each half has space for a number,
/// or for a short string with escapes.
const ROOM: usize = 2 * (json_room_of_short() + 8);

/// The maximum number of code units of a short string. Its space is always reserved.
const SHORT_UNITS: usize = JSON_PLAIN_BYTES;

const fn json_room_of_short() -> usize {
    6 * SHORT_UNITS + 64
}

impl<'py> JsonEncoder<'_, 'py> {
    /// Writes the root object.
    ///
    /// # Safety
    /// The caller must hold the GIL and a reference to `root`.
    #[inline(always)]
    unsafe fn run<K: Kernels, const STYLED: bool>(
        &mut self,
        kernels: K,
        root: *mut ffi::PyObject,
    ) -> Result<(), JsonStop> {
        let mut pen = self.open(ROOM)?;
        let encoder = JsonFormat::<STYLED>::of(self);
        // SAFETY: alive, as the caller guarantees. The frames are those of the root.
        unsafe {
            if let JsonShape::Value = encoder.shape {
                pen = match builtin_types::kind(root) {
                    kind @ (ObjectKind::Dict | ObjectKind::List | ObjectKind::Tuple) => {
                        encoder.enter(kernels, root, kind, pen)?
                    }
                    kind => {
                        let tag = pen.at();
                        encoder.any_value(kernels, root, kind, tag, pen)?
                    }
                };
            } else {
                encoder.enter_rows(root, &mut pen);
            }
            pen = containers::run(kernels, encoder, pen)?;
            if !STYLED {
                pen.set_at(pen.at().sub(1)); // the last comma
            }
        }
        self.close(&pen);
        Ok(())
    }

    /// Returns a [`Pen`] for the unused capacity of the chunk. The chunk grows to at least
    /// `n_bytes` of it.
    #[inline(always)]
    fn open<'s>(&mut self, n_bytes: usize) -> Result<Pen<'s>, JsonStop> {
        let spare = self
            .target
            .chunk
            .spare(n_bytes)
            .map_err(|_| JsonStop::Full)?;
        // SAFETY: the memory of the chunk, which is not used until `close`. A Pen checks its
        // capacity.
        Ok(Pen::new(unsafe {
            std::slice::from_raw_parts_mut(spare.as_mut_ptr(), spare.len())
        }))
    }

    /// Adds the bytes of the [`Pen`] to the contents of the chunk.
    #[inline(always)]
    fn close(&mut self, pen: &Pen<'_>) {
        let start = self.target.chunk.committed().as_ptr_range().end;
        // SAFETY: the pen started at the end of the contents, and every byte up to its position was
        // written.
        unsafe { self.target.chunk.commit(pen.at() as usize - start as usize) };
    }

    /// Commits the bytes of `pen`, and enlarges the chunk by at least `n_bytes`. Any Python code
    /// may run.
    #[cold]
    #[inline(never)]
    fn grow<'s>(&mut self, pen: Pen<'s>, n_bytes: usize) -> Result<Pen<'s>, JsonStop> {
        self.close(&pen);
        if self.target.runs_python {
            self.before_code();
        }
        self.open(n_bytes)
    }

    /// Converts the chunk from Latin-1 to UTF-8. All later output is UTF-8.
    #[cold]
    #[inline(never)]
    fn leave_latin1(&mut self) -> Result<(), JsonStop> {
        self.is_latin1 = false;
        self.keys.forget();
        let chunk = &mut *self.target.chunk;
        if let Some(ucs2) = self.target.ucs2.take() {
            // The chunk then moves all its bytes into the `str`.
            ucs2.want(1);
            chunk.spare(0).map_err(|_| JsonStop::Full)?;
        }
        let before = chunk.committed().to_vec();
        chunk.cut(0);
        if let Some(is_latin1) = self.target.latin1 {
            is_latin1.set(false);
        }
        let mut utf8 = Vec::new();
        convert::to_utf8(Units::Latin1(&before), Policy::Strict, &mut utf8)
            .map_err(|_| JsonStop::Full)?;
        chunk.put(&utf8).map_err(|_| JsonStop::Full)
    }

    #[inline(always)]
    fn ensure_space<'s>(&mut self, pen: Pen<'s>, n_bytes: usize) -> Result<Pen<'s>, JsonStop> {
        if pen.remaining() < n_bytes {
            return self.grow(pen, n_bytes);
        }
        Ok(pen)
    }

    #[inline(always)]
    fn check_depth(&self, object: *mut ffi::PyObject) -> Result<(), JsonStop> {
        Ok(self.shared.check_depth(object, self.style.max_depth)?)
    }

    /// Writes a key of any type and length. A key that is not a `str` may run Python code.
    ///
    /// # Safety
    /// `key` must be alive.
    #[inline(never)]
    unsafe fn key<'s, K: Kernels>(
        &mut self,
        kernels: K,
        key: *mut ffi::PyObject,
        pen: Pen<'s>,
    ) -> Result<Pen<'s>, JsonStop> {
        // SAFETY: alive, as the caller guarantees, and attached.
        unsafe {
            if ffi::PyUnicode_CheckExact(key) != 0 {
                return self.any_text(kernels, key, pen);
            }
            let key = Bound::from_borrowed_ptr(self.py(), key);
            self.before_code();
            let text = gil::calls(self.py(), || {
                classes::learn(&key);
                self.forms.key(&key)
            })?;
            self.any_text(kernels, text.as_ptr(), pen)
        }
    }
}
