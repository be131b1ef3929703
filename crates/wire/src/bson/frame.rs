//! What has its length in front.

use onecopy_text::sink::Mark;
use onecopy_text::{ByteSink, SinkFull};

use crate::error::WriteError;

/// The longest document: its length is a signed 32-bit integer.
pub const MOST_BYTES: usize = i32::MAX as usize;

/// A document, text or binary value that was begun: where its length goes.
///
/// Documents and arrays: [`Frame::begin`], elements, [`Frame::end_document`]. Text: [`Frame::begin`], UTF-8,
/// [`Frame::end_text`]. Binary: [`Frame::begin_binary`], bytes, [`Frame::end_binary`]. Code with a scope: [`Frame::begin`],
/// text, document, [`Frame::end_whole`]. Each may stand inside others; the sink must not be cut to before its beginning
/// meanwhile, nor change chunks.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Frame(Mark);

/// Bytes of a length.
const LENGTH_BYTES: usize = 4;

impl Frame {
    /// Leaves room for a length.
    ///
    /// # Errors
    /// [`SinkFull`].
    #[inline]
    pub fn begin<S: ByteSink>(sink: &mut S) -> Result<Frame, SinkFull> {
        let mark = sink.mark();
        sink.put(&[0; LENGTH_BYTES])?;
        Ok(Frame(mark))
    }

    /// What begins at `mark`, where nothing was written yet: [`Frame::begin`] is to follow.
    #[inline]
    pub(super) fn at(mark: Mark) -> Frame {
        Frame(mark)
    }

    /// A binary value of this subtype begins. (Of subtype 2 the bytes begin with their own length:
    /// [`super::write_binary`] writes it.)
    ///
    /// # Errors
    /// [`SinkFull`].
    #[inline]
    pub fn begin_binary<S: ByteSink>(subtype: u8, sink: &mut S) -> Result<Frame, SinkFull> {
        let mark = sink.mark();
        sink.put(&[0, 0, 0, 0, subtype])?;
        Ok(Frame(mark))
    }

    /// Bytes written since it began, its length among them.
    #[inline]
    #[must_use]
    pub fn len_bytes<S: ByteSink>(self, sink: &S) -> usize {
        sink.len_since(self.0)
    }

    /// Ends a document or array.
    ///
    /// # Errors
    /// [`WriteError::TooLong`] above [`MOST_BYTES`] (so for the others); [`WriteError::SinkFull`].
    #[inline]
    pub fn end_document<S: ByteSink>(self, sink: &mut S) -> Result<(), WriteError> {
        sink.put_byte(0)?;
        self.patch(0, sink)
    }

    /// Ends text.
    ///
    /// # Errors
    /// As [`Frame::end_document`].
    #[inline]
    pub fn end_text<S: ByteSink>(self, sink: &mut S) -> Result<(), WriteError> {
        sink.put_byte(0)?;
        self.patch(LENGTH_BYTES, sink)
    }

    /// Ends a binary value.
    ///
    /// # Errors
    /// As [`Frame::end_document`].
    #[inline]
    pub fn end_binary<S: ByteSink>(self, sink: &mut S) -> Result<(), WriteError> {
        self.patch(LENGTH_BYTES + 1, sink)
    }

    /// Ends bytes that their length does not count itself among: those in a binary value of subtype 2.
    ///
    /// # Errors
    /// As [`Frame::end_document`].
    pub fn end_bytes<S: ByteSink>(self, sink: &mut S) -> Result<(), WriteError> {
        self.patch(LENGTH_BYTES, sink)
    }

    /// Takes all back that was written since it began.
    #[inline]
    pub fn take_back<S: ByteSink>(self, sink: &mut S) {
        sink.rewind(self.0);
    }

    /// Ends what has no byte behind it and counts its length too: code with a scope.
    ///
    /// # Errors
    /// As [`Frame::end_document`].
    pub fn end_whole<S: ByteSink>(self, sink: &mut S) -> Result<(), WriteError> {
        self.patch(0, sink)
    }

    /// Puts the length, which does not count the first `n_before` bytes.
    #[inline]
    fn patch<S: ByteSink>(self, n_before: usize, sink: &mut S) -> Result<(), WriteError> {
        let length = i32::try_from(self.len_bytes(sink) - n_before);
        let length = length.map_err(|_| WriteError::TooLong(MOST_BYTES))?;
        sink.patch(self.0, &length.to_le_bytes());
        Ok(())
    }
}
