//! [`ByteSink`]: the destination of every conversion.

use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// The error of a full sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SinkFull {
    /// The number of additional bytes for which space was requested.
    pub requested_bytes: usize,
}

impl fmt::Display for SinkFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no space for {} more bytes", self.requested_bytes)
    }
}

impl std::error::Error for SinkFull {}

/// A position in the current chunk of a sink, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(usize);

/// A contiguous chunk to which bytes are appended, such as a `Vec` or a [`Chunk`](crate::Chunk).
/// Each byte is written once, at its final address.
///
/// # Safety
///
/// `spare(n)` must return at least `n` bytes directly after `committed()` in the same memory.
/// `commit(n)` must add the first `n` bytes of the last `spare` to `committed()`, without a move or
/// a change.
pub unsafe trait ByteSink {
    /// Returns the written bytes of the current chunk.
    fn committed(&self) -> &[u8];

    /// Returns the written bytes as a mutable slice.
    fn committed_mut(&mut self) -> &mut [u8];

    /// Reserves at least `n_bytes` after the committed bytes. This may move the committed bytes.
    ///
    /// # Errors
    /// Returns [`SinkFull`] if the sink cannot grow. The committed bytes are unchanged.
    fn spare(&mut self, n_bytes: usize) -> Result<&mut [MaybeUninit<u8>], SinkFull>;

    /// Commits the first `n_bytes` of the slice from the last `spare`.
    ///
    /// # Safety
    /// The caller must have initialised these bytes, and must not have called another method since.
    unsafe fn commit(&mut self, n_bytes: usize);

    /// Truncates the committed bytes to `len_bytes`, if there are more.
    fn cut(&mut self, len_bytes: usize);

    /// Reserves at least `n_bytes` as a [`Window`]. Dropping the window commits its written bytes.
    ///
    /// # Errors
    /// Returns the error of [`ByteSink::spare`].
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
    /// Returns the error of [`ByteSink::spare`].
    #[inline]
    fn put_byte(&mut self, byte: u8) -> Result<(), SinkFull> {
        self.spare(1)?[0].write(byte);
        // SAFETY: the first byte was written on the line above.
        unsafe { self.commit(1) };
        Ok(())
    }

    /// Appends all of `bytes`.
    ///
    /// # Errors
    /// Returns the error of [`ByteSink::spare`].
    #[inline]
    fn put(&mut self, bytes: &[u8]) -> Result<(), SinkFull> {
        let spare = self.spare(bytes.len())?;
        // SAFETY: `spare` has at least `bytes.len()` bytes. It is borrowed mutably, so it does not
        // overlap `bytes`.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), spare.as_mut_ptr().cast(), bytes.len());
        }
        // SAFETY: these bytes were written above.
        unsafe { self.commit(bytes.len()) };
        Ok(())
    }

    /// Returns the position after the committed bytes, for `patch` or `rewind`.
    #[inline]
    fn mark(&self) -> Mark {
        Mark(self.committed().len())
    }

    /// Returns the number of committed bytes after `mark`, or 0.
    #[inline]
    fn len_since(&self, mark: Mark) -> usize {
        self.committed().len().saturating_sub(mark.0)
    }

    /// Overwrites committed bytes from `mark` on.
    ///
    /// # Panics
    /// Panics if `bytes` would extend past the committed bytes, which is a bug in the caller.
    #[inline]
    fn patch(&mut self, mark: Mark, bytes: &[u8]) {
        self.committed_mut()[mark.0..][..bytes.len()].copy_from_slice(bytes);
    }

    /// Removes all bytes after `mark`.
    #[inline]
    fn rewind(&mut self, mark: Mark) {
        self.cut(mark.0);
    }
}

// SAFETY: the spare capacity of a `Vec` directly follows its elements, and `set_len` here only
// increases the length.
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
                requested_bytes: n_bytes,
            })?;
        }
        Ok(self.spare_capacity_mut())
    }

    #[inline]
    unsafe fn commit(&mut self, n_bytes: usize) {
        let len = self.len() + n_bytes;
        debug_assert!(len <= self.capacity());
        // SAFETY: the caller has initialised these bytes (contract of this method).
        unsafe { self.set_len(len) };
    }

    #[inline]
    fn cut(&mut self, len_bytes: usize) {
        Vec::truncate(self, len_bytes);
    }
}

/// Reserved space in a sink, with a check of each write. Dropping the window commits the written
/// bytes.
#[derive(Debug)]
pub struct Window<'a, S: ByteSink> {
    sink: &'a mut S,
    start: *mut MaybeUninit<u8>,
    /// The address of the next byte.
    at: *mut MaybeUninit<u8>,
    end: *mut MaybeUninit<u8>,
}

impl<S: ByteSink> Window<'_, S> {
    /// Returns the number of remaining bytes.
    #[inline(always)]
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.end as usize - self.at as usize
    }

    /// Writes one byte.
    ///
    /// # Panics
    /// Panics if the window is full, which is a bug in the caller.
    #[inline(always)]
    pub fn put_byte(&mut self, byte: u8) {
        assert!(self.at != self.end, "window is full");
        // SAFETY: `at` is before `end`, as checked above.
        unsafe {
            self.at.write(MaybeUninit::new(byte));
            self.at = self.at.add(1);
        }
    }

    /// Writes all of `bytes`.
    ///
    /// # Panics
    /// Panics if `bytes` do not fit, which is a bug in the caller.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.remaining(), "window is full");
        // SAFETY: the bytes fit, as checked above. Only this window uses the memory.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at.cast::<u8>(), bytes.len());
            self.at = self.at.add(bytes.len());
        }
    }

    /// Writes the first `len_bytes` of `bytes` by a copy of the fixed size `N`. Such a copy needs
    /// no function call.
    ///
    /// # Panics
    /// Panics if fewer than `N` bytes fit, or if `len_bytes` is above `N` (bugs in the caller).
    #[inline(always)]
    pub fn put_short<const N: usize>(&mut self, bytes: &[u8; N], len_bytes: usize) {
        assert!(N <= self.remaining() && len_bytes <= N, "window is full");
        // SAFETY: `N` bytes fit, as checked above, and the write may be unaligned.
        unsafe {
            self.at.cast::<[u8; N]>().write_unaligned(*bytes);
            self.at = self.at.add(len_bytes);
        }
    }

    /// Returns the unused space. Call [`Window::advance`] after a write to it.
    #[inline(always)]
    pub fn rest(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: the memory from `at` to `end` is spare. The window borrows the sink mutably.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.remaining()) }
    }

    /// Commits the first `n_bytes` of [`Window::rest`].
    ///
    /// # Safety
    /// The caller must have initialised these bytes.
    #[inline(always)]
    pub unsafe fn advance(&mut self, n_bytes: usize) {
        debug_assert!(n_bytes <= self.remaining());
        // SAFETY: not past the end, by this method's contract.
        self.at = unsafe { self.at.add(n_bytes) };
    }
}

impl<S: ByteSink> Drop for Window<'_, S> {
    #[inline]
    fn drop(&mut self) {
        let n_put = self.at as usize - self.start as usize;
        // SAFETY: the `put` methods or the caller of `advance` have written all bytes before `at`.
        // The sink was borrowed since.
        unsafe { self.sink.commit(n_put) };
    }
}

/// A destination with limited space: a [`Window`] or a [`Pen`].
pub trait Put {
    /// Returns the number of remaining bytes.
    fn remaining(&self) -> usize;

    /// Writes one byte.
    ///
    /// # Panics
    /// Panics if the byte does not fit, which is a bug in the caller.
    fn put_byte(&mut self, byte: u8);

    /// Writes all of `bytes`.
    fn put(&mut self, bytes: &[u8]);

    /// Appends the first `len_bytes` of `bytes`. All `N` bytes are copied, so `N` bytes must fit.
    fn put_short<const N: usize>(&mut self, bytes: &[u8; N], len_bytes: usize);

    /// Stores `buffer` at the destination and calls `make` with it. `make` returns a part of the
    /// buffer, which is moved to the start of the destination.
    ///
    /// # Panics
    /// Panics if `buffer` does not fit. A `T` with alignment or drop does not compile.
    fn put_made<T>(&mut self, buffer: T, make: impl FnOnce(&mut T) -> &[u8]);
}

/// Implements [`Put::put_made`] at the address `at`. Returns the number of written bytes.
///
/// # Safety
/// `at` must be writable for a `T`.
#[inline(always)]
unsafe fn make_at<T>(at: *mut u8, buffer: T, make: impl FnOnce(&mut T) -> &[u8]) -> usize {
    const {
        assert!(align_of::<T>() == 1 && !std::mem::needs_drop::<T>());
    }
    // SAFETY: `at` is writable for a `T`, which needs no alignment. Only this function refers to
    // the written `T`. The text may overlap the destination.
    unsafe {
        let target = at.cast::<T>();
        target.write(buffer);
        let text = make(&mut *target);
        let (from, n) = (text.as_ptr(), text.len());
        assert!(n <= size_of::<T>(), "the text is not in the buffer");
        if from != at.cast_const() {
            std::ptr::copy(from, at, n);
        }
        n
    }
}

impl<S: ByteSink> Put for Window<'_, S> {
    #[inline(always)]
    fn remaining(&self) -> usize {
        self.remaining()
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
        assert!(size_of::<T>() <= self.remaining(), "window is full");
        // SAFETY: the buffer fits, as checked above, and it was initialised.
        unsafe {
            let n = make_at(self.at.cast(), buffer, make);
            self.advance(n);
        }
    }
}

/// Unused memory for writes, as two addresses. A pen is passed by value, so it stays in registers.
/// The caller commits the bytes before [`Pen::at`].
#[derive(Debug)]
pub struct Pen<'s> {
    at: *mut u8,
    end: *mut u8,
    memory: PhantomData<&'s mut [MaybeUninit<u8>]>,
}

impl<'s> Pen<'s> {
    /// Creates a pen at the start of `memory`.
    #[inline(always)]
    #[must_use]
    pub fn new(memory: &'s mut [MaybeUninit<u8>]) -> Pen<'s> {
        let range = memory.as_mut_ptr_range();
        Pen {
            at: range.start.cast(),
            end: range.end.cast(),
            memory: PhantomData,
        }
    }

    /// Returns the address of the next byte.
    #[inline(always)]
    #[must_use]
    pub fn at(&self) -> *mut u8 {
        self.at
    }

    /// Sets the address of the next byte. A lower address removes bytes. A higher address adds
    /// bytes that the caller has written.
    ///
    /// # Safety
    /// `at` must be inside the destination. The bytes before `at` must have been written.
    #[inline(always)]
    pub unsafe fn set_at(&mut self, at: *mut u8) {
        debug_assert!(at <= self.end);
        self.at = at;
    }
}

impl Put for Pen<'_> {
    #[inline(always)]
    fn remaining(&self) -> usize {
        self.end as usize - self.at as usize
    }

    #[inline(always)]
    fn put_byte(&mut self, byte: u8) {
        assert!(self.at != self.end, "not enough space");
        // SAFETY: `at` is before `end`, as checked above.
        unsafe {
            self.at.write(byte);
            self.at = self.at.add(1);
        }
    }

    #[inline(always)]
    fn put(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.remaining(), "not enough space");
        // SAFETY: the bytes fit, as checked above. Only this pen writes to the memory.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at, bytes.len());
            self.at = self.at.add(bytes.len());
        }
    }

    #[inline(always)]
    fn put_short<const N: usize>(&mut self, bytes: &[u8; N], len_bytes: usize) {
        assert!(N <= self.remaining() && len_bytes <= N, "not enough space");
        // SAFETY: `N` bytes fit, as checked above, and the write may be unaligned.
        unsafe {
            self.at.cast::<[u8; N]>().write_unaligned(*bytes);
            self.at = self.at.add(len_bytes);
        }
    }

    #[inline(always)]
    fn put_made<T>(&mut self, buffer: T, make: impl FnOnce(&mut T) -> &[u8]) {
        assert!(size_of::<T>() <= self.remaining(), "not enough space");
        // SAFETY: the buffer fits, as checked above, and it was initialised.
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
    fn put_short_keeps_only_the_given_number_of_bytes() {
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
        let capacity = window.remaining();
        window.put(&vec![0_u8; capacity - 1]);
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
        let capacity = window.remaining();
        window.put(&vec![0_u8; capacity + 1]);
    }
}
