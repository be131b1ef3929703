//! A walk over Python objects that writes them as JSON.
//!
//! | module | what it holds |
//! |---|---|
//! | `asked` | options and target of an encoder, and the reasons for which it ends early |
//! | `containers` | the loop over the containers that an encoder is inside of |
//! | `members` | the loop over the members of one container, and of those inside of it |
//! | `format` | the interface between both loops and a format |
//! | `python_members` | the members of lists, tuples, dicts and dataclasses |
//! | `rows` | rows and columns of values as objects |
//! | `json`, `step`, `texts`, `styled` | JSON: as a format, values of a few instructions, texts of any length, line breaks |
//! | `sorted` | the members of a `dict` in the order of their keys |
//! | `bson` | the encoder of BSON, of the same objects, frames and keys |
//! | `shared` | the state that the encoders of all formats have |
//! | `frames` | the containers that an encoder is inside of, and who holds them |
//! | `keys` | keys as they were written before |
//! | `object`, `dict`, `attributes` | objects of CPython's own types, members of a `dict`, attributes of instances, read in place |
//! | `classes`, `hints` | forms of the instances of a class, and attributes of classes |
//! | `native` | dates, UUIDs, enumerations, dataclasses and subclasses, read in place |
//! | `decimal`, `marked` | `decimal.Decimal` and BSON's own types, read in place |
//! | `array`, `items`, `scalar` | arrays of NumPy, their items, and scalars |
//! | `other` | objects that Python code may have to run for |
//! | `ahead` | objects that are fetched into the cache before they are read |
//! | `beside`, `sinks` | text that is written into a `str` and not into the chunk; targets of JSON other than a new `bytes` |
//!
//! Texts, numbers and containers of CPython's own types are read where they are: no reference is counted and no Python code
//! can run. All other objects are handed to [`Others`], which may run any: before that, the walk takes references to what it
//! is inside of.

mod ahead;
mod array;
mod asked;
mod attributes;
mod beside;
pub(crate) mod bson;
mod classes;
mod containers;
mod decimal;
mod dict;
mod format;
mod frames;
mod hints;
mod items;
mod json;
mod keys;
mod marked;
mod members;
mod native;
mod object;
mod other;
mod python_members;
mod rows;
mod scalar;
mod shared;
mod sinks;
mod sorted;
mod step;
mod styled;
mod texts;

use std::cell::Cell;
use std::ops::{Deref, DerefMut};

use onecopy_text::convert::{self, JSON_PLAIN_BYTES, Kernels, Work, with_kernels};
use onecopy_text::{Pen, Policy, Put, Tally, Units};
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use pyo3::{Borrowed, ffi};

use crate::raw::ending;
use crate::raw::ndarray::Memory;
use crate::raw::str_header;
pub(crate) use asked::{Failed, Other, Others, Shape, Stop, Style, Surrogates, Target};
pub(crate) use beside::Beside;
use format::Format;
use frames::Form;
pub(crate) use hints::hints;
use json::Json;
pub(crate) use native::Natives;
use object::Kind;
pub(crate) use scalar::put as put_scalar;
use shared::Shared;
pub(crate) use sinks::{Fixed, Flushing};
use styled::Lines;

/// Looks whether objects are laid out as they are read here; to be called when the module is imported.
pub(crate) fn check_layout(py: Python<'_>) -> PyResult<()> {
    if str_header::is_known(py)? && object::reads_ints(py) && dict::is_known(py)? {
        return attributes::check(py);
    }
    Err(PyImportError::new_err(
        "onecopy does not know how this interpreter stores its objects\ninstall a wheel that was built for it",
    ))
}

/// Writes an object as JSON behind what is in the chunk.
///
/// Inlined: what it is given would be put together in memory, and be read there in larger pieces than it was written, for which
/// the reader waits (4 ns).
#[inline(always)]
pub(crate) fn write<'py>(
    object: Borrowed<'_, 'py, PyAny>,
    shape: Shape<'_>,
    style: &Style,
    others: &dyn Others<'py>,
    target: Target<'_>,
    tally: Option<&mut Tally>,
) -> Result<(), Failed> {
    let mut walk = Walk {
        shared: Shared::new(object.py()),
        style,
        shape,
        others,
        is_latin1: target.latin1.is_some_and(Cell::get),
        // As long as all the others.
        target: Target {
            chunk: target.chunk,
            ..target
        },
        lines: Lines::default(),
        within: String::new(),
        is_counted: tally.is_some(),
        n_texts: 0,
        text_bytes: 0,
    };
    let done = with_kernels(Run {
        walk: &mut walk,
        root: object.as_ptr(),
    });
    if let Some(tally) = tally {
        tally.converted_many(walk.n_texts, walk.text_bytes);
    }
    done.map_err(|stop| Failed {
        stop,
        path: walk.path() + &walk.within,
    })
}

struct Run<'w, 'a, 'py> {
    walk: &'w mut Walk<'a, 'py>,
    root: *mut ffi::PyObject,
}

impl Work for Run<'_, '_, '_> {
    type Output = Result<(), Stop>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Result<(), Stop> {
        // SAFETY: attached by the lifetime of the walk; the caller holds the root.
        unsafe {
            if self.walk.style.is_plain() {
                self.walk.run::<K, false>(kernels, self.root)
            } else {
                self.walk.run::<K, true>(kernels, self.root)
            }
        }
    }
}

/// What to do behind an object that was handed to [`Others`].
enum Next<'py> {
    /// It is written.
    Done,
    /// The walk is inside of it.
    Members,
    /// This one is to be written in its place.
    Instead(*mut ffi::PyObject),
    /// This memory of an array is to be written: by [`Walk::large`].
    Memory(Memory<'py>),
}

/// An encoder of JSON.
struct Walk<'a, 'py> {
    shared: Shared<'py>,
    style: &'a Style,
    shape: Shape<'a>,
    others: &'a dyn Others<'py>,
    target: Target<'a>,
    /// Whether the chunk is Latin-1, up to now.
    is_latin1: bool,
    lines: Lines,
    /// The path from the innermost frame to the item of an array that has no form: `[3][5]`.
    within: String,
    /// Whether anybody asks for the counts: to keep them costs a nanosecond a text.
    is_counted: bool,
    n_texts: u64,
    text_bytes: u64,
}

impl<'py> Deref for Walk<'_, 'py> {
    type Target = Shared<'py>;

    #[inline(always)]
    fn deref(&self) -> &Shared<'py> {
        &self.shared
    }
}

impl DerefMut for Walk<'_, '_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.shared
    }
}

/// Room that there is before a key and a value are written: two texts of at most [`SHORT_UNITS`] with their quotes, or a number.
const ROOM: usize = 2 * (json_room_of_short() + 8);

/// A text of up to as many units is written in one go.
const SHORT_UNITS: usize = JSON_PLAIN_BYTES;

const fn json_room_of_short() -> usize {
    6 * SHORT_UNITS + 64
}

impl<'py> Walk<'_, 'py> {
    /// Writes the root and all that it holds.
    ///
    /// # Safety
    /// Attached as long as this lives; the caller holds `root`.
    #[inline(always)]
    unsafe fn run<K: Kernels, const STYLED: bool>(
        &mut self,
        kernels: K,
        root: *mut ffi::PyObject,
    ) -> Result<(), Stop> {
        let mut pen = self.open(ROOM)?;
        let encoder = Json::<STYLED>::of(self);
        // SAFETY: alive, by the caller's word; the frames are those of the root.
        unsafe {
            if let Shape::Value = encoder.shape {
                pen = match object::kind(root) {
                    kind @ (Kind::Dict | Kind::List | Kind::Tuple) => {
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

    /// Opens the place behind what the chunk has.
    #[inline(always)]
    fn open<'s>(&mut self, room: usize) -> Result<Pen<'s>, Stop> {
        let spare = self.target.chunk.spare(room).map_err(|_| Stop::Full)?;
        // SAFETY: the place belongs to the chunk, which is not used until `close`; a Pen checks its room.
        Ok(Pen::new(unsafe {
            std::slice::from_raw_parts_mut(spare.as_mut_ptr(), spare.len())
        }))
    }

    /// Counts what was put as written.
    #[inline(always)]
    fn close(&mut self, pen: &Pen<'_>) {
        let start = self.target.chunk.committed().as_ptr_range().end;
        // SAFETY: the pen was opened right behind what the chunk has, and all up to where it is was put.
        unsafe { self.target.chunk.commit(pen.at() as usize - start as usize) };
    }

    /// Writes the name of the next field of a frame, of any form, and returns its value. Code runs
    /// where the instance does not have the field where its class has it.
    ///
    /// # Safety
    /// `frame` is the innermost one, of fields, and one of them is not written.
    unsafe fn field<'s, K: Kernels>(
        &mut self,
        kernels: K,
        frame: *mut frames::Frame,
        mut pen: Pen<'s>,
    ) -> Result<(Pen<'s>, *mut ffi::PyObject), Stop> {
        // SAFETY: the frame stays where it is until one is pushed; its object is alive, and held where code runs.
        unsafe {
            let class = self.classes[(*frame).n.unsigned_abs()].clone();
            let private = self.style.natives.private_fields;
            let mut at = (*frame).at;
            let fields = class.fields();
            let Some(name) = fields.and_then(|fields| fields.next_name(private, &mut at)) else {
                return Err(Stop::Changed);
            };
            (*frame).at = at;
            pen = self.any_text(kernels, name, pen)?;
            pen = self.colon(pen);
            let object = (*frame).object;
            if class.is_of(object)
                && let Some(value) = fields.and_then(|fields| fields.value_before(object, at))
            {
                return Ok((pen, value));
            }
            self.close(&pen);
            self.before_code();
            let object = Bound::from_borrowed_ptr(self.py(), object);
            let name = Bound::from_borrowed_ptr(self.py(), name).cast_into_unchecked::<PyString>();
            let value = ending::calls(self.py(), || object.getattr(name))?;
            let borrowed = value.as_ptr();
            self.frames.push_owned(value, Form::Held, 0);
            Ok((self.open(ROOM)?, borrowed))
        }
    }

    /// More room.
    #[cold]
    #[inline(never)]
    fn grow<'s>(&mut self, pen: Pen<'s>, room: usize) -> Result<Pen<'s>, Stop> {
        self.close(&pen);
        if self.target.runs_python {
            self.before_code();
        }
        self.open(room)
    }

    /// From here on the chunk is UTF-8.
    #[cold]
    #[inline(never)]
    fn leave_latin1(&mut self) -> Result<(), Stop> {
        self.is_latin1 = false;
        self.keys.forget();
        let chunk = &mut *self.target.chunk;
        if let Some(beside) = self.target.beside.take() {
            // All of the chunk goes into the `str`.
            beside.want(1);
            chunk.spare(0).map_err(|_| Stop::Full)?;
        }
        let before = chunk.committed().to_vec();
        chunk.cut(0);
        if let Some(is_latin1) = self.target.latin1 {
            is_latin1.set(false);
        }
        let mut utf8 = Vec::new();
        convert::to_utf8(Units::Latin1(&before), Policy::Strict, &mut utf8)
            .map_err(|_| Stop::Full)?;
        chunk.put(&utf8).map_err(|_| Stop::Full)
    }

    #[inline(always)]
    fn room<'s>(&mut self, pen: Pen<'s>, room: usize) -> Result<Pen<'s>, Stop> {
        if pen.room() < room {
            return self.grow(pen, room);
        }
        Ok(pen)
    }

    /// Fails where there may be no container more inside of those that the walk is in.
    #[inline(always)]
    fn check_depth(&self, object: *mut ffi::PyObject) -> Result<(), Stop> {
        if self.frames.depth() >= self.style.max_depth {
            return Err(self.too_deep(object));
        }
        Ok(())
    }

    /// Fails where too many objects stand in each other's place: with no end to them the walk would have none. They are no
    /// containers, so an object of a class of its own is written at any depth.
    fn check_held(&self, object: *mut ffi::PyObject) -> Result<(), Stop> {
        if self.frames.n_held() > self.style.max_depth {
            return Err(Stop::TooDeep {
                is_circular: self.frames.iter().any(|f| f.object == object),
            });
        }
        Ok(())
    }

    #[cold]
    fn too_deep(&self, object: *mut ffi::PyObject) -> Stop {
        // What stands for another object is held before the walk goes inside of it.
        let mut around = self.frames.iter().filter(|f| f.form != Form::Held);
        Stop::TooDeep {
            is_circular: around.any(|f| f.object == object),
        }
    }

    /// Writes the key of a `dict`, of any type or length, and gives its value. Any Python code may run where it is no `str`.
    ///
    /// # Safety
    /// `frame` is the innermost one, of a `dict`, in which the key stands at `before`.
    #[inline(never)]
    unsafe fn key<'s, K: Kernels>(
        &mut self,
        kernels: K,
        frame: *mut frames::Frame,
        before: isize,
        key: *mut ffi::PyObject,
        pen: Pen<'s>,
    ) -> Result<(Pen<'s>, *mut ffi::PyObject), Stop> {
        // SAFETY: the frame stays where it is, for none is pushed or popped; its object is alive.
        unsafe {
            let dict = (*frame).object;
            let pen = if object::kind(key) == Kind::Str {
                self.any_text(kernels, key, pen)?
            } else {
                let key = Bound::from_borrowed_ptr(self.py(), key);
                self.before_code();
                let text = ending::calls(self.py(), || self.others.key(&key))?;
                self.any_text(kernels, text.as_ptr(), pen)?
            };
            // Code that ran meanwhile may have changed the dict: what stands there now is looked up.
            let mut at = before;
            let found = dict::entries(dict).next(dict, &mut at);
            match found {
                Some((_, value)) if dict::len(dict) == (*frame).n => Ok((pen, value)),
                _ => Err(Stop::Changed),
            }
        }
    }
}
