//! `BsonEncoder`: writes Python objects as BSON. The end of a document fixes the length at its
//! start.
//!
//! | module | contents |
//! |---|---|
//! | `array` | arrays and scalars of NumPy |
//! | `options` | the encoder's options, its sinks, and the reasons for which it fails |
//! | `format` | implements the interface of the loop over members |
//! | `index` | the keys of array items |
//! | `step` | values and keys that a few instructions write, or that are read in place |
//! | `texts` | texts and keys of any length and form |
//! | `value` | values of any kind |
//!
//! The sink never runs Python code when it grows.

mod array;
mod format;
mod index;
mod options;
mod step;
mod texts;
mod value;

use std::ops::{Deref, DerefMut};

use onecopy_text::convert::{Kernels, Work, with_kernels};
use onecopy_text::{Pen, Put, Tally};
use pyo3::prelude::*;
use pyo3::{Borrowed, ffi};

use super::builtin_types::{self, ObjectKind};
use super::containers;
use super::frames::{ContainerForm, ContainerFrame};
use super::state::EncoderState;
pub(crate) use options::{BsonStop, EncodeFailure, ObjectForm, ObjectForms, Sink, Style, UuidForm};
pub(crate) use texts::class_name;
pub(crate) use value::{FIRST_MS, LAST_MS};

/// The free output bytes before a key and a short value. The rest is for the ends of containers.
const ROOM: usize = 512;

/// The sink for a document and the encoder's output memory.
struct BsonTarget<'a> {
    sink: &'a mut dyn Sink,
    /// A base address: output byte `n` in memory is at `base + n`. `base` can be outside of the
    /// memory.
    base: *mut u8,
    /// The number of output bytes that the sink has received. Only [`Sink::patch_at`] can overwrite
    /// them.
    before: usize,
}

/// The state of the encoder during a [`write()`] call.
struct BsonEncoder<'a, 'py> {
    shared: EncoderState<'py>,
    style: Style,
    forms: &'a dyn ObjectForms<'py>,
    target: BsonTarget<'a>,
    /// The offset of the current root document in the output.
    start: usize,
    /// `true` after a nested document. From then on, keys are cached.
    is_nested: bool,
    /// The value or key that the encoder could not write.
    culprit: Option<Bound<'py, PyAny>>,
    /// The path from a NumPy array to its wrong item, such as `[3][5]`.
    within: String,
    /// `true` if `onecopy.ledger()` counts the text.
    is_counted: bool,
    tally: Tally,
}

/// Appends `object` to the sink as a BSON document.
///
/// # Errors
/// The reason for the failure. The contents of the sink are then undefined.
pub(crate) fn write<'py>(
    object: Borrowed<'_, 'py, PyAny>,
    style: Style,
    forms: &dyn ObjectForms<'py>,
    sink: &mut dyn Sink,
    mut tally: Option<&mut Tally>,
) -> Result<(), EncodeFailure> {
    let mut encoder = BsonEncoder {
        shared: EncoderState::new(object.py()),
        style,
        forms,
        target: BsonTarget {
            sink,
            base: std::ptr::null_mut(),
            before: 0,
        },
        start: 0,
        is_nested: false,
        culprit: None,
        within: String::new(),
        is_counted: tally.is_some(),
        tally: Tally::default(),
    };
    let done = with_kernels(EncodeWork {
        encoder: &mut encoder,
        root: object.as_ptr(),
    });
    if let Some(tally) = &mut tally {
        **tally = encoder.tally;
    }
    done.map_err(|stop| EncodeFailure {
        stop,
        path: encoder.path() + &encoder.within,
        culprit: encoder.culprit.take().map(Bound::unbind),
    })
}

struct EncodeWork<'w, 'a, 'py> {
    encoder: &'w mut BsonEncoder<'a, 'py>,
    root: *mut ffi::PyObject,
}

impl Work for EncodeWork<'_, '_, '_> {
    type Output = Result<(), BsonStop>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Result<(), BsonStop> {
        // SAFETY: attached by the lifetime of the encoder; the caller holds the root.
        unsafe { self.encoder.run(kernels, self.root) }
    }
}

impl<'py> Deref for BsonEncoder<'_, 'py> {
    type Target = EncoderState<'py>;

    #[inline(always)]
    fn deref(&self) -> &EncoderState<'py> {
        &self.shared
    }
}

impl DerefMut for BsonEncoder<'_, '_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.shared
    }
}

impl<'py> BsonEncoder<'_, 'py> {
    /// Writes the root object and all objects in it.
    ///
    /// # Safety
    /// The caller must hold the GIL and a reference to `root`.
    #[inline(always)]
    unsafe fn run<K: Kernels>(
        &mut self,
        kernels: K,
        root: *mut ffi::PyObject,
    ) -> Result<(), BsonStop> {
        let mut pen = self.open(ROOM)?;
        self.start = self.offset(&pen);
        // SAFETY: the caller guarantees that the root is alive; the frames are those of the root.
        unsafe {
            pen = match builtin_types::kind(root) {
                ObjectKind::Dict => {
                    self.check_depth(root)?;
                    let length = pen.at();
                    containers::enter(kernels, self, root, ObjectKind::Dict, length, pen)
                }
                kind => self.value(kernels, root, kind, 0, pen)?,
            };
            pen = containers::run(kernels, self, pen)?;
        }
        let n_bytes = self.offset(&pen) - self.start;
        self.close(&pen);
        if n_bytes > self.style.max_bytes {
            return Err(BsonStop::TooLong);
        }
        Ok(())
    }

    /// Stores the wrong `object` for the exception. Returns `stop` unchanged.
    ///
    /// # Safety
    /// `object` must be alive.
    #[cold]
    unsafe fn no_form(&mut self, object: *mut ffi::PyObject, stop: BsonStop) -> BsonStop {
        // SAFETY: the caller guarantees that the object is alive; attached.
        let object = unsafe { Bound::from_borrowed_ptr(self.py(), object) };
        self.culprit = Some(object);
        stop
    }

    /// Returns a [`Pen`] over the free space of the sink, at least `n_bytes`.
    fn open<'s>(&mut self, n_bytes: usize) -> Result<Pen<'s>, BsonStop> {
        let target = &mut self.target;
        let (at, len) = {
            let spare = target.sink.spare(n_bytes)?;
            (spare.as_mut_ptr(), spare.len())
        };
        target.before = target.sink.before();
        let n_committed = target.sink.committed().len();
        target.base = at
            .cast::<u8>()
            .wrapping_sub(n_committed)
            .wrapping_sub(target.before);
        // SAFETY: the memory belongs to the sink, which is not used until `close`. A Pen checks its
        // capacity.
        Ok(Pen::new(unsafe { std::slice::from_raw_parts_mut(at, len) }))
    }

    /// Adds the bytes before the position of `pen` to the sink.
    fn close(&mut self, pen: &Pen<'_>) {
        let target = &mut self.target;
        let n_before = target.before + target.sink.committed().len();
        // SAFETY: the pen was opened after the contents of the sink. Every byte up to its position
        // was written.
        unsafe {
            target
                .sink
                .commit(pen.at().addr() - target.base.addr() - n_before)
        };
    }

    /// Returns the offset of the write position in the output.
    #[inline(always)]
    fn offset(&self, pen: &Pen<'_>) -> usize {
        pen.at().addr().wrapping_sub(self.target.base.addr())
    }

    /// Writes the length `n_bytes` into reserved bytes at offset `at` of the output.
    #[inline(always)]
    fn patch(&mut self, at: usize, n_bytes: usize, pen: &Pen<'_>) -> Result<(), BsonStop> {
        let Some(length) = i32::try_from(n_bytes).ok() else {
            return Err(BsonStop::TooLong);
        };
        let bytes = length.to_le_bytes();
        if at < self.target.before {
            self.target.sink.patch_at(at, &bytes);
            return Ok(());
        }
        assert!(
            at + bytes.len() <= self.offset(pen),
            "there is no length at this position"
        );
        // SAFETY: the bytes before the pen contain the address, as checked above.
        unsafe {
            let place = self.target.base.wrapping_add(at);
            place.cast::<[u8; 4]>().write_unaligned(bytes);
        }
        Ok(())
    }

    /// Writes a tag into the reserved byte at `n_from_tag` bytes before the write position. Does
    /// nothing if `n_from_tag` is 0.
    fn tag_before(&mut self, tag: u8, n_from_tag: usize, pen: &Pen<'_>) {
        if n_from_tag != 0 {
            self.tag_at(tag, self.offset(pen) - n_from_tag);
        }
    }

    /// Writes a tag into the reserved byte at offset `at`.
    fn tag_at(&mut self, tag: u8, at: usize) {
        if at < self.target.before {
            self.target.sink.patch_at(at, &[tag]);
        } else {
            // SAFETY: a reserved byte before the pen.
            unsafe { self.target.base.wrapping_add(at).write(tag) };
        }
    }

    /// Returns a new `Pen` with at least `n_bytes` of space. Adds the bytes of the old `Pen` to the
    /// sink.
    #[cold]
    #[inline(never)]
    fn reserve<'s>(&mut self, pen: Pen<'s>, n_bytes: usize) -> Result<Pen<'s>, BsonStop> {
        if self.offset(&pen) - self.start > self.style.max_bytes {
            return Err(BsonStop::TooLong);
        }
        self.close(&pen);
        let expected = self.expected_bytes(self.offset(&pen));
        self.target.sink.expect(expected);
        self.open(n_bytes)
    }

    /// Estimates the final output size after `n_bytes` bytes. The estimate uses the written part of
    /// each open container.
    fn expected_bytes(&self, n_bytes: usize) -> usize {
        let of_frame = |frame: &ContainerFrame| {
            let n = match frame.form {
                // SAFETY: attached. Each frame's object is alive: its container or the frame owns
                // it. Lists and tuples have a size.
                ContainerForm::List | ContainerForm::Tuple => unsafe { ffi::Py_SIZE(frame.object) },
                ContainerForm::Dict => frame.n,
                _ => return 0,
            };
            let (n, at) = (n.unsigned_abs(), frame.at.unsigned_abs().max(1));
            n_bytes.saturating_sub(frame.start).saturating_mul(n) / at
        };
        self.frames.iter().map(of_frame).max().unwrap_or(0)
    }

    #[inline(always)]
    fn ensure_space<'s>(&mut self, pen: Pen<'s>, n_bytes: usize) -> Result<Pen<'s>, BsonStop> {
        if pen.remaining() < n_bytes {
            return self.reserve(pen, n_bytes);
        }
        Ok(pen)
    }
}
