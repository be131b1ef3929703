//! [`Frame`] writes BSON values that begin with a length prefix. The length is known only when the
//! end of the value was written.

use onecopy_text::sink::Mark;
use onecopy_text::{ByteSink, SinkFull};

use crate::error::WriteError;

/// The largest length of a document in bytes. BSON stores the length as a signed 32-bit integer.
pub const MOST_BYTES: usize = i32::MAX as usize;

/// A document, text or binary value that is being written, identified by the position of its length
/// prefix.
///
/// These calls write one value:
///
/// - a document or an array: [`Frame::begin`], the elements, [`Frame::end_document`];
/// - a text: [`Frame::begin`], the text in UTF-8, [`Frame::end_text`];
/// - a binary value: [`Frame::begin_binary`], the bytes, [`Frame::end_binary`];
/// - code with a scope: [`Frame::begin`], the code as a text, the scope as a document,
///   [`Frame::end_whole`].
///
/// Frames can be nested. While a frame is open, the caller must neither truncate the sink before
/// the start of the frame nor begin another chunk, because the length prefix is written later.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Frame(Mark);

/// The number of bytes of a length prefix.
const LENGTH_BYTES: usize = 4;

impl Frame {
    /// Begins a value: reserves space for its length prefix, which is written when the frame is
    /// ended.
    ///
    /// # Errors
    /// Returns [`SinkFull`] if the sink has no space.
    #[inline]
    pub fn begin<S: ByteSink>(sink: &mut S) -> Result<Frame, SinkFull> {
        let mark = sink.mark();
        sink.put(&[0; LENGTH_BYTES])?;
        Ok(Frame(mark))
    }

    /// Creates a placeholder for a frame that starts at `mark`, the current end of the sink. Before
    /// the frame is ended, the placeholder must be replaced by the result of [`Frame::begin`].
    #[inline]
    pub(super) fn at(mark: Mark) -> Frame {
        Frame(mark)
    }

    /// Begins a binary value with the subtype `subtype`. For subtype 2, whose bytes begin with a
    /// second length, use [`super::write_binary`].
    ///
    /// # Errors
    /// Returns [`SinkFull`] if the sink has no space.
    #[inline]
    pub fn begin_binary<S: ByteSink>(subtype: u8, sink: &mut S) -> Result<Frame, SinkFull> {
        let mark = sink.mark();
        sink.put(&[0, 0, 0, 0, subtype])?;
        Ok(Frame(mark))
    }

    /// Returns the number of bytes written since the start of the frame, including the length
    /// prefix.
    #[inline]
    #[must_use]
    pub fn len_bytes<S: ByteSink>(self, sink: &S) -> usize {
        sink.len_since(self.0)
    }

    /// Ends a document or array: writes its terminator, and then its length prefix at the start.
    ///
    /// # Errors
    /// Returns [`WriteError::TooLong`] if the value is longer than [`MOST_BYTES`]. Returns
    /// [`WriteError::SinkFull`] if the sink has no space.
    #[inline]
    pub fn end_document<S: ByteSink>(self, sink: &mut S) -> Result<(), WriteError> {
        sink.put_byte(0)?;
        self.patch(0, sink)
    }

    /// Ends a text: writes its NUL, and then its length prefix at the start.
    ///
    /// # Errors
    /// Returns the same errors as [`Frame::end_document`].
    #[inline]
    pub fn end_text<S: ByteSink>(self, sink: &mut S) -> Result<(), WriteError> {
        sink.put_byte(0)?;
        self.patch(LENGTH_BYTES, sink)
    }

    /// Ends a binary value: writes its length prefix, which does not count the subtype byte.
    ///
    /// # Errors
    /// Returns the same errors as [`Frame::end_document`].
    #[inline]
    pub fn end_binary<S: ByteSink>(self, sink: &mut S) -> Result<(), WriteError> {
        self.patch(LENGTH_BYTES + 1, sink)
    }

    /// Ends the bytes of a binary value of subtype 2, and writes the length prefix of these bytes.
    /// This prefix does not count its own four bytes.
    ///
    /// # Errors
    /// Returns the same errors as [`Frame::end_document`].
    pub fn end_bytes<S: ByteSink>(self, sink: &mut S) -> Result<(), WriteError> {
        self.patch(LENGTH_BYTES, sink)
    }

    /// Removes all bytes that were written since the start of the frame, including the length
    /// prefix.
    #[inline]
    pub fn take_back<S: ByteSink>(self, sink: &mut S) {
        sink.rewind(self.0);
    }

    /// Ends a value of the type "code with scope". It has no terminator of its own, and its length
    /// prefix counts its own four bytes.
    ///
    /// # Errors
    /// Returns the same errors as [`Frame::end_document`].
    pub fn end_whole<S: ByteSink>(self, sink: &mut S) -> Result<(), WriteError> {
        self.patch(0, sink)
    }

    /// Writes the length prefix at the start of the frame. The length counts all bytes that were
    /// written since the start of the frame, except for the first `n_before` bytes.
    #[inline]
    fn patch<S: ByteSink>(self, n_before: usize, sink: &mut S) -> Result<(), WriteError> {
        let length = i32::try_from(self.len_bytes(sink) - n_before);
        let length = length.map_err(|_| WriteError::TooLong(MOST_BYTES))?;
        sink.patch(self.0, &length.to_le_bytes());
        Ok(())
    }
}
