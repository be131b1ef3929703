//! `GrowingStr`: a byte sink that produces a `str`, block by block.
//!
//! The writer fills a block with UTF-8, or with Latin-1 while `is_latin1` is set. A full block is
//! converted and appended to the `str`. The caller estimates the kind and length of the `str`. If
//! the estimate is too small, the characters are copied to a wider or longer `str`.

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

use super::encode::json::Ucs2Text;
use super::fresh;
use super::text::{self, MakeError, data_of};

/// The size of a full block. It fits into the processor's cache.
const BLOCK_BYTES: usize = 16 << 10;

/// The capacity of a block in addition to [`BLOCK_BYTES`].
const SPARE_BYTES: usize = 8 << 10;

/// The first size to which a short `str` grows, in bytes. It is small enough for the allocator's
/// heap.
const MIDDLE_BYTES: usize = 120 << 10;

/// The least size of a longer `str`, in bytes. The allocator enlarges such an object by moving
/// pages, without a copy. Unused pages occupy no memory.
const WHOLE_BYTES: usize = 2 * MOVED_BY_PAGES_BYTES;

/// A byte sink that produces a `str`.
pub(crate) struct GrowingStr<'c, 'py> {
    py: Python<'py>,
    /// `true` if the block contains Latin-1, not UTF-8. The writer changes it only while the block
    /// is empty.
    is_latin1: &'c Cell<bool>,
    /// The memory of the `str`, to which the writer writes UCS-2 directly.
    ucs2: &'c Ucs2Text,
    takes_wide: bool,
    block: Vec<u8>,
    /// The `str` so far. `None` before the first block, and after an allocation has failed.
    made: Option<Bound<'py, PyAny>>,
    /// The kind of `made`, and its capacity in characters.
    shape: Shape,
    /// The number of characters in `made`.
    n_chars: usize,
    /// The widest kind of the blocks so far.
    widest: Kind,
    turned_bytes: usize,
    moved_bytes: usize,
    malformed: Option<Malformed>,
}

impl<'c, 'py> GrowingStr<'c, 'py> {
    /// Creates a sink. `likely` is the estimated kind and length of the `str`.
    pub(crate) fn new(
        py: Python<'py>,
        likely: Shape,
        is_latin1: &'c Cell<bool>,
        ucs2: &'c Ucs2Text,
    ) -> Self {
        // A short result is created at the end, in one step.
        let takes_wide = likely.kind == Kind::Ucs2 && likely.n_chars >= BLOCK_BYTES;
        is_latin1.set(likely.kind <= Kind::Latin1 || takes_wide);
        // At least one byte per character. If the text needs more, the block grows once.
        let first = likely.n_chars.min(BLOCK_BYTES) + SPARE_BYTES;
        GrowingStr {
            py,
            is_latin1,
            ucs2,
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

    /// Returns the complete `str`, its shape, and the number of bytes that were copied again.
    ///
    /// # Errors
    /// [`MakeError::Malformed`], with the position in the whole input, if the input is not UTF-8.
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
            // All characters fit into a narrower kind, so the `str` is copied.
            copied += n_chars * self.shape.kind.unit_bytes();
            // SAFETY: of this kind, with this number of characters.
            let whole = unsafe { written(&made, self.shape.kind, n_chars) };
            text::make(self.py, whole, Policy::Strict, &mut Tally::default())?
        };
        Ok((made, shape, copied))
    }

    /// Implements [`GrowingStr::finish`] for a text of one block.
    fn finish_short(self) -> Result<(Bound<'py, PyAny>, Shape, usize), MakeError> {
        let units = self.units();
        let shape = match measure(units, Policy::Strict) {
            Ok(measured) => measured.shape(),
            Err(e) => return Err(MakeError::Malformed(e)),
        };
        let made = text::make(self.py, units, Policy::Strict, &mut Tally::default())?;
        Ok((made, shape, self.block.len()))
    }

    /// Returns `true` if the writer may write UCS-2 directly to the `str`, while the block contains
    /// Latin-1.
    pub(crate) fn takes_wide(&self) -> bool {
        self.takes_wide
    }

    /// Ends direct writing to the `str`, and updates `n_chars`. Returns how many bytes of the block
    /// are already in the `str`.
    fn take_ucs2(&mut self) -> usize {
        if self.ucs2.at().is_null() {
            return 0;
        }
        if let Some(made) = &self.made {
            // SAFETY: the data of our `str`.
            let data = unsafe { data_of(made.as_ptr(), Kind::Ucs2) };
            let n_chars = (self.ucs2.at().addr() - data.addr()) / 2;
            if self.ucs2.is_wide() {
                self.widest = self.widest.max(Kind::Ucs2);
            }
            self.n_chars = n_chars;
        }
        let n_gone = self.ucs2.from().addr() - self.block.as_ptr().addr();
        // SAFETY: null pointers, to which nothing is written until the next call.
        unsafe { self.ucs2.place(null(), null_mut(), null_mut()) };
        n_gone
    }

    /// Starts direct writing to the `str`. The first `n_gone` bytes of the block are already in the
    /// `str`.
    fn map_ucs2(&mut self, n_gone: usize) {
        let (mut at, mut end) = (null_mut(), null_mut());
        if let Some(made) = &self.made
            && self.is_latin1.get()
            && self.shape.kind == Kind::Ucs2
        {
            // SAFETY: positions in the `str`, or right after its end.
            unsafe {
                let data = data_of(made.as_ptr(), Kind::Ucs2).cast::<u16>();
                (at, end) = (data.add(self.n_chars), data.add(self.shape.n_chars));
            }
        }
        // SAFETY: only the writer writes after the characters of the `str`, until the next call.
        unsafe {
            let from = self.block.as_ptr().add(n_gone);
            self.ucs2.place(from, at, end);
        }
    }

    /// Returns `true` if an earlier block was not UTF-8. [`GrowingStr::finish`] then returns the
    /// error.
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

    /// Converts the block, and appends it to the `str`. Returns `false` after an error.
    fn turn(&mut self) -> bool {
        onecopy_text::planted::extra_work_on_chunk(&self.block);
        let n_gone = self.take_ucs2();
        let block = std::mem::take(&mut self.block);
        let units = if self.is_latin1.get() {
            Units::Latin1(&block[n_gone..])
        } else {
            Units::Utf8(&block)
        };
        // Usually the block is not wider than the `str`. Then one pass validates and decodes it.
        if let Some(Ok(Made { made, .. })) = convert::make_large(units, &mut PartsOfStr(self)) {
            self.widest = self.widest.max(made.shape.kind);
            self.n_chars += made.shape.n_chars;
            return self.is_turned(block);
        }
        match measure(units, Policy::Strict) {
            Ok(measured) => {
                let Shape { kind, n_chars } = measured.shape();
                if n_chars > 0 {
                    self.widest = self.widest.max(kind);
                    if self.reserve(kind, n_chars).is_err() {
                        return false;
                    }
                    let Some(made) = &mut self.made else {
                        return false;
                    };
                    // SAFETY: `reserve` has checked the kind and capacity. There is no other
                    // reference.
                    measured.write(unsafe {
                        spare_chars(made, self.shape.kind, self.n_chars, n_chars)
                    });
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

    /// Counts the bytes of a converted block, and clears it for reuse. Always returns `true`.
    fn is_turned(&mut self, block: Vec<u8>) -> bool {
        self.turned_bytes += block.len();
        self.block = block;
        self.block.clear();
        self.map_ucs2(0);
        true
    }

    /// Reserves space in the `str` for `n_more` characters of the kind `kind`.
    fn reserve(&mut self, kind: Kind, n_more: usize) -> PyResult<()> {
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
                        // If the system refuses that size, the requested length is used.
                        shape.n_chars = wanted;
                        resize(made, wanted).map_err(|(_, e)| e)?
                    }
                }
            }
            Some(made) => {
                self.moved_bytes += self.n_chars * self.shape.kind.unit_bytes();
                let mut wider = fresh::blank(self.py, shape)?;
                // SAFETY: the old `str` has this number of characters, and the new one has space
                // for them. Neither has another reference.
                unsafe {
                    let before = written(&made, self.shape.kind, self.n_chars);
                    let before = measure(before, Policy::Strict).expect("written by `turn`");
                    before.write(spare_chars(&mut wider, shape.kind, 0, self.n_chars));
                }
                wider
            }
            None => fresh::blank(self.py, shape)?,
        });
        self.shape = shape;
        Ok(())
    }
}

/// Appends to the `str` of a [`GrowingStr`] in a kernel that creates a [`NewStr`].
struct PartsOfStr<'s, 'c, 'py>(&'s mut GrowingStr<'c, 'py>);

/// The part of the `str` for the next characters.
struct StrPart<'py> {
    of: Bound<'py, PyAny>,
    from: usize,
    shape: Shape,
}

impl<'py> NewStr for PartsOfStr<'_, '_, 'py> {
    type Str = StrPart<'py>;
    type Error = ();

    fn new_str(&mut self, shape: Shape) -> Result<StrPart<'py>, ()> {
        let PartsOfStr(string) = self;
        if shape.kind != string.shape.kind {
            return Err(());
        }
        string.reserve(shape.kind, shape.n_chars).map_err(drop)?;
        Ok(StrPart {
            of: string.made.clone().ok_or(())?,
            from: string.n_chars,
            shape,
        })
    }

    fn data<'a>(&self, StrPart { of, from, shape }: &'a mut StrPart<'py>) -> StrData<'a> {
        // SAFETY: of this kind and capacity, by `new_str`. Both references to it are ours.
        unsafe { spare_chars(of, shape.kind, *from, shape.n_chars) }
    }
}

// SAFETY: as for the Vec. Only `spare` clears it, after all committed bytes were converted.
unsafe impl ByteSink for GrowingStr<'_, '_> {
    fn committed(&self) -> &[u8] {
        &self.block
    }

    fn committed_mut(&mut self) -> &mut [u8] {
        &mut self.block
    }

    fn spare(&mut self, n_bytes: usize) -> Result<&mut [MaybeUninit<u8>], SinkFull> {
        let full = SinkFull {
            requested_bytes: n_bytes,
        };
        let wanted = self.ucs2.take_wanted();
        if (wanted > 0 || self.block.len() >= BLOCK_BYTES) && !self.turn() {
            return Err(full);
        }
        let n_gone = self.take_ucs2();
        if wanted > 0 {
            self.reserve(Kind::Ucs2, wanted).map_err(|_| full)?;
        }
        if self.block.len() < BLOCK_BYTES && self.block.capacity() < BLOCK_BYTES {
            let _ = self.block.try_reserve(BLOCK_BYTES + SPARE_BYTES);
        }
        let reserved = self.block.spare(n_bytes).map(drop);
        if self.takes_wide {
            self.map_ucs2(n_gone);
        }
        reserved?;
        self.block.spare(n_bytes)
    }

    unsafe fn commit(&mut self, n_bytes: usize) {
        // SAFETY: as the caller guarantees.
        unsafe { self.block.commit(n_bytes) };
    }

    fn cut(&mut self, len_bytes: usize) {
        self.block.truncate(len_bytes);
    }
}

/// Resizes a `str`. The error contains the unchanged `str`. The caller must own the only reference.
fn resize(
    string: Bound<'_, PyAny>,
    n_chars: usize,
) -> Result<Bound<'_, PyAny>, (Bound<'_, PyAny>, PyErr)> {
    let py = string.py();
    let Ok(n) = isize::try_from(n_chars) else {
        return Err((string, PyMemoryError::new_err(())));
    };
    let mut at = string.into_ptr();
    // SAFETY: a compact, unhashed `str` of more than one character, with our reference only. If the
    // call fails, the object is unchanged.
    unsafe {
        let failed = ffi::PyUnicode_Resize(&raw mut at, n) != 0;
        let string = Bound::from_owned_ptr(py, at);
        if failed {
            return Err((string, PyErr::fetch(py)));
        }
        Ok(string)
    }
}

/// Shortens a `str` to its first `n_chars` characters.
fn cut(string: Bound<'_, PyAny>, shape: Shape, n_chars: usize) -> PyResult<Bound<'_, PyAny>> {
    if n_chars == shape.n_chars {
        return Ok(string);
    }
    resize(string, n_chars).map_err(|(_, e)| e)
}

/// Returns the memory for `n_chars` characters of a `str`, from character `from` on.
///
/// # Safety
/// `made` must be a compact `str` of this kind with `from + n_chars` characters, and no other
/// reference.
unsafe fn spare_chars<'a>(
    made: &'a mut Bound<'_, PyAny>,
    kind: Kind,
    from: usize,
    n_chars: usize,
) -> StrData<'a> {
    // SAFETY: as the caller guarantees. MaybeUninit needs no initialisation.
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

/// Returns the first `n_chars` characters of a `str`.
///
/// # Safety
/// `made` must be a compact `str` of this kind, with at least `n_chars` written characters.
unsafe fn written<'a>(made: &'a Bound<'_, PyAny>, kind: Kind, n_chars: usize) -> Units<'a> {
    // SAFETY: as the caller guarantees.
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
