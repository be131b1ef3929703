//! Documents, arrays and scopes inside of each other: gone into, and left again.

use onecopy_text::convert::Kernels;

use super::error::{ReadError, Reason};
use super::events::BsonEvents;
use super::index::Index;
use super::lengths::{LEAST_BYTES, LENGTH_BYTES, length_at};
use super::reader::{ArrayKeys, Reader, Scope, error, refused, told};

impl<K: Kernels> Reader<'_, K> {
    /// Goes into the document or array at the next byte.
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
            return told(
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
        told(
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

    /// Makes the document from `at` to `end` the innermost one; its length was read.
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

    /// Goes behind the innermost document; whether that was the outermost.
    #[inline(always)]
    pub(super) fn leave<E: BsonEvents>(&mut self, events: &mut E) -> Result<bool, ReadError> {
        let end = self.at;
        let mut key_end = (self.start as usize).wrapping_sub(1);
        if let Some(scope) = self.scopes.last()
            && scope.n_outer == self.outer.len()
        {
            key_end = scope.key_end;
            self.scopes.pop();
            told(events.end_code_with_scope(), end)?;
        } else if self.is_array {
            told(events.end_array(), end)?;
        } else {
            told(events.end_document(), end)?;
        }
        let Some(outer) = self.outer.pop() else {
            return Ok(true);
        };
        self.at = end + 1;
        self.start = outer >> 1;
        self.is_array = outer & 1 == 1;
        // Its length was good when it was entered. Where the buffer can be written to, and what is told runs code of others,
        // it may be another one by now.
        let start = self.start as usize;
        let length = length_at(self.bytes, start).unwrap_or(0) as usize;
        match self.bytes.get(..(start + length).wrapping_sub(1)) {
            Some(body) if body.len() >= self.at => self.body = body,
            _ => return Err(error(Reason::Changed, start)),
        }
        if self.is_array && self.index_of != self.start {
            // An array inside of this one had keys of its own.
            self.index = match self.rules.array_keys {
                ArrayKeys::Any => Index::UNKNOWN,
                ArrayKeys::Strict => Index::behind(self.bytes, key_end),
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
        told(
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

/// What is wrong with the length of a document inside of another.
#[cold]
fn no_document(at: usize, length: usize, is_inside: bool) -> ReadError {
    match i32::try_from(length) {
        Ok(_) if !is_inside => error(Reason::Length, at),
        _ => error(Reason::DocumentLength, at),
    }
}
