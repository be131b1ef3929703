//! [`HeadIndex`]: the positions of the parts of a complete, valid request head in its buffer.

use std::ops::Range;

use super::request::{BodyFraming, Connection, Method, RequestHead, TargetForm, Version};

/// The start and end positions of a field's name and value in the buffer. The positions have 32
/// bits, because a head is shorter than 4 GiB.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub(super) name: (u32, u32),
    pub(super) value: (u32, u32),
}

impl Field {
    pub(super) fn name<'a>(&self, buffer: &'a [u8]) -> &'a [u8] {
        &buffer[self.name.0 as usize..self.name.1 as usize]
    }

    pub(super) fn value<'a>(&self, buffer: &'a [u8]) -> &'a [u8] {
        &buffer[self.value.0 as usize..self.value.1 as usize]
    }
}

/// The positions of all parts of a valid request head. An index and its buffer together are a
/// [`RequestHead`]. The index does not borrow the buffer, so both can be moved to another thread.
#[derive(Clone, Debug)]
pub struct HeadIndex {
    pub(super) method: Range<usize>,
    pub(super) method_kind: Method,
    pub(super) target: Range<usize>,
    pub(super) target_path: usize,
    pub(super) form: TargetForm,
    pub(super) authority: Option<Range<usize>>,
    pub(super) version: Version,
    pub(super) fields: Vec<Field>,
    pub(super) framing: BodyFraming,
    pub(super) connection: Connection,
    pub(super) expects_continue: bool,
    pub(super) len_bytes: usize,
}

impl Default for HeadIndex {
    fn default() -> Self {
        HeadIndex {
            method: 0..0,
            method_kind: Method::Other,
            target: 0..0,
            target_path: 0,
            form: TargetForm::Origin,
            authority: None,
            version: Version::Http11,
            fields: Vec::new(),
            framing: BodyFraming::None,
            connection: Connection::KeepAlive,
            expects_continue: false,
            len_bytes: 0,
        }
    }
}

impl HeadIndex {
    /// Returns the head as a view of `buffer`, which must begin with the same bytes that were
    /// parsed.
    ///
    /// # Panics
    /// If `buffer` begins with other bytes, a later access to a part of the head may panic. This is
    /// a bug in the caller.
    #[must_use]
    pub fn view<'a>(&'a self, buffer: &'a [u8]) -> RequestHead<'a> {
        RequestHead::new(self, buffer)
    }
}
