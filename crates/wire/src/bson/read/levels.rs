//! Methods of [`Reader`] that enter and leave documents, arrays and the scopes of code.

use onecopy_text::convert::Kernels;

use super::array_index::Index;
use super::error::{ReadError, Reason};
use super::events::BsonEvents;
use super::lengths::{LEAST_BYTES, LENGTH_BYTES, length_at};
use super::reader::{ArrayKeys, Reader, Scope, error, located, refused};

impl<K: Kernels> Reader<'_, K> {
    /// Enters the document or array that starts at the next byte: validates its length prefix and
    /// its terminator.
    #[inline(always)]
    pub(super) fn enter<E: BsonEvents>(
        &mut self,
        is_array: bool,
        events: &mut E,
    ) -> Result<(), ReadError> {
        let at = self.at;
        self.check_depth()?;
        let length = u32::from_le_bytes(*self.fixed()?) as usize;
        let end = at + length;
        let inner = match self.body.get(at..end) {
            Some(inner) if length >= LEAST_BYTES => inner,
            other => return Err(no_document(at, length, other.is_some())),
        };
        if inner.last() != Some(&0) {
            return Err(error(Reason::NoTerminator, end - 1));
        }
        if length == LEAST_BYTES {
            self.at = end;
            return located(
                if is_array {
                    events.empty_array()
                } else {
                    events.empty_document()
                },
                at,
            );
        }
        if !is_array && events.takes_raw(inner, at).map_err(|e| refused(e, at))? {
            self.at = end;
            return Ok(());
        }
        located(
            if is_array {
                events.begin_array()
            } else {
                events.begin_document()
            },
            at,
        )?;
        self.push(at, end, is_array);
        Ok(())
    }

    #[inline(always)]
    fn check_depth(&self) -> Result<(), ReadError> {
        if self.outer.len() + 1 >= self.rules.max_depth {
            return Err(error(Reason::Depth, self.at));
        }
        Ok(())
    }

    /// Makes the document from position `at` to `end` the innermost open document. The reader must
    /// have read its length prefix.
    #[inline(always)]
    fn push(&mut self, at: usize, end: usize, is_array: bool) {
        self.outer.push(self.start << 1 | u32::from(self.is_array));
        // A document has less than 2^31 bytes.
        self.start = at as u32;
        self.is_array = is_array;
        self.body = &self.body[..end - 1];
        if is_array {
            self.index = Index::FIRST;
            self.index_of = self.start;
        }
    }

    /// Leaves the innermost open document. Returns `true` if it was the outermost document.
    #[inline(always)]
    pub(super) fn leave<E: BsonEvents>(&mut self, events: &mut E) -> Result<bool, ReadError> {
        let end = self.at;
        let mut key_end = (self.start as usize).wrapping_sub(1);
        if let Some(scope) = self.scopes.last()
            && scope.n_outer == self.outer.len()
        {
            key_end = scope.key_end;
            self.scopes.pop();
            located(events.end_code_with_scope(), end)?;
        } else if self.is_array {
            located(events.end_array(), end)?;
        } else {
            located(events.end_document(), end)?;
        }
        let Some(outer) = self.outer.pop() else {
            return Ok(true);
        };
        self.at = end + 1;
        self.start = outer >> 1;
        self.is_array = outer & 1 == 1;
        // The length was valid when the document was entered. If the buffer is writable, an event
        // handler or another thread may have changed it since.
        let start = self.start as usize;
        let length = length_at(self.bytes, start).unwrap_or(0) as usize;
        match self.bytes.get(..(start + length).wrapping_sub(1)) {
            Some(body) if body.len() >= self.at => self.body = body,
            _ => return Err(error(Reason::Changed, start)),
        }
        if self.is_array && self.index_of != self.start {
            // The expected key of this array is not known any more, because an array inside it has
            // used the field `index`.
            self.index = match self.rules.array_keys {
                ArrayKeys::Any => Index::UNKNOWN,
                ArrayKeys::Strict => Index::following(self.bytes, key_end),
            };
            self.index_of = self.start;
        }
        Ok(false)
    }

    #[inline(never)]
    pub(super) fn code_with_scope<E: BsonEvents>(
        &mut self,
        events: &mut E,
    ) -> Result<(), ReadError> {
        let (at, body) = (self.at, self.body);
        self.check_depth()?;
        let length = u32::from_le_bytes(*self.fixed()?) as usize;
        let end = at + length;
        let Some(whole) = body.get(..end) else {
            return Err(match i32::try_from(length) {
                Ok(_) => error(Reason::Length, at),
                Err(_) => error(Reason::ScopeLength, at),
            });
        };
        if end < self.at {
            return Err(error(Reason::ScopeLength, at));
        }
        self.body = whole;
        let code = self.text()?;
        let start = self.at;
        let length = length_at(whole, start).unwrap_or(0) as usize;
        if length < LEAST_BYTES || start + length != end {
            return Err(error(Reason::ScopeLength, start));
        }
        if whole.last() != Some(&0) {
            return Err(error(Reason::NoTerminator, end - 1));
        }
        located(
            events.begin_code_with_scope(code),
            at + LENGTH_BYTES + LENGTH_BYTES,
        )?;
        self.push(start, end, false);
        self.at = start + LENGTH_BYTES;
        self.scopes.push(Scope {
            n_outer: self.outer.len(),
            key_end: at - 1,
        });
        Ok(())
    }
}

/// Returns the error for a nested document whose length prefix `length` is invalid. `is_inside` is
/// `true` if a document of this length would end inside the enclosing document.
#[cold]
fn no_document(at: usize, length: usize, is_inside: bool) -> ReadError {
    match i32::try_from(length) {
        Ok(_) if !is_inside => error(Reason::Length, at),
        _ => error(Reason::DocumentLength, at),
    }
}
