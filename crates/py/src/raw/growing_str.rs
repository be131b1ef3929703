//! `GrowingStr`: a byte sink that converts the written bytes to a `str`, block by block.
//!
//! The writer fills a block with UTF-8, or with Latin-1 while `is_latin1` is set. A block is small
//! enough to remain in the processor's cache. When it is full, its bytes are converted to code
//! units, which are appended to the `str`. The code units of the `str` are as wide as the widest
//! character so far requires. The caller estimates the kind and length of the `str`. If the
//! estimate is too small, the characters written so far are copied to a wider or longer `str`.

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

/// When a block contains this number of bytes, it is converted to code units of the `str`.
const BLOCK_BYTES: usize = 16 << 10;

/// The capacity in bytes that a block has in addition to [`BLOCK_BYTES`]. A block is converted only
/// when the writer requests space, so it can become longer than [`BLOCK_BYTES`].
const SPARE_BYTES: usize = 8 << 10;

/// The size in bytes to which a short `str` grows when it grows for the first time. For this size,
/// the allocator uses its heap and does not create a memory mapping.
const MIDDLE_BYTES: usize = 120 << 10;

/// A `str` of more than [`MIDDLE_BYTES`] grows to at least this size in bytes. The allocator can
/// enlarge an object of this size by moving its pages in the address space, without a copy. The
/// pages that the text does not need are never written to, so they occupy no memory.
const WHOLE_BYTES: usize = 2 * MOVED_BY_PAGES_BYTES;

/// A byte sink that produces a `str`. See the module documentation.
pub(crate) struct GrowingStr<'c, 'py> {
    py: Python<'py>,
    /// `true` if the block contains Latin-1, `false` if it contains UTF-8. The writer changes this
    /// flag only while the block is empty.
    is_latin1: &'c Cell<bool>,
    /// The memory of the `str`, into which the writer writes UCS-2 text directly. All other output
    /// is written to the buffer `block` first.
    ucs2: &'c Ucs2Text,
    takes_wide: bool,
    block: Vec<u8>,
    /// The `str` that is being created. `None` until the first block was converted, and after an
    /// allocation has failed.
    made: Option<Bound<'py, PyAny>>,
    /// The kind of `made`, and its capacity in characters.
    shape: Shape,
    /// The number of characters in `made` that have been written.
    n_chars: usize,
    /// The widest kind that any of the blocks converted so far requires.
    widest: Kind,
    turned_bytes: usize,
    moved_bytes: usize,
    malformed: Option<Malformed>,
}

impl<'c, 'py> GrowingStr<'c, 'py> {
    /// Creates a sink for a `str`. `likely` is the estimated kind and length of this `str`.
    pub(crate) fn new(
        py: Python<'py>,
        likely: Shape,
        is_latin1: &'c Cell<bool>,
        ucs2: &'c Ucs2Text,
    ) -> Self {
        // A short result is measured and created at the end, in one step.
        let takes_wide = likely.kind == Kind::Ucs2 && likely.n_chars >= BLOCK_BYTES;
        is_latin1.set(likely.kind <= Kind::Latin1 || takes_wide);
        // One byte per character at least; if the text needs more, the block grows once.
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

    /// Completes the `str`. Returns the `str`, its shape, and the number of bytes that were copied
    /// in addition to the conversion, for example because the `str` had to be enlarged.
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
            // All characters fit into narrower code units than those of `made`, so a narrower copy
            // is created.
            copied += n_chars * self.shape.kind.unit_bytes();
            // SAFETY: of this kind, and as many characters of it are written.
            let whole = unsafe { written(&made, self.shape.kind, n_chars) };
            text::make(self.py, whole, Policy::Strict, &mut Tally::default())?
        };
        Ok((made, shape, copied))
    }

    /// Implements [`GrowingStr::finish`] for a text that fits into the first block.
    fn finish_short(self) -> Result<(Bound<'py, PyAny>, Shape, usize), MakeError> {
        let units = self.units();
        let shape = match measure(units, Policy::Strict) {
            Ok(measured) => measured.shape(),
            Err(e) => return Err(MakeError::Malformed(e)),
        };
        let made = text::make(self.py, units, Policy::Strict, &mut Tally::default())?;
        Ok((made, shape, self.block.len()))
    }

    /// Returns `true` if the resulting `str` is expected to be UCS-2 and longer than one block. The
    /// writer may then write UCS-2 text directly to the memory of the `str`, but only while the
    /// block contains Latin-1.
    pub(crate) fn takes_wide(&self) -> bool {
        self.takes_wide
    }

    /// Ends the period in which the writer writes directly to the memory of the `str`, and updates
    /// `n_chars`. Returns the number of bytes at the start of the block that the writer has already
    /// copied to the `str`.
    fn take_ucs2(&mut self) -> usize {
        if self.ucs2.at().is_null() {
            return 0;
        }
        if let Some(made) = &self.made {
            // SAFETY: the data of a `str` that is ours.
            let data = unsafe { data_of(made.as_ptr(), Kind::Ucs2) };
            let n_chars = (self.ucs2.at().addr() - data.addr()) / 2;
            if self.ucs2.is_wide() {
                self.widest = self.widest.max(Kind::Ucs2);
            }
            self.n_chars = n_chars;
        }
        let n_gone = self.ucs2.from().addr() - self.block.as_ptr().addr();
        // SAFETY: all null: nothing is put there until the next call.
        unsafe { self.ucs2.place(null(), null_mut(), null_mut()) };
        n_gone
    }

    /// Lets the writer write directly to the memory of the `str` from now on. `n_gone` is the
    /// number of bytes of the current block that have already been copied to the `str`.
    fn map_ucs2(&mut self, n_gone: usize) {
        let (mut at, mut end) = (null_mut(), null_mut());
        if let Some(made) = &self.made
            && self.is_latin1.get()
            && self.shape.kind == Kind::Ucs2
        {
            // SAFETY: positions inside of the `str`, or right after its end.
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

    /// Returns `true` if a block that was already converted contained invalid UTF-8. The method
    /// [`GrowingStr::finish`] then returns an error with the position of the invalid bytes.
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

    /// Converts the bytes of the block to code units, and appends the code units to the `str`.
    /// Returns `false` if the bytes are malformed, or if an allocation fails.
    fn turn(&mut self) -> bool {
        onecopy_text::planted::extra_work_on_chunk(&self.block);
        let n_gone = self.take_ucs2();
        let block = std::mem::take(&mut self.block);
        let units = if self.is_latin1.get() {
            Units::Latin1(&block[n_gone..])
        } else {
            Units::Utf8(&block)
        };
        // Usually the block is not wider than the previous ones. It is then validated while it is
        // decoded.
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
                    // SAFETY: `reserve` has checked that it is of this kind and has that capacity;
                    // there is no other reference.
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

    /// Must be called after `block` was converted. Counts its bytes as converted, and clears it for
    /// reuse. Returns `true`, so that the caller can return this value as its own success.
    fn is_turned(&mut self, block: Vec<u8>) -> bool {
        self.turned_bytes += block.len();
        self.block = block;
        self.block.clear();
        self.map_ucs2(0);
        true
    }

    /// Reserves space in the `str` for `n_more` additional characters of the kind `kind`.
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
                        // If the system refuses that much address space, the requested length is
                        // used.
                        shape.n_chars = wanted;
                        resize(made, wanted).map_err(|(_, e)| e)?
                    }
                }
            }
            Some(made) => {
                self.moved_bytes += self.n_chars * self.shape.kind.unit_bytes();
                let mut wider = fresh::blank(self.py, shape)?;
                // SAFETY: as many characters of the one are written, and the other has space for
                // them; neither has another reference.
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

/// An adapter through which a kernel that creates a new `str` (a [`NewStr`]) appends characters to
/// the existing `str` of a [`GrowingStr`] instead.
struct PartsOfStr<'s, 'c, 'py>(&'s mut GrowingStr<'c, 'py>);

/// The part of the existing `str` to which the next characters are written.
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
        // SAFETY: of this kind, and with that capacity, by `new_str`; both references to it are
        // ours.
        unsafe { spare_chars(of, shape.kind, *from, shape.n_chars) }
    }
}

// SAFETY: as of the Vec, which only `spare` clears: all committed bytes were converted then.
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
        // SAFETY: the caller guarantees the requirements.
        unsafe { self.block.commit(n_bytes) };
    }

    fn cut(&mut self, len_bytes: usize) {
        self.block.truncate(len_bytes);
    }
}

/// Resizes a `str` to `n_chars` characters. If this fails, the error consists of the unchanged
/// `str` and the exception. The caller must own the only reference to the `str`.
fn resize(
    string: Bound<'_, PyAny>,
    n_chars: usize,
) -> Result<Bound<'_, PyAny>, (Bound<'_, PyAny>, PyErr)> {
    let py = string.py();
    let Ok(n) = isize::try_from(n_chars) else {
        return Err((string, PyMemoryError::new_err(())));
    };
    let mut at = string.into_ptr();
    // SAFETY: a compact `str` with one reference, ours, never hashed, of more than one character,
    // so it is not shared. If the call fails, the object is unchanged.
    unsafe {
        let failed = ffi::PyUnicode_Resize(&raw mut at, n) != 0;
        let string = Bound::from_owned_ptr(py, at);
        if failed {
            return Err((string, PyErr::fetch(py)));
        }
        Ok(string)
    }
}

/// Shortens a `str` to its first `n_chars` characters, which are those that were written.
fn cut(string: Bound<'_, PyAny>, shape: Shape, n_chars: usize) -> PyResult<Bound<'_, PyAny>> {
    if n_chars == shape.n_chars {
        return Ok(string);
    }
    resize(string, n_chars).map_err(|(_, e)| e)
}

/// Returns the memory for `n_chars` characters of a `str`, from character `from` on.
///
/// # Safety
/// `made` must be a compact `str` of this kind with at least `from + n_chars` characters, and there
/// must be no other reference to it.
unsafe fn spare_chars<'a>(
    made: &'a mut Bound<'_, PyAny>,
    kind: Kind,
    from: usize,
    n_chars: usize,
) -> StrData<'a> {
    // SAFETY: the caller guarantees the requirements; MaybeUninit requires nothing of its contents.
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

/// Returns the first `n_chars` characters of a `str`, as code units of the kind `kind`.
///
/// # Safety
/// `made` must be a compact `str` of this kind, of which at least `n_chars` characters have been
/// written.
unsafe fn written<'a>(made: &'a Bound<'_, PyAny>, kind: Kind, n_chars: usize) -> Units<'a> {
    // SAFETY: the caller guarantees the requirements.
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
