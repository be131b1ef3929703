//! The chunk that bytes land in.

use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// A sink cannot take more: memory ran out, or its fixed size is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SinkFull {
    /// Bytes that were asked for past those committed.
    pub asked_bytes: usize,
}

impl fmt::Display for SinkFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no room for {} more bytes", self.asked_bytes)
    }
}

impl std::error::Error for SinkFull {}

/// A place in a sink to come back to: counted in bytes from the start of the current chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(usize);

/// The contiguous current chunk: bytes are written once, in their final place.
///
/// It ends in a `Vec`, a Python `bytes` or a finished chunk. A socket takes finished chunks and is never a sink.
///
/// # Safety
///
/// `spare(n)` returns at least `n` bytes that directly follow `committed()` in memory owned by the sink, and
/// `commit(n)` makes the first `n` of the last spare part of `committed()` without moving or changing them.
pub unsafe trait ByteSink {
    /// The bytes written so far.
    fn committed(&self) -> &[u8];

    /// The same bytes, to be changed in place.
    fn committed_mut(&mut self) -> &mut [u8];

    /// Room for at least `n_bytes` behind the committed bytes; may move them.
    ///
    /// # Errors
    /// [`SinkFull`] where the sink cannot grow so far; what is committed stays.
    fn spare(&mut self, n_bytes: usize) -> Result<&mut [MaybeUninit<u8>], SinkFull>;

    /// Commits `n_bytes` of the last `spare`.
    ///
    /// # Safety
    /// The caller has initialised the first `n_bytes` of the slice that the last `spare` returned, and nothing was
    /// called on the sink since.
    unsafe fn commit(&mut self, n_bytes: usize);

    /// Cuts the committed bytes to `len_bytes`; no effect where there are fewer.
    fn cut(&mut self, len_bytes: usize);

    /// A checked window of at least `n_bytes`: what is put into it is committed when it is dropped.
    ///
    /// # Errors
    /// As [`ByteSink::spare`].
    #[inline]
    fn window(&mut self, n_bytes: usize) -> Result<Window<'_, Self>, SinkFull>
    where
        Self: Sized,
    {
        let spare = self.spare(n_bytes)?.as_mut_ptr_range();
        Ok(Window {
            sink: self,
            start: spare.start,
            at: spare.start,
            end: spare.end,
        })
    }

    /// Appends one byte.
    ///
    /// # Errors
    /// As [`ByteSink::spare`].
    #[inline]
    fn put_byte(&mut self, byte: u8) -> Result<(), SinkFull> {
        self.spare(1)?[0].write(byte);
        // SAFETY: the first byte of the spare was written on the line above.
        unsafe { self.commit(1) };
        Ok(())
    }

    /// Appends `bytes`.
    ///
    /// # Errors
    /// As [`ByteSink::spare`].
    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), SinkFull> {
        let spare = self.spare(bytes.len())?;
        // SAFETY: spare has at least bytes.len() bytes (contract of `spare`), and it is borrowed mutably, so the
        // two do not overlap.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), spare.as_mut_ptr().cast(), bytes.len());
        }
        // SAFETY: that many bytes were written on the lines above.
        unsafe { self.commit(bytes.len()) };
        Ok(())
    }

    /// The current end, to come back to with [`ByteSink::patch`] or [`ByteSink::rewind`].
    #[inline]
    fn mark(&self) -> Mark {
        Mark(self.committed().len())
    }

    /// Bytes written since `mark`; none where they were taken back.
    #[inline]
    fn len_since(&self, mark: Mark) -> usize {
        self.committed().len().saturating_sub(mark.0)
    }

    /// Overwrites committed bytes from `mark` on.
    ///
    /// # Panics
    /// Where `bytes` would reach past the committed end: a bug of the caller.
    #[inline]
    fn patch(&mut self, mark: Mark, bytes: &[u8]) {
        self.committed_mut()[mark.0..][..bytes.len()].copy_from_slice(bytes);
    }

    /// Takes back all that was written since `mark`.
    #[inline]
    fn rewind(&mut self, mark: Mark) {
        self.cut(mark.0);
    }
}

// SAFETY: Vec keeps its spare capacity directly behind its elements; set_len after initialisation only extends it.
unsafe impl ByteSink for Vec<u8> {
    #[inline]
    fn committed(&self) -> &[u8] {
        self
    }

    #[inline]
    fn committed_mut(&mut self) -> &mut [u8] {
        self
    }

    #[inline]
    fn spare(&mut self, n_bytes: usize) -> Result<&mut [MaybeUninit<u8>], SinkFull> {
        if self.capacity() - self.len() < n_bytes {
            self.try_reserve(n_bytes).map_err(|_| SinkFull {
                asked_bytes: n_bytes,
            })?;
        }
        Ok(self.spare_capacity_mut())
    }

    #[inline]
    unsafe fn commit(&mut self, n_bytes: usize) {
        let len = self.len() + n_bytes;
        debug_assert!(len <= self.capacity());
        // SAFETY: the caller vouches that these bytes of the spare capacity are initialised.
        unsafe { self.set_len(len) };
    }

    #[inline]
    fn cut(&mut self, len_bytes: usize) {
        Vec::truncate(self, len_bytes);
    }
}

/// Room in a sink that was checked once: puts are bounded by it and committed when the window is dropped.
///
/// Two addresses are all that a loop of puts carries along, so that they can stay in registers.
#[derive(Debug)]
pub struct Window<'a, S: ByteSink> {
    sink: &'a mut S,
    start: *mut MaybeUninit<u8>,
    /// Where the next byte goes, from `start` to `end`.
    at: *mut MaybeUninit<u8>,
    end: *mut MaybeUninit<u8>,
}

impl<S: ByteSink> Window<'_, S> {
    /// Bytes that still fit.
    #[inline(always)]
    #[must_use]
    pub fn room(&self) -> usize {
        self.end as usize - self.at as usize
    }

    /// Puts one byte.
    ///
    /// # Panics
    /// Where the window is full: a bug of the caller.
    #[inline(always)]
    pub fn put_byte(&mut self, byte: u8) {
        assert!(self.at != self.end, "window is full");
        // SAFETY: `at` is before `end`, checked on the line above.
        unsafe {
            self.at.write(MaybeUninit::new(byte));
            self.at = self.at.add(1);
        }
    }

    /// Puts `bytes`.
    ///
    /// # Panics
    /// Where they do not fit: a bug of the caller.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.room(), "window is full");
        // SAFETY: they fit, checked on the line above; the window is the only user of the spare memory.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at.cast::<u8>(), bytes.len());
            self.at = self.at.add(bytes.len());
        }
    }

    /// Puts the first `len_bytes` of `bytes` by one copy of fixed size: for keys and numbers, where a copy of unknown
    /// length is a call that costs more than the bytes.
    ///
    /// # Panics
    /// Where the window has not `N` bytes left, or `len_bytes` is above `N`: a bug of the caller.
    #[inline(always)]
    pub fn put_short<const N: usize>(&mut self, bytes: &[u8; N], len_bytes: usize) {
        assert!(N <= self.room() && len_bytes <= N, "window is full");
        // SAFETY: N bytes fit, checked on the line above; an unaligned write of an array has no other duty.
        unsafe {
            self.at.cast::<[u8; N]>().write_unaligned(*bytes);
            self.at = self.at.add(len_bytes);
        }
    }

    /// The rest of the window, for a kernel to write into; follow it with [`Window::advance`].
    #[inline(always)]
    pub fn rest(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: from `at` to `end` it is spare memory; the window borrows the sink mutably.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.room()) }
    }

    /// Counts `n_bytes` of [`Window::rest`] as put.
    ///
    /// # Safety
    /// The first `n_bytes` of the rest were initialised.
    #[inline(always)]
    pub unsafe fn advance(&mut self, n_bytes: usize) {
        debug_assert!(n_bytes <= self.room());
        // SAFETY: not past the end, by the caller's word.
        self.at = unsafe { self.at.add(n_bytes) };
    }
}

impl<S: ByteSink> Drop for Window<'_, S> {
    #[inline]
    fn drop(&mut self) {
        let n_put = self.at as usize - self.start as usize;
        // SAFETY: the bytes of the spare up to `at` were written by put_byte, put, or by the kernel that vouched for
        // them in advance; the sink was borrowed all the while.
        unsafe { self.sink.commit(n_put) };
    }
}

/// What bytes are put into where there is room for them: a [`Window`], or a [`Pen`]. Writers of values that fit into a known
/// number of bytes are written over it once.
pub trait Put {
    /// Bytes that still fit.
    fn room(&self) -> usize;

    /// Puts one byte.
    ///
    /// # Panics
    /// Where there is no room: a bug of the caller (so for all below).
    fn put_byte(&mut self, byte: u8);

    /// Puts `bytes`.
    fn put(&mut self, bytes: &[u8]);

    /// Puts the first `len_bytes` of `bytes` by one copy of fixed size, for which there must be room.
    fn put_short<const N: usize>(&mut self, bytes: &[u8; N], len_bytes: usize);

    /// Puts what `make` makes of a buffer: the buffer stands in the place itself, and where its text starts with it nothing is
    /// copied. (Text that was written byte by byte and is then copied by one large load waits for its stores.)
    ///
    /// # Panics
    /// Also where `T` has to be aligned or dropped.
    fn put_made<T>(&mut self, buffer: T, make: impl FnOnce(&mut T) -> &[u8]);
}

/// [`Put::put_made`] at `at`; the bytes put.
///
/// # Safety
/// `at` is writable for a `T`.
#[inline(always)]
unsafe fn make_at<T>(at: *mut u8, buffer: T, make: impl FnOnce(&mut T) -> &[u8]) -> usize {
    const {
        assert!(align_of::<T>() == 1 && !std::mem::needs_drop::<T>());
    }
    // SAFETY: writable, by the caller's word, and a place for bytes needs no alignment; then it is a `T`, and nobody else's. The
    // text may overlap its start.
    unsafe {
        let place = at.cast::<T>();
        place.write(buffer);
        let text = make(&mut *place);
        let (from, n) = (text.as_ptr(), text.len());
        assert!(n <= size_of::<T>(), "the text is not of the buffer");
        if from != at.cast_const() {
            std::ptr::copy(from, at, n);
        }
        n
    }
}

impl<S: ByteSink> Put for Window<'_, S> {
    #[inline(always)]
    fn room(&self) -> usize {
        self.room()
    }

    #[inline(always)]
    fn put_byte(&mut self, byte: u8) {
        self.put_byte(byte);
    }

    #[inline(always)]
    fn put(&mut self, bytes: &[u8]) {
        self.put(bytes);
    }

    #[inline(always)]
    fn put_short<const N: usize>(&mut self, bytes: &[u8; N], len_bytes: usize) {
        self.put_short(bytes, len_bytes);
    }

    #[inline(always)]
    fn put_made<T>(&mut self, buffer: T, make: impl FnOnce(&mut T) -> &[u8]) {
        assert!(size_of::<T>() <= self.room(), "window is full");
        // SAFETY: there is room, checked on the line above, and what was made was written.
        unsafe {
            let n = make_at(self.at.cast(), buffer, make);
            self.advance(n);
        }
    }
}

/// A place held open over thousands of puts: two addresses and nothing else, handed on by value, so that they stay in
/// registers. (A [`Window`] that is passed by reference costs 5 ns a value.)
///
/// It knows of no sink: who opened it asks [`Pen::at`] how far it came.
#[derive(Debug)]
pub struct Pen<'s> {
    at: *mut u8,
    end: *mut u8,
    room: PhantomData<&'s mut [MaybeUninit<u8>]>,
}

impl<'s> Pen<'s> {
    /// Opens a place.
    #[inline(always)]
    #[must_use]
    pub fn new(room: &'s mut [MaybeUninit<u8>]) -> Pen<'s> {
        let range = room.as_mut_ptr_range();
        Pen {
            at: range.start.cast(),
            end: range.end.cast(),
            room: PhantomData,
        }
    }

    /// Where the next byte goes.
    #[inline(always)]
    #[must_use]
    pub fn at(&self) -> *mut u8 {
        self.at
    }

    /// Takes back what was put behind `at`, or goes on behind what was written up to there.
    ///
    /// # Safety
    /// `at` is inside the place, and what is before it was written.
    #[inline(always)]
    pub unsafe fn set_at(&mut self, at: *mut u8) {
        debug_assert!(at <= self.end);
        self.at = at;
    }
}

impl Put for Pen<'_> {
    #[inline(always)]
    fn room(&self) -> usize {
        self.end as usize - self.at as usize
    }

    #[inline(always)]
    fn put_byte(&mut self, byte: u8) {
        assert!(self.at != self.end, "no room");
        // SAFETY: `at` is before `end`, checked on the line above.
        unsafe {
            self.at.write(byte);
            self.at = self.at.add(1);
        }
    }

    #[inline(always)]
    fn put(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.room(), "no room");
        // SAFETY: they fit, checked on the line above; the pen is the only user of the place.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at, bytes.len());
            self.at = self.at.add(bytes.len());
        }
    }

    #[inline(always)]
    fn put_short<const N: usize>(&mut self, bytes: &[u8; N], len_bytes: usize) {
        assert!(N <= self.room() && len_bytes <= N, "no room");
        // SAFETY: N bytes fit, checked on the line above; an unaligned write of an array has no other duty.
        unsafe {
            self.at.cast::<[u8; N]>().write_unaligned(*bytes);
            self.at = self.at.add(len_bytes);
        }
    }

    #[inline(always)]
    fn put_made<T>(&mut self, buffer: T, make: impl FnOnce(&mut T) -> &[u8]) {
        assert!(size_of::<T>() <= self.room(), "no room");
        // SAFETY: there is room, checked on the line above, and what was made was written.
        unsafe {
            let n = make_at(self.at, buffer, make);
            self.at = self.at.add(n);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn window_commits_what_was_put() {
        let mut sink = vec![b'a'];
        let mut window = sink.window(3).expect("memory");
        window.put_byte(b'b');
        window.put(b"cd");
        drop(window);
        assert_eq!(sink, b"abcd");
    }

    #[test]
    fn put_short_keeps_only_the_bytes_asked_for() {
        let mut sink = vec![b'a'];
        let mut window = sink.window(16).expect("memory");
        window.put_short(b"bcdefgh\0", 2);
        window.put_byte(b'!');
        drop(window);
        assert_eq!(sink, b"abc!");
    }

    #[test]
    #[should_panic(expected = "window is full")]
    fn put_short_refuses_where_its_whole_copy_does_not_fit() {
        let mut sink: Vec<u8> = Vec::with_capacity(8);
        let mut window = sink.window(1).expect("memory");
        let room = window.room();
        window.put(&vec![0_u8; room - 1]);
        window.put_short(b"ab", 1);
    }

    #[test]
    fn patch_and_rewind_work_from_a_mark() {
        let mut sink: Vec<u8> = Vec::new();
        sink.put(b"xx").expect("memory");
        let mark = sink.mark();
        sink.put(b"0000tail").expect("memory");
        assert_eq!(sink.len_since(mark), 8);
        sink.patch(mark, b"0004");
        assert_eq!(sink, b"xx0004tail");
        sink.rewind(mark);
        assert_eq!(sink, b"xx");
        sink.cut(1);
        assert_eq!(sink.len_since(mark), 0);
    }

    #[test]
    #[should_panic(expected = "window is full")]
    fn window_refuses_more_than_it_holds() {
        let mut sink: Vec<u8> = Vec::with_capacity(8);
        let mut window = sink.window(1).expect("memory");
        let room = window.room();
        window.put(&vec![0_u8; room + 1]);
    }
}
