//! [`DocumentWriter`] writes a BSON document while its JSON text is read. Its state consists of the
//! open arrays and objects, the current key, and the current type wrapper.

use onecopy_text::convert::{self, Kernels};
use onecopy_text::sink::Mark;
use onecopy_text::{ByteSink, Policy, SinkFull, Units};

use super::error::Reason;
use super::from_json::FromJson;
use super::resolve_wrapper::{expected, resolve};
use super::wrapper::{StringWrapper, WrapperKey};
use crate::bson::{Frame, Tag, VALUE_BYTES};
use crate::json::read::{Escaped, EscapedPart, EventResult, Rejection, Text, malformed};
use crate::number;

/// The state of the writer, which determines the events that may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueState {
    /// No event was received yet. The first value must be an object, which becomes the document.
    Top,
    /// The writer is inside the document, but not inside a type wrapper whose only value is a
    /// string. Any event is accepted.
    Plain,
    /// The key of this type wrapper was read. The next value must be its string.
    Want(StringWrapper),
    /// A type wrapper's key and string were read, such as `"$oid"` and its value. The next event
    /// must be the end of the wrapper's object.
    Had(StringWrapper),
}

/// An array or object whose end was not read yet.
#[derive(Clone, Copy)]
pub(super) struct Level {
    pub(super) frame: Frame,
    /// The position in the sink of the tag byte of this array or object.
    pub(super) tag: Mark,
    /// `None` if this object may be a plain document. Otherwise the object has a key that only a
    /// type wrapper may have, such as `$binary`, and this is that key.
    pub(super) strict: Option<&'static str>,
    /// The value of [`DocumentWriter::n_wrapped`] at the start of this array or object.
    pub(super) n_wrapped: u32,
    /// The index of the next item of this array; unused for an object.
    pub(super) next: u32,
    pub(super) kind: ContainerKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ContainerKind {
    Array,
    /// An object whose first key has not been read yet.
    Fresh,
    /// An object whose first key is not the key of a type wrapper (such as `$oid`). It becomes an
    /// embedded document.
    Document,
    /// An object whose first key is the key of a type wrapper. The writer determines at the end of
    /// the object whether it is a valid wrapper.
    Candidate,
}

pub(super) struct DocumentWriter<'s, K, S> {
    pub(super) kernels: K,
    pub(super) sink: &'s mut S,
    pub(super) begin: Mark,
    pub(super) options: FromJson,
    pub(super) state: ValueState,
    /// The position in the sink of the tag byte of the current element.
    pub(super) tag: Mark,
    pub(super) level: Level,
    /// The open arrays and objects around the current one, from the outermost to the innermost. The
    /// current one is `level`.
    pub(super) outer: Vec<Level>,
    /// The number of type wrappers read so far whose only member has a string as its value, such as
    /// `$oid`.
    pub(super) n_wrapped: u32,
    /// The error to report, if an event handler method has returned [`Rejection::OWN`].
    pub(super) fault: Option<Reason>,
    /// A buffer that is reused. It contains either a text whose JSON escapes were replaced, or the
    /// elements of type wrappers.
    pub(super) place: Vec<u8>,
}

impl<'s, K: Kernels, S: ByteSink> DocumentWriter<'s, K, S> {
    pub(super) fn new(kernels: K, options: &FromJson, sink: &'s mut S) -> Self {
        let begin = sink.mark();
        DocumentWriter {
            kernels,
            sink,
            begin,
            options: *options,
            state: ValueState::Top,
            tag: begin,
            level: Level {
                frame: Frame::at(begin),
                tag: begin,
                strict: None,
                n_wrapped: 0,
                next: 0,
                kind: ContainerKind::Document,
            },
            outer: Vec::new(),
            n_wrapped: 0,
            fault: None,
            place: Vec::new(),
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn no(&mut self, reason: Reason) -> Rejection {
        self.fault = Some(reason);
        Rejection::OWN
    }

    /// Returns the error for an event that the current state does not permit. For example, a number
    /// is not permitted after `"$oid":`, and as the outermost value only an object is permitted.
    #[cold]
    #[inline(never)]
    pub(super) fn unfit(&mut self) -> Rejection {
        match self.state {
            ValueState::Want(one) => self.no(one.wrong()),
            _ => self.no(Reason::NotADocument),
        }
    }

    #[inline(always)]
    pub(super) fn check_sink(&mut self, full: Result<(), SinkFull>) -> EventResult {
        full.map_err(|e| self.no(e.into()))
    }

    /// Begins a value: writes its type tag and, for an item of an array, its key. `n_more` is the
    /// minimum number of bytes that the caller will write next. Returns an error if these bytes
    /// would make the document longer than the limit.
    #[inline(always)]
    pub(super) fn begin_value(&mut self, tag: Tag, n_more: usize) -> EventResult {
        if self.state != ValueState::Plain {
            return Err(self.unfit());
        }
        if self.level.kind == ContainerKind::Array {
            self.begin_item(tag)?;
        } else {
            self.sink.patch(self.tag, &[tag.byte()]);
        }
        let most = self.options.max_bytes;
        if self.sink.len_since(self.begin).saturating_add(n_more) >= most {
            return Err(self.no(Reason::TooLong(most)));
        }
        Ok(())
    }

    #[inline]
    pub(super) fn begin_item(&mut self, tag: Tag) -> EventResult {
        self.tag = self.sink.mark();
        let index = self.level.next;
        let written = self.sink.window(VALUE_BYTES).map(|mut window| {
            window.put_byte(tag.byte());
            number::put_u64(index.into(), &mut window);
            window.put_byte(0);
        });
        self.check_sink(written)?;
        self.level.next += 1;
        Ok(())
    }

    /// Writes the tag of a value of a fixed size, and then the value, which `put` appends.
    #[inline(always)]
    pub(super) fn short(
        &mut self,
        tag: Tag,
        put: impl FnOnce(&mut onecopy_text::Window<'_, S>),
    ) -> EventResult {
        self.begin_value(tag, 0)?;
        let written = self.sink.window(VALUE_BYTES).map(|mut w| put(&mut w));
        self.check_sink(written)
    }

    /// Appends the text of a string to the sink as UTF-8.
    #[inline(always)]
    pub(super) fn put_text(&mut self, text: Text<'_>) -> EventResult {
        match text {
            Text::Ascii(text) => {
                let written = self.sink.put(text.bytes());
                self.check_sink(written)
            }
            Text::Units(units) => self.put_units(units),
        }
    }

    /// Returns how lone surrogates are treated, from the options. Any policy except
    /// [`Policy::Replace`] counts as [`Policy::Strict`].
    fn surrogates(&self) -> Policy {
        match self.options.surrogates {
            Policy::Replace => Policy::Replace,
            _ => Policy::Strict,
        }
    }

    pub(super) fn policy(&self, units: Units<'_>) -> Policy {
        match units {
            // In UTF-8, an encoded surrogate is malformed like any other invalid sequence.
            Units::Utf8(_) => Policy::Strict,
            _ => self.surrogates(),
        }
    }

    pub(super) fn put_units(&mut self, units: Units<'_>) -> EventResult {
        let policy = self.policy(units);
        match convert::to_utf8(units, policy, self.sink) {
            Ok(_) => Ok(()),
            Err(convert::ConvertError::SinkFull(e)) => self.check_sink(Err(e)),
            Err(_) => Err(malformed(units, 0)),
        }
    }

    /// Appends the text of a string or key as UTF-8, with its escapes replaced by the characters
    /// they represent.
    pub(super) fn put_escaped(&mut self, text: Escaped<'_>) -> EventResult {
        let surrogates = self.surrogates();
        let body = text.body();
        if matches!(body, Units::Utf8(_)) {
            let (mut from, mut part) = (0, [0; PART_BYTES]);
            while from < body.len_units() {
                let made = text.unescape(self.kernels, from, surrogates, &mut part)?;
                match convert::to_utf8(
                    Units::Utf8(&part[..made.n_written]),
                    Policy::Strict,
                    self.sink,
                ) {
                    Ok(_) => from += made.n_read,
                    Err(convert::ConvertError::SinkFull(e)) => return self.check_sink(Err(e)),
                    Err(_) => return Err(malformed(body, 0)),
                }
            }
            return Ok(());
        }
        for piece in text.pieces(self.kernels, surrogates) {
            match piece? {
                EscapedPart::Run(units, at) => self.put_units(units).map_err(|e| Rejection {
                    at_units: e.at_units + at,
                    ..e
                })?,
                EscapedPart::Char(c) => {
                    let c = char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER);
                    let written = self.sink.put(c.encode_utf8(&mut [0; 4]).as_bytes());
                    self.check_sink(written)?;
                }
            }
        }
        Ok(())
    }

    /// Writes a string: its type tag, its length, the bytes that `put` appends, and a NUL. `n_more`
    /// is the minimum number of bytes that `put` appends.
    #[inline(always)]
    pub(super) fn text_with(
        &mut self,
        n_more: usize,
        put: impl FnOnce(&mut Self) -> EventResult,
    ) -> EventResult {
        self.begin_value(Tag::String, n_more)?;
        self.framed(put)
    }

    #[inline(always)]
    pub(super) fn framed(&mut self, put: impl FnOnce(&mut Self) -> EventResult) -> EventResult {
        let frame = Frame::begin(self.sink).map_err(|e| self.no(e.into()))?;
        put(self)?;
        frame.end_text(self.sink).map_err(|e| self.no(e.into()))
    }

    /// Replaces the object of a type wrapper, such as `{"$oid": "…"}`, by the BSON value that it
    /// represents. `units` is the string in the wrapper; it contains no escapes.
    #[inline(never)]
    pub(super) fn wrapped(&mut self, units: Units<'_>) -> EventResult {
        let ValueState::Want(one) = self.state else {
            return Err(self.unfit());
        };
        self.level.frame.take_back(self.sink);
        self.sink.patch(self.level.tag, &[one.tag().byte()]);
        self.state = ValueState::Had(one);
        if one == StringWrapper::Symbol {
            return self.framed(|this| this.put_units(units));
        }
        let mut narrow = [0; NARROW_BYTES];
        let Some(text) = narrow_ascii(units, &mut narrow) else {
            // A decimal may have any number of zeros, so the length of its text is not limited.
            let mut text = Vec::new();
            let done = convert::to_utf8(units, self.policy(units), &mut text);
            done.map_err(|_| malformed(units, 0))?;
            return one.write(&text, self.sink).map_err(|e| self.no(e));
        };
        one.write(text, self.sink).map_err(|e| self.no(e))
    }

    /// Processes a key that begins with `$`. Returns `true` if the caller must write the key.
    /// Returns `false` if the key belongs to a type wrapper whose only value is a string: such a
    /// key is not written to the document.
    #[inline(never)]
    pub(super) fn dollar_key(&mut self, key: Units<'_>) -> Result<bool, Rejection> {
        let mut narrow = [0; NARROW_BYTES];
        let found = narrow_ascii(key, &mut narrow).and_then(WrapperKey::of);
        let Some(found) = found else {
            if self.level.kind == ContainerKind::Fresh {
                self.level.kind = ContainerKind::Document;
            }
            return Ok(true);
        };
        match (self.level.kind, found) {
            (ContainerKind::Fresh, WrapperKey::One(one)) => {
                self.state = ValueState::Want(one);
                return Ok(false);
            }
            (ContainerKind::Fresh, _) => {
                self.level.kind = ContainerKind::Candidate;
                self.level.strict = found.strict_name();
            }
            (ContainerKind::Candidate, _) => {
                self.level.strict = self.level.strict.or(found.strict_name());
            }
            // The outermost object is always a document, whatever its keys are.
            _ if self.outer.is_empty() => {}
            _ => {
                if let Some(name) = found.strict_name() {
                    return Err(self.no(Reason::ExtraKey(name)));
                }
            }
        }
        Ok(true)
    }

    #[inline(always)]
    pub(super) fn key_with(
        &mut self,
        first: Units<'_>,
        put: impl FnOnce(&mut Self) -> EventResult,
    ) -> EventResult {
        if let ValueState::Had(one) = self.state {
            return Err(self.no(Reason::ExtraKey(one.name())));
        }
        if starts_with_dollar(first) {
            if !self.dollar_key(first)? {
                return Ok(());
            }
        } else if self.level.kind == ContainerKind::Fresh {
            self.level.kind = ContainerKind::Document;
        }
        self.tag = self.sink.mark();
        let written = self.sink.put_byte(0);
        self.check_sink(written)?;
        put(self)?;
        let written = self.sink.put_byte(0);
        self.check_sink(written)
    }

    pub(super) fn open(&mut self, tag: Tag, kind: ContainerKind) -> EventResult {
        self.begin_value(tag, 4)?;
        let tag = self.tag;
        let frame = Frame::begin(self.sink).map_err(|e| self.no(e.into()))?;
        self.outer.push(self.level);
        self.level = Level {
            frame,
            tag,
            strict: None,
            n_wrapped: self.n_wrapped,
            next: 0,
            kind,
        };
        Ok(())
    }

    #[inline(always)]
    pub(super) fn close(&mut self) -> EventResult {
        match self.outer.pop() {
            Some(level) => {
                self.level = level;
                Ok(())
            }
            None => self.end(),
        }
    }

    /// Ends the outermost document and checks its length.
    pub(super) fn end(&mut self) -> EventResult {
        self.state = ValueState::Top;
        let most = self.options.max_bytes;
        match self.sink.len_since(self.begin) > most {
            true => Err(self.no(Reason::TooLong(most))),
            false => Ok(()),
        }
    }

    /// Ends an object that has the key of a type wrapper. If the object is a valid type wrapper,
    /// replaces its elements by the value that the wrapper represents. Otherwise the object remains
    /// a document, or is rejected if its key is permitted only in a type wrapper.
    #[inline(never)]
    pub(super) fn end_candidate(&mut self) -> EventResult {
        let Level { frame, tag, .. } = self.level;
        let elements = self.sink.committed();
        let elements = &elements[elements.len() - frame.len_bytes(self.sink) + 4..];
        let mut place = std::mem::take(&mut self.place);
        place.clear();
        if place.try_reserve(elements.len()).is_err() {
            let requested_bytes = elements.len();
            return Err(self.no(SinkFull { requested_bytes }.into()));
        }
        place.extend_from_slice(elements);
        frame.take_back(self.sink);
        let n_wrapped = self.n_wrapped.wrapping_sub(self.level.n_wrapped);
        match resolve(&place, n_wrapped, self.sink) {
            Ok(Some(found)) => self.sink.patch(tag, &[found.byte()]),
            Ok(None) => {
                if let Some(key) = self.level.strict {
                    let expected = expected(key);
                    return Err(self.no(Reason::Wrapper { key, expected }));
                }
                // The object is a document and not a type wrapper, so its elements are written
                // again.
                frame.take_back(self.sink);
                let again = Frame::begin(self.sink).and_then(|frame| {
                    self.sink.put(&place)?;
                    Ok(frame)
                });
                let ended = match again {
                    Ok(frame) => frame.end_document(self.sink),
                    Err(e) => Err(e.into()),
                };
                ended.map_err(|e| self.no(e.into()))?;
            }
            Err(reason) => return Err(self.no(reason)),
        }
        self.place = place;
        Ok(())
    }
}

/// The size in bytes of a buffer. A text with escapes is processed in parts, and the buffer
/// receives one part without escapes.
const PART_BYTES: usize = 512;

/// The size in bytes of a stack buffer. Short texts of type wrappers are copied to it. A text with
/// more code units than this is copied to an allocated buffer instead.
const NARROW_BYTES: usize = 64;

/// Returns `units` as bytes. Text in UTF-8 is returned unchanged, whatever its length. Text in
/// another encoding is copied to `place`; if it has a character that is not ASCII, or does not fit
/// into `place`, the result is `None`.
fn narrow_ascii<'a>(units: Units<'a>, place: &'a mut [u8; NARROW_BYTES]) -> Option<&'a [u8]> {
    let n = units.len_units();
    if let Units::Utf8(text) = units {
        return Some(text);
    }
    let place = place.get_mut(..n)?;
    for (i, byte) in place.iter_mut().enumerate() {
        let unit = match units {
            Units::Utf8(u) | Units::Latin1(u) => u32::from(u[i]),
            Units::Ucs2(u) | Units::Utf16(u) => u32::from(u[i]),
            Units::Utf32(u) => u[i],
        };
        *byte = u8::try_from(unit).ok().filter(u8::is_ascii)?;
    }
    Some(place)
}

#[inline(always)]
fn starts_with_dollar(units: Units<'_>) -> bool {
    match units {
        Units::Utf8(u) | Units::Latin1(u) => u.first() == Some(&b'$'),
        Units::Ucs2(u) | Units::Utf16(u) => u.first() == Some(&0x24),
        Units::Utf32(u) => u.first() == Some(&0x24),
    }
}
