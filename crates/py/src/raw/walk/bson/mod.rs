//! A walk over Python objects that writes them as BSON: as the walk that writes JSON, with the lengths of documents patched in behind.
//!
//! | module | what it holds |
//! |---|---|
//! | `array` | arrays and scalars of NumPy |
//! | `asked` | what is asked of a walk, what it asks of others, why it may end early |
//! | `index` | the keys of arrays |
//! | `members` | the loop |
//! | `step` | values and keys that take a few instructions |
//! | `texts` | texts and keys of any length and form |
//! | `value` | values that take more: containers, bytes, dates, and what others make |
//!
//! No Python code runs where the chunk makes room: a document is whole in it.

mod array;
mod asked;
mod index;
mod members;
mod step;
mod texts;
mod value;

use std::rc::Rc;

use onecopy_text::convert::{Kernels, Work, with_kernels};
use onecopy_text::{Pen, Put, Tally};
use pyo3::prelude::*;
use pyo3::{Borrowed, ffi};

use super::classes::Class;
use super::frames::{self, Form, Frame, Frames};
use super::keys::Keys;
use super::native::Zone;
use super::{ahead, dict};
pub(crate) use asked::{Failed, Other, Others, Sink, Stop, Style, UuidForm};
pub(crate) use texts::class_name;
pub(crate) use value::{FIRST_MS, LAST_MS};

/// Room that there is before a key and a value are written that take a few instructions, with their tag: the longest key that comes from
/// a vector, the longest such text, and as much again.
const ROOM: usize = 512;

/// Where documents go.
struct Target<'a> {
    sink: &'a mut dyn Sink,
    /// Where the first byte that was ever written would stand, were all of them in front of the pen.
    base: *mut u8,
    /// Bytes from the start that do not stand there, but are reached by the sink alone.
    before: usize,
}

/// What the loop has besides its pen.
struct Walk<'a, 'py> {
    frames: Frames<'py>,
    style: Style,
    others: &'a dyn Others<'py>,
    target: Target<'a>,
    /// Where the document begins that is written.
    start: usize,
    keys: Keys,
    /// The zone of the `datetime` that was written last.
    zone: Zone,
    /// Classes of the frames of fields.
    classes: Vec<Rc<Class>>,
    /// The path from the innermost frame to the item of an array that has no form: `[3][5]`.
    within: String,
    /// Whether anybody asks for the counts.
    is_counted: bool,
    tally: Tally,
}

/// Writes a document behind what is in the sink.
///
/// # Errors
/// What is in the sink then is of no meaning.
pub(crate) fn write<'py>(
    object: Borrowed<'_, 'py, PyAny>,
    style: Style,
    others: &dyn Others<'py>,
    sink: &mut dyn Sink,
    mut tally: Option<&mut Tally>,
) -> Result<(), Failed> {
    let mut walk = Walk {
        frames: Frames::new(object.py()),
        style,
        others,
        target: Target {
            sink,
            base: std::ptr::null_mut(),
            before: 0,
        },
        start: 0,
        keys: Keys::new(),
        zone: Zone::NONE,
        classes: Vec::new(),
        within: String::new(),
        is_counted: tally.is_some(),
        tally: Tally::default(),
    };
    let done = with_kernels(Run {
        walk: &mut walk,
        root: object.as_ptr(),
    });
    if let Some(tally) = &mut tally {
        **tally = walk.tally;
    }
    done.map_err(|stop| Failed {
        stop,
        path: walk.path(),
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
        unsafe { members::run(kernels, self.walk, self.root) }
    }
}

impl<'py> Walk<'_, 'py> {
    fn py(&self) -> Python<'py> {
        self.frames.py()
    }

    /// Opens the place behind what the sink has.
    fn open<'s>(&mut self, room: usize) -> Result<Pen<'s>, Stop> {
        let target = &mut self.target;
        let (at, len) = {
            let spare = target.sink.spare(room)?;
            (spare.as_mut_ptr(), spare.len())
        };
        target.before = target.sink.before();
        let n_committed = target.sink.committed().len();
        target.base = at
            .cast::<u8>()
            .wrapping_sub(n_committed)
            .wrapping_sub(target.before);
        // SAFETY: the place belongs to the sink, which is not used until `close`; a Pen checks its room.
        Ok(Pen::new(unsafe { std::slice::from_raw_parts_mut(at, len) }))
    }

    /// Counts what was put as written.
    fn close(&mut self, pen: &Pen<'_>) {
        let target = &mut self.target;
        let n_before = target.before + target.sink.committed().len();
        // SAFETY: the pen was opened right behind what the sink has, and all up to where it is was put.
        unsafe {
            target
                .sink
                .commit(pen.at().addr() - target.base.addr() - n_before)
        };
    }

    /// Bytes from the start up to the pen.
    #[inline(always)]
    fn offset(&self, pen: &Pen<'_>) -> usize {
        pen.at().addr().wrapping_sub(self.target.base.addr())
    }

    /// Puts a length where room was left for it.
    #[inline(always)]
    fn patch(&mut self, at: usize, n_bytes: usize, pen: &Pen<'_>) -> Result<(), Stop> {
        let Some(length) = i32::try_from(n_bytes).ok() else {
            return Err(Stop::TooLong);
        };
        let bytes = length.to_le_bytes();
        if at < self.target.before {
            self.target.sink.patch_at(at, &bytes);
            return Ok(());
        }
        assert!(
            at + bytes.len() <= self.offset(pen),
            "no length stands there"
        );
        // SAFETY: between the start of what stands in front of the pen and the pen, looked at above: written, and the pen's place.
        unsafe {
            let place = self.target.base.wrapping_add(at);
            place.cast::<[u8; 4]>().write_unaligned(bytes);
        }
        Ok(())
    }

    /// Writes a tag, `n_behind` bytes before the pen; where that is 0 there is no place for one.
    fn tag_behind(&mut self, tag: u8, n_behind: usize, pen: &Pen<'_>) {
        if n_behind != 0 {
            self.tag_at(tag, self.offset(pen) - n_behind);
        }
    }

    /// Writes a tag at a place that was left for it.
    fn tag_at(&mut self, tag: u8, at: usize) {
        if at < self.target.before {
            self.target.sink.patch_at(at, &[tag]);
        } else {
            // SAFETY: a byte was left there, in what stands in front of the pen.
            unsafe { self.target.base.wrapping_add(at).write(tag) };
        }
    }

    /// To be called before any Python code runs.
    fn before_code(&mut self) {
        self.frames.own();
        self.keys.forget();
        self.zone = Zone::NONE;
    }

    /// More room.
    #[cold]
    #[inline(never)]
    fn grow<'s>(&mut self, pen: Pen<'s>, room: usize) -> Result<Pen<'s>, Stop> {
        if self.offset(&pen) - self.start > self.style.max_size {
            return Err(Stop::TooLong);
        }
        self.close(&pen);
        let expected = self.expected_bytes(self.offset(&pen));
        self.target.sink.expect(expected);
        self.open(room)
    }

    /// How many bytes there will be by what the containers have taken so far, where `n_bytes` are written.
    fn expected_bytes(&self, n_bytes: usize) -> usize {
        let of_frame = |frame: &Frame| {
            let n = match frame.form {
                // SAFETY: attached, and each frame's object is alive: borrowed from what holds it, or ours; these have a size.
                Form::List | Form::Tuple => unsafe { ffi::Py_SIZE(frame.object) },
                Form::Dict => frame.n,
                _ => return 0,
            };
            let (n, at) = (n.unsigned_abs(), frame.at.unsigned_abs().max(1));
            n_bytes.saturating_sub(frame.start).saturating_mul(n) / at
        };
        self.frames.iter().map(of_frame).max().unwrap_or(0)
    }

    #[inline(always)]
    fn room<'s>(&mut self, pen: Pen<'s>, room: usize) -> Result<Pen<'s>, Stop> {
        if pen.room() < room {
            return self.grow(pen, room);
        }
        Ok(pen)
    }

    /// Goes inside of a container, whose tag is written, and leaves room for its length.
    ///
    /// # Safety
    /// As [`Frames::push`].
    #[inline(always)]
    unsafe fn enter(
        &mut self,
        object: *mut ffi::PyObject,
        form: Form,
        n: isize,
        pen: &mut Pen<'_>,
    ) -> Result<(), Stop> {
        self.check_depth(object)?;
        // SAFETY: the duty of the caller.
        unsafe { self.frames.push(object, form, n) };
        self.begin(pen);
        Ok(())
    }

    /// Goes inside of a `dict` that has members.
    ///
    /// # Safety
    /// As [`Frames::push`].
    #[inline(always)]
    unsafe fn enter_dict(
        &mut self,
        object: *mut ffi::PyObject,
        pen: &mut Pen<'_>,
    ) -> Result<(), Stop> {
        // SAFETY: the duty of the caller.
        unsafe {
            ahead::fetch_values(object);
            self.enter(object, Form::Dict, dict::len(object), pen)
        }
    }

    /// Notes where the innermost container begins, and leaves room for its length.
    #[inline(always)]
    fn begin(&mut self, pen: &mut Pen<'_>) {
        let start = self.offset(pen);
        if let Some(frame) = self.frames.last_mut() {
            frame.start = start;
        }
        pen.put_short(&[0; step::LENGTH_BYTES], step::LENGTH_BYTES);
    }

    /// Fails where there may be no container more inside of those that the walk is in.
    #[inline(always)]
    fn check_depth(&self, object: *mut ffi::PyObject) -> Result<(), Stop> {
        if self.frames.depth() >= self.style.max_depth {
            return Err(self.too_deep(object));
        }
        Ok(())
    }

    /// Fails where too many objects stand in each other's place: with no end to them the walk would have none.
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
        let mut around = self.frames.iter().filter(|f| f.form != Form::Held);
        Stop::TooDeep {
            is_circular: around.any(|f| f.object == object),
        }
    }

    /// What leads to where the walk is.
    fn path(&self) -> String {
        let mut path = String::from("$");
        for frame in self.frames.iter() {
            // SAFETY: attached, and each frame's object is alive: borrowed from what holds it, or ours.
            unsafe { frames::append_step(self.py(), frame, &self.classes, &mut path) };
        }
        path.push_str(&self.within);
        path
    }
}
