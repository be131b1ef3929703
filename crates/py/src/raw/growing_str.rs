//! A fresh `str` that bytes are written into, block by block.
//!
//! What is written lands in a block that stays in the first caches, as UTF-8, or as Latin-1 for as long as the writer says so. A full
//! block is looked at and becomes units of the `str`, which grows. The `str` is as wide as the widest block so far; of what
//! kind and how long it will be is guessed by who makes it, and where that is wrong, what is there is copied once more.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::slice;

use onecopy_text::convert::{self, Made, NewStr, StrData};
use onecopy_text::{
    ByteSink, Kind, MOVED_BY_PAGES_BYTES, Malformed, Policy, Shape, SinkFull, Tally, Units, measure,
};
use pyo3::exceptions::PyMemoryError;
use pyo3::ffi;
use pyo3::prelude::*;

use super::fresh;
use super::text::{self, MakeError, data_of};
use super::walk::Beside;

/// A block is turned into units where it has as many bytes.
const BLOCK_BYTES: usize = 16 << 10;

/// What a step may write behind that, mostly.
const SPARE_BYTES: usize = 8 << 10;

/// What a `str` that turns out too short grows to first: the allocator has it at hand.
const MIDDLE_BYTES: usize = 120 << 10;

/// What it grows to then, at least: from there on it is moved by its pages, and what is too much is never written to.
const WHOLE_BYTES: usize = 2 * MOVED_BY_PAGES_BYTES;

/// A sink that ends in a `str`.
pub(crate) struct GrowingStr<'c, 'py> {
    py: Python<'py>,
    /// Whether the block is Latin-1; the writer may change it where the block is empty.
    is_latin1: &'c Cell<bool>,
    /// Where the writer puts UCS-2 past the block.
    beside: &'c Beside,
    takes_wide: bool,
    block: Vec<u8>,
    /// The `str`, from the first full block on; `None` too where it was lost for want of memory.
    made: Option<Bound<'py, PyAny>>,
    /// What `made` is.
    shape: Shape,
    /// Characters that stand in it.
    n_chars: usize,
    /// The widest kind that was needed so far.
    widest: Kind,
    turned_bytes: usize,
    moved_bytes: usize,
    malformed: Option<Malformed>,
}

impl<'c, 'py> GrowingStr<'c, 'py> {
    /// One that is likely of this shape.
    pub(crate) fn new(
        py: Python<'py>,
        likely: Shape,
        is_latin1: &'c Cell<bool>,
        beside: &'c Beside,
    ) -> Self {
        // A short one is measured and made at once.
        let takes_wide = likely.kind == Kind::Ucs2 && likely.n_chars >= BLOCK_BYTES;
        is_latin1.set(likely.kind <= Kind::Latin1 || takes_wide);
        // As many bytes as characters at least; where that is too small the block grows once.
        let first = likely.n_chars.min(BLOCK_BYTES) + SPARE_BYTES;
        GrowingStr {
            py,
            is_latin1,
            beside,
            takes_wide,
            block: Vec::with_capacity(first),
            made: None,
            shape: likely,
            n_chars: 0,
            widest: Kind::Ascii,
            turned_bytes: 0,
            moved_bytes: 0,
            malformed: None,
        }
    }

    /// The `str`, its shape, and the bytes that were copied on the way, besides those that each text was converted to.
    ///
    /// # Errors
    /// [`MakeError::Malformed`], with the place in all that was written, where that was not UTF-8.
    pub(crate) fn finish(mut self) -> Result<(Bound<'py, PyAny>, Shape, usize), MakeError> {
        if self.malformed.is_none() && self.made.is_none() && self.turned_bytes == 0 {
            return self.finish_short();
        }
        let full = self.malformed.is_some() || !self.turn();
        if let Some(error) = self.malformed {
            return Err(MakeError::Malformed(error));
        }
        let Some(made) = self.made.take().filter(|_| !full) else {
            return Err(MakeError::Python(PyMemoryError::new_err(())));
        };
        let (kind, n_chars) = (self.widest, self.n_chars);
        let shape = Shape { kind, n_chars };
        let mut copied = self.turned_bytes + self.moved_bytes;
        let made = if kind == self.shape.kind {
            cut(made, self.shape, n_chars).map_err(MakeError::Python)?
        } else {
            // All of it was narrower than what was made for it.
            copied += n_chars * self.shape.kind.unit_bytes();
            // SAFETY: of this kind, and as many characters of it are written.
            let whole = unsafe { written(&made, self.shape.kind, n_chars) };
            text::make(self.py, whole, Policy::Strict, &mut Tally::default())?
        };
        Ok((made, shape, copied))
    }

    /// As [`GrowingStr::finish`], where all of it is in the block.
    fn finish_short(self) -> Result<(Bound<'py, PyAny>, Shape, usize), MakeError> {
        let units = self.units();
        let shape = match measure(units, Policy::Strict) {
            Ok(measured) => measured.shape(),
            Err(e) => return Err(MakeError::Malformed(e)),
        };
        let made = text::make(self.py, units, Policy::Strict, &mut Tally::default())?;
        Ok((made, shape, self.block.len()))
    }

    /// Whether UCS-2 may go past the block, for as long as it is Latin-1.
    pub(crate) fn takes_wide(&self) -> bool {
        self.takes_wide
    }

    /// Counts what was put past the block, and takes the place for more; how much of the block went before it.
    fn take_beside(&mut self) -> usize {
        if self.beside.at().is_null() {
            return 0;
        }
        if let Some(made) = &self.made {
            // SAFETY: the data of a `str` that is ours.
            let data = unsafe { data_of(made.as_ptr(), Kind::Ucs2) };
            let n_chars = (self.beside.at().addr() - data.addr()) / 2;
            if self.beside.is_wide() {
                self.widest = self.widest.max(Kind::Ucs2);
            }
            self.n_chars = n_chars;
        }
        let n_gone = self.beside.from().addr() - self.block.as_ptr().addr();
        // SAFETY: all null: nothing is put there until the next call.
        unsafe { self.beside.place(null(), null_mut(), null_mut()) };
        n_gone
    }

    /// Tells the writer where text goes past the block, of which `n_gone` bytes went.
    fn place_beside(&mut self, n_gone: usize) {
        let (mut at, mut end) = (null_mut(), null_mut());
        if let Some(made) = &self.made
            && self.is_latin1.get()
            && self.shape.kind == Kind::Ucs2
        {
            // SAFETY: places inside of the `str`, or right behind it.
            unsafe {
                let data = data_of(made.as_ptr(), Kind::Ucs2).cast::<u16>();
                (at, end) = (data.add(self.n_chars), data.add(self.shape.n_chars));
            }
        }
        // SAFETY: what is behind the characters that stand in the `str` is written by the writer alone, until the next call.
        unsafe {
            let from = self.block.as_ptr().add(n_gone);
            self.beside.place(from, at, end);
        }
    }

    /// Whether what was written was not UTF-8: [`GrowingStr::finish`] says where.
    pub(crate) fn is_malformed(&self) -> bool {
        self.malformed.is_some()
    }

    fn units(&self) -> Units<'_> {
        if self.is_latin1.get() {
            Units::Latin1(&self.block)
        } else {
            Units::Utf8(&self.block)
        }
    }

    /// Turns the block into units; `false` where that is not possible.
    fn turn(&mut self) -> bool {
        onecopy_text::planted::extra_work_on_chunk(&self.block);
        let n_gone = self.take_beside();
        let block = std::mem::take(&mut self.block);
        let units = if self.is_latin1.get() {
            Units::Latin1(&block[n_gone..])
        } else {
            Units::Utf8(&block)
        };
        // Mostly as wide as the blocks before it: then it is validated while it is decoded.
        if let Some(Ok(Made { made, .. })) = convert::make_large(units, &mut Parts(self)) {
            self.widest = self.widest.max(made.shape.kind);
            self.n_chars += made.shape.n_chars;
            return self.is_turned(block);
        }
        match measure(units, Policy::Strict) {
            Ok(measured) => {
                let Shape { kind, n_chars } = measured.shape();
                if n_chars > 0 {
                    self.widest = self.widest.max(kind);
                    if self.make_room(kind, n_chars).is_err() {
                        return false;
                    }
                    let Some(made) = &mut self.made else {
                        return false;
                    };
                    // SAFETY: `make_room` has seen that it is of this kind and has that room; it is ours alone.
                    measured.write(unsafe { room(made, self.shape.kind, self.n_chars, n_chars) });
                    self.n_chars += n_chars;
                }
            }
            Err(e) => {
                self.malformed = Some(e.later_by(self.turned_bytes));
                return false;
            }
        }
        self.is_turned(block)
    }

    /// Counts a block, and begins the next.
    fn is_turned(&mut self, block: Vec<u8>) -> bool {
        self.turned_bytes += block.len();
        self.block = block;
        self.block.clear();
        self.place_beside(0);
        true
    }

    /// Makes room for so many characters more, of this kind.
    fn make_room(&mut self, kind: Kind, n_more: usize) -> PyResult<()> {
        let wanted = self.n_chars + n_more;
        match &self.made {
            Some(_) if kind <= self.shape.kind && wanted <= self.shape.n_chars => return Ok(()),
            None if self.turned_bytes > 0 => return Err(PyMemoryError::new_err(())), // it was lost
            _ => {}
        }
        let kind = kind.max(self.shape.kind);
        let n_chars = match self.made {
            Some(_) if wanted > self.shape.n_chars => {
                let middle = MIDDLE_BYTES / kind.unit_bytes();
                let whole = WHOLE_BYTES / kind.unit_bytes();
                if wanted <= middle {
                    middle
                } else {
                    wanted.saturating_add(wanted / 2).max(whole)
                }
            }
            _ => wanted.max(self.shape.n_chars),
        };
        let mut shape = Shape { kind, n_chars };
        self.made = Some(match self.made.take() {
            Some(made) if shape.kind == self.shape.kind => {
                self.moved_bytes += self.n_chars * shape.kind.unit_bytes();
                match resize(made, shape.n_chars) {
                    Ok(longer) => longer,
                    Err((made, _)) => {
                        // Where address space is short, what is asked for has to do.
                        shape.n_chars = wanted;
                        resize(made, wanted).map_err(|(_, e)| e)?
                    }
                }
            }
            Some(made) => {
                self.moved_bytes += self.n_chars * self.shape.kind.unit_bytes();
                let mut wider = fresh::blank(self.py, shape)?;
                // SAFETY: as many characters of the one are written, and the other has room for them; both are ours.
                unsafe {
                    let before = written(&made, self.shape.kind, self.n_chars);
                    let before = measure(before, Policy::Strict).expect("written by `turn`");
                    before.write(room(&mut wider, shape.kind, 0, self.n_chars));
                }
                wider
            }
            None => fresh::blank(self.py, shape)?,
        });
        self.shape = shape;
        Ok(())
    }
}

/// Makes parts of a `str`, where they are of the kind of those before.
struct Parts<'s, 'c, 'py>(&'s mut GrowingStr<'c, 'py>);

/// What the next characters are written to.
struct Part<'py> {
    of: Bound<'py, PyAny>,
    from: usize,
    shape: Shape,
}

impl<'py> NewStr for Parts<'_, '_, 'py> {
    type Str = Part<'py>;
    type Error = ();

    fn new_str(&mut self, shape: Shape) -> Result<Part<'py>, ()> {
        let Parts(string) = self;
        if shape.kind != string.shape.kind {
            return Err(());
        }
        string.make_room(shape.kind, shape.n_chars).map_err(drop)?;
        Ok(Part {
            of: string.made.clone().ok_or(())?,
            from: string.n_chars,
            shape,
        })
    }

    fn data<'a>(&self, Part { of, from, shape }: &'a mut Part<'py>) -> StrData<'a> {
        // SAFETY: of this kind, and with that room, by `new_str`; both references to it are ours.
        unsafe { room(of, shape.kind, *from, shape.n_chars) }
    }
}

// SAFETY: as of the Vec, which is cleared in `spare` alone: all that was committed is gone then.
unsafe impl ByteSink for GrowingStr<'_, '_> {
    fn committed(&self) -> &[u8] {
        &self.block
    }

    fn committed_mut(&mut self) -> &mut [u8] {
        &mut self.block
    }

    fn spare(&mut self, n_bytes: usize) -> Result<&mut [MaybeUninit<u8>], SinkFull> {
        let full = SinkFull {
            asked_bytes: n_bytes,
        };
        let wanted = self.beside.take_wanted();
        if (wanted > 0 || self.block.len() >= BLOCK_BYTES) && !self.turn() {
            return Err(full);
        }
        let n_gone = self.take_beside();
        if wanted > 0 {
            self.make_room(Kind::Ucs2, wanted).map_err(|_| full)?;
        }
        if self.block.len() < BLOCK_BYTES && self.block.capacity() < BLOCK_BYTES {
            let _ = self.block.try_reserve(BLOCK_BYTES + SPARE_BYTES);
        }
        let reserved = self.block.spare(n_bytes).map(drop);
        if self.takes_wide {
            self.place_beside(n_gone);
        }
        reserved?;
        self.block.spare(n_bytes)
    }

    unsafe fn commit(&mut self, n_bytes: usize) {
        // SAFETY: the duty of the caller.
        unsafe { self.block.commit(n_bytes) };
    }

    fn cut(&mut self, len_bytes: usize) {
        self.block.truncate(len_bytes);
    }
}

/// A `str` that is made longer or shorter, or the same one and why not. It must be ours alone.
fn resize(
    string: Bound<'_, PyAny>,
    n_chars: usize,
) -> Result<Bound<'_, PyAny>, (Bound<'_, PyAny>, PyErr)> {
    let py = string.py();
    let Ok(n) = isize::try_from(n_chars) else {
        return Err((string, PyMemoryError::new_err(())));
    };
    let mut at = string.into_ptr();
    // SAFETY: a compact `str` with one reference, ours, never hashed, of more than one character, so it is no shared one. Where the
    // call fails the object is as it was.
    unsafe {
        let failed = ffi::PyUnicode_Resize(&raw mut at, n) != 0;
        let string = Bound::from_owned_ptr(py, at);
        if failed {
            return Err((string, PyErr::fetch(py)));
        }
        Ok(string)
    }
}

/// A `str` cut to what was written of it. What is left over is given back, where it is much: a little that is kept spares the
/// next one its page faults (as `binary` has it of `bytes`).
fn cut(string: Bound<'_, PyAny>, shape: Shape, n_chars: usize) -> PyResult<Bound<'_, PyAny>> {
    let left = shape.n_chars - n_chars;
    if left == 0 {
        return Ok(string);
    }
    #[cfg(not(any(Py_3_14, Py_GIL_DISABLED)))]
    if left <= shape.n_chars / 16 && shape.kind != Kind::Ucs4 {
        let at = string.as_ptr();
        // SAFETY: a compact `str`, ours alone, never hashed, not read as `wchar_t` (that is as wide as UCS-4 here). The new end is
        // inside of its data, where a terminator is written. Freeing it does not depend on its length.
        unsafe {
            let end = data_of(at, shape.kind).cast::<u8>();
            let end = end.add(n_chars * shape.kind.unit_bytes());
            std::ptr::write_bytes(end, 0, shape.kind.unit_bytes());
            (*at.cast::<ffi::PyASCIIObject>()).length = n_chars as ffi::Py_ssize_t;
        }
        return Ok(string);
    }
    resize(string, n_chars).map_err(|(_, e)| e)
}

/// A part of the data of a `str`, to be written.
///
/// # Safety
/// `made` is a compact `str` of this kind, ours alone, with at least as many characters.
unsafe fn room<'a>(
    made: &'a mut Bound<'_, PyAny>,
    kind: Kind,
    from: usize,
    n_chars: usize,
) -> StrData<'a> {
    // SAFETY: the duty of the caller; MaybeUninit asks nothing of its contents.
    unsafe {
        let data = data_of(made.as_ptr(), kind);
        match kind {
            Kind::Ascii | Kind::Latin1 => {
                let at = data.cast::<MaybeUninit<u8>>().add(from);
                StrData::One(slice::from_raw_parts_mut(at, n_chars))
            }
            Kind::Ucs2 => {
                let at = data.cast::<MaybeUninit<u16>>().add(from);
                StrData::Two(slice::from_raw_parts_mut(at, n_chars))
            }
            Kind::Ucs4 => {
                let at = data.cast::<MaybeUninit<u32>>().add(from);
                StrData::Four(slice::from_raw_parts_mut(at, n_chars))
            }
        }
    }
}

/// The first characters of a `str`.
///
/// # Safety
/// `made` is a compact `str` of this kind, of which as many are written.
unsafe fn written<'a>(made: &'a Bound<'_, PyAny>, kind: Kind, n_chars: usize) -> Units<'a> {
    // SAFETY: the duty of the caller.
    unsafe {
        let data = data_of(made.as_ptr(), kind);
        match kind {
            Kind::Ascii | Kind::Latin1 => {
                Units::Latin1(slice::from_raw_parts(data.cast(), n_chars))
            }
            Kind::Ucs2 => Units::Ucs2(slice::from_raw_parts(data.cast(), n_chars)),
            Kind::Ucs4 => Units::Utf32(slice::from_raw_parts(data.cast(), n_chars)),
        }
    }
}
