//! [`ByteSink`]: the destination of every conversion, to which bytes are appended.

use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// The error of a full sink: memory is exhausted, or the sink has a fixed size that is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SinkFull {
    /// The number of bytes for which space was requested, in addition to the bytes already written.
    pub requested_bytes: usize,
}

impl fmt::Display for SinkFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no space for {} more bytes", self.requested_bytes)
    }
}

impl std::error::Error for SinkFull {}

/// A position in the output of a sink, in bytes from the start of its current chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(usize);

/// A contiguous chunk to which bytes are appended. Each byte is written once, at its final address.
///
/// The bytes are in a `Vec`, in a Python `bytes` object, or in a [`Chunk`](crate::Chunk). A socket
/// is not a sink: it receives finished chunks.
///
/// # Safety
///
/// `spare(n)` must return at least `n` bytes, which directly follow `committed()` in the memory of
/// the sink. `commit(n)` must add the first `n` bytes of the last `spare` to `committed()`, without
/// moving or changing them.
pub unsafe trait ByteSink {
    /// Returns the bytes written to the current chunk so far.
    fn committed(&self) -> &[u8];

    /// Returns the bytes written so far as a mutable slice.
    fn committed_mut(&mut self) -> &mut [u8];

    /// Reserves space for at least `n_bytes` after the committed bytes. The committed bytes may be
    /// moved.
    ///
    /// # Errors
    /// Returns [`SinkFull`] if the sink cannot grow; the committed bytes are unchanged.
    fn spare(&mut self, n_bytes: usize) -> Result<&mut [MaybeUninit<u8>], SinkFull>;

    /// Commits the first `n_bytes` of the slice that the last call to `spare` returned.
    ///
    /// # Safety
    /// The caller must have initialised the first `n_bytes` of the slice that the last `spare`
    /// returned, and must not have called another method of the sink since.
    unsafe fn commit(&mut self, n_bytes: usize);

    /// Truncates the committed bytes to `len_bytes`; has no effect if fewer bytes are committed.
    fn cut(&mut self, len_bytes: usize);

    /// Reserves at least `n_bytes` and returns them as a [`Window`]. Bytes written to the window
    /// are committed when the window is dropped.
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
        // SAFETY: the first byte of the spare was written on the line above.
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
        // SAFETY: `spare` has at least `bytes.len()` bytes by its contract. It is borrowed mutably,
        // so it does not overlap `bytes`.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), spare.as_mut_ptr().cast(), bytes.len());
        }
        // SAFETY: that many bytes were written on the lines above.
        unsafe { self.commit(bytes.len()) };
        Ok(())
    }

    /// Returns the position after the committed bytes, for a later call to `patch` or `rewind`.
    #[inline]
    fn mark(&self) -> Mark {
        Mark(self.committed().len())
    }

    /// Returns the number of committed bytes after the position `mark`; 0 if they end before it.
    #[inline]
    fn len_since(&self, mark: Mark) -> usize {
        self.committed().len().saturating_sub(mark.0)
    }

    /// Overwrites committed bytes from `mark` on with `bytes`.
    ///
    /// # Panics
    /// Panics if `bytes` would extend past the committed end, which is a bug in the caller.
    #[inline]
    fn patch(&mut self, mark: Mark, bytes: &[u8]) {
        self.committed_mut()[mark.0..][..bytes.len()].copy_from_slice(bytes);
    }

    /// Removes all bytes that were written after the position `mark`.
    #[inline]
    fn rewind(&mut self, mark: Mark) {
        self.cut(mark.0);
    }
}

// SAFETY: a `Vec` has its spare capacity directly after its elements, and `set_len` after an
// initialisation only increases the length.
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
        // SAFETY: by this method's contract, the caller has initialised these bytes of the spare
        // capacity.
        unsafe { self.set_len(len) };
    }

    #[inline]
    fn cut(&mut self, len_bytes: usize) {
        Vec::truncate(self, len_bytes);
    }
}

/// Reserved space in a sink. Each write is checked against the end of the space. The written bytes
/// are committed when the window is dropped.
///
/// A window stores pointers instead of offsets, so that the compiler can keep them in registers.
#[derive(Debug)]
pub struct Window<'a, S: ByteSink> {
    sink: &'a mut S,
    start: *mut MaybeUninit<u8>,
    /// The address of the next byte, between `start` and `end`.
    at: *mut MaybeUninit<u8>,
    end: *mut MaybeUninit<u8>,
}

impl<S: ByteSink> Window<'_, S> {
    /// Returns the number of bytes that can still be written to this window (the space that was
    /// reserved in a sink).
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
        // SAFETY: `at` is before `end`, checked on the line above.
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
        // SAFETY: the bytes fit, as checked above, and only this window uses the spare memory.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at.cast::<u8>(), bytes.len());
            self.at = self.at.add(bytes.len());
        }
    }

    /// Writes the first `len_bytes` of `bytes` by one copy of the fixed size `N`. A copy of
    /// variable length would be a function call, which takes longer than a short copy.
    ///
    /// # Panics
    /// Panics if fewer than `N` bytes fit, or if `len_bytes` is above `N` (bugs in the caller).
    #[inline(always)]
    pub fn put_short<const N: usize>(&mut self, bytes: &[u8; N], len_bytes: usize) {
        assert!(N <= self.remaining() && len_bytes <= N, "window is full");
        // SAFETY: `N` bytes fit, as checked above. An unaligned write of an array has no other
        // requirement.
        unsafe {
            self.at.cast::<[u8; N]>().write_unaligned(*bytes);
            self.at = self.at.add(len_bytes);
        }
    }

    /// Returns the unused space. After writing to it, the caller must call [`Window::advance`].
    #[inline(always)]
    pub fn rest(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: from `at` to `end` it is spare memory; the window borrows the sink mutably.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.remaining()) }
    }

    /// Commits the first `n_bytes` of the space that [`Window::rest`] returned.
    ///
    /// # Safety
    /// The caller must have initialised the first `n_bytes` of this space.
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
        // SAFETY: all bytes of the space before `at` were written: by the `put` methods, or by the
        // caller of `advance`. The sink was borrowed for this whole time.
        unsafe { self.sink.commit(n_put) };
    }
}

/// A destination with a known amount of space: a [`Window`] or a [`Pen`].
pub trait Put {
    /// Returns the number of bytes for which the destination still has space.
    fn remaining(&self) -> usize;

    /// Writes one byte.
    ///
    /// # Panics
    /// Panics if the byte does not fit, which is a bug in the caller.
    fn put_byte(&mut self, byte: u8);

    /// Writes all of `bytes`.
    fn put(&mut self, bytes: &[u8]);

    /// Appends the first `len_bytes` bytes of `bytes`. All `N` bytes are copied, because a copy of
    /// a constant length is faster; so the free space must be at least `N` bytes.
    fn put_short<const N: usize>(&mut self, bytes: &[u8; N], len_bytes: usize);

    /// Stores `buffer` at the destination, calls `make` with a reference to it, and keeps the text
    /// that `make` returns. This text must be a part of the buffer; it is moved to the start of the
    /// destination. (A copy from a buffer elsewhere would wait for the stores to that buffer.)
    ///
    /// # Panics
    /// Panics if `buffer` does not fit. A `T` that requires alignment or drop does not compile.
    fn put_made<T>(&mut self, buffer: T, make: impl FnOnce(&mut T) -> &[u8]);
}

/// Implements [`Put::put_made`] at the address `at`. Returns the number of bytes written.
///
/// # Safety
/// `at` must be writable for a `T`.
#[inline(always)]
unsafe fn make_at<T>(at: *mut u8, buffer: T, make: impl FnOnce(&mut T) -> &[u8]) -> usize {
    const {
        assert!(align_of::<T>() == 1 && !std::mem::needs_drop::<T>());
    }
    // SAFETY: `at` is writable for a `T`, by this function's contract, and `T` needs no alignment.
    // Only this function refers to the written `T`. The text may overlap the destination.
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
        // SAFETY: it fits, checked on the line above, and the buffer was initialised.
        unsafe {
            let n = make_at(self.at.cast(), buffer, make);
            self.advance(n);
        }
    }
}

/// Unused memory to write to. A pen consists of two addresses and is passed by value, so that it
/// stays in registers. (Writing a value to a [`Window`] that is passed by reference takes 5 ns
/// more.) A pen has no reference to a sink. The caller computes the number of written bytes from
/// the address [`Pen::at`].
#[derive(Debug)]
pub struct Pen<'s> {
    at: *mut u8,
    end: *mut u8,
    memory: PhantomData<&'s mut [MaybeUninit<u8>]>,
}

impl<'s> Pen<'s> {
    /// Creates a pen, which writes to `memory` from its start on.
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

    /// Returns the address at which the next byte will be written.
    #[inline(always)]
    #[must_use]
    pub fn at(&self) -> *mut u8 {
        self.at
    }

    /// Sets the address at which the next byte will be written. A lower address than before removes
    /// bytes from the output. A higher address adds bytes that the caller has already written.
    ///
    /// # Safety
    /// `at` must be inside the destination, and the bytes before `at` must have been written.
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
        // SAFETY: `at` is before `end`, checked on the line above.
        unsafe {
            self.at.write(byte);
            self.at = self.at.add(1);
        }
    }

    #[inline(always)]
    fn put(&mut self, bytes: &[u8]) {
        assert!(bytes.len() <= self.remaining(), "not enough space");
        // SAFETY: the bytes fit, as checked above, and only this pen writes to the destination.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at, bytes.len());
            self.at = self.at.add(bytes.len());
        }
    }

    #[inline(always)]
    fn put_short<const N: usize>(&mut self, bytes: &[u8; N], len_bytes: usize) {
        assert!(N <= self.remaining() && len_bytes <= N, "not enough space");
        // SAFETY: `N` bytes fit, as checked above. An unaligned write of an array has no other
        // requirement.
        unsafe {
            self.at.cast::<[u8; N]>().write_unaligned(*bytes);
            self.at = self.at.add(len_bytes);
        }
    }

    #[inline(always)]
    fn put_made<T>(&mut self, buffer: T, make: impl FnOnce(&mut T) -> &[u8]) {
        assert!(size_of::<T>() <= self.remaining(), "not enough space");
        // SAFETY: it fits, checked on the line above, and the buffer was initialised.
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
