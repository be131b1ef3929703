//! A document that is written as its text is read: levels, keys, and what wrappers ask for.

use onecopy_text::convert::{self, Kernels};
use onecopy_text::sink::Mark;
use onecopy_text::{ByteSink, Policy, SinkFull, Units};

use super::error::Reason;
use super::from_json::FromJson;
use super::settle::{settle, wants};
use super::wrapper::{Key, One};
use crate::bson::{Frame, Tag, VALUE_BYTES};
use crate::json::read::{Escaped, Piece, Refusal, Surrogates, Text, malformed};
use crate::number;

pub(super) type Told = Result<(), Refusal>;

/// What may come next.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// The document, which is an object.
    Top,
    /// A key or a value.
    Plain,
    /// The string of a wrapper.
    Want(One),
    /// The end of that wrapper.
    Had(One),
}

/// An array or object that was begun.
#[derive(Clone, Copy)]
pub(super) struct Level {
    pub(super) frame: Frame,
    /// Where its tag stands.
    pub(super) tag: Mark,
    /// The key of a wrapper that it has, beside which nothing else may stand.
    pub(super) strict: Option<&'static str>,
    /// [`Writer::n_wrapped`] when it began.
    pub(super) n_wrapped: u32,
    /// The index of the next item.
    pub(super) next: u32,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Array,
    /// An object without a key so far.
    Fresh,
    /// Surely no wrapper.
    Document,
    /// Perhaps a wrapper of several parts.
    Candidate,
}

pub(super) struct Writer<'s, K, S> {
    pub(super) kernels: K,
    pub(super) sink: &'s mut S,
    pub(super) begin: Mark,
    pub(super) options: FromJson,
    pub(super) state: State,
    /// Where the tag of the element under way stands.
    pub(super) tag: Mark,
    pub(super) level: Level,
    /// The levels outside of that one.
    pub(super) outer: Vec<Level>,
    /// Values from wrappers of one string so far.
    pub(super) n_wrapped: u32,
    /// What is wrong, where [`Refusal::OWN`] was told.
    pub(super) fault: Option<Reason>,
    /// Texts with escapes, and elements of wrappers, while they are looked at.
    pub(super) place: Vec<u8>,
}

impl<'s, K: Kernels, S: ByteSink> Writer<'s, K, S> {
    pub(super) fn new(kernels: K, options: &FromJson, sink: &'s mut S) -> Self {
        let begin = sink.mark();
        Writer {
            kernels,
            sink,
            begin,
            options: *options,
            state: State::Top,
            tag: begin,
            level: Level {
                frame: Frame::at(begin),
                tag: begin,
                strict: None,
                n_wrapped: 0,
                next: 0,
                kind: Kind::Document,
            },
            outer: Vec::new(),
            n_wrapped: 0,
            fault: None,
            place: Vec::new(),
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn no(&mut self, reason: Reason) -> Refusal {
        self.fault = Some(reason);
        Refusal::OWN
    }

    /// A value is told where the state is not [`State::Plain`] and it is no string: why not.
    #[cold]
    #[inline(never)]
    pub(super) fn unfit(&mut self) -> Refusal {
        match self.state {
            State::Want(one) => self.no(one.wrong()),
            _ => self.no(Reason::NotADocument),
        }
    }

    #[inline(always)]
    pub(super) fn room(&mut self, full: Result<(), SinkFull>) -> Told {
        full.map_err(|e| self.no(e.into()))
    }

    /// The tag of a value, and in an array its key; `n_more` bytes at least are still to come.
    #[inline(always)]
    pub(super) fn begin_value(&mut self, tag: Tag, n_more: usize) -> Told {
        if self.state != State::Plain {
            return Err(self.unfit());
        }
        if self.level.kind == Kind::Array {
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
    pub(super) fn begin_item(&mut self, tag: Tag) -> Told {
        self.tag = self.sink.mark();
        let index = self.level.next;
        let written = self.sink.window(VALUE_BYTES).map(|mut window| {
            window.put_byte(tag.byte());
            number::put_u64(index.into(), &mut window);
            window.put_byte(0);
        });
        self.room(written)?;
        self.level.next += 1;
        Ok(())
    }

    /// A value that fits into a window.
    #[inline(always)]
    pub(super) fn short(
        &mut self,
        tag: Tag,
        put: impl FnOnce(&mut onecopy_text::Window<'_, S>),
    ) -> Told {
        self.begin_value(tag, 0)?;
        let written = self.sink.window(VALUE_BYTES).map(|mut w| put(&mut w));
        self.room(written)
    }

    /// Appends text as UTF-8.
    #[inline(always)]
    pub(super) fn put_text(&mut self, text: Text<'_>) -> Told {
        match text {
            Text::Ascii(text) => {
                let written = self.sink.put(text.bytes());
                self.room(written)
            }
            Text::Units(units) => self.put_units(units),
        }
    }

    pub(super) fn policy(&self, units: Units<'_>) -> Policy {
        match (units, self.options.surrogates) {
            // In UTF-8 they are malformed, as anything else is.
            (Units::Utf8(_), _) => Policy::Strict,
            (_, Surrogates::Replace) => Policy::Replace,
            _ => Policy::Strict,
        }
    }

    pub(super) fn put_units(&mut self, units: Units<'_>) -> Told {
        let policy = self.policy(units);
        match convert::to_utf8(units, policy, self.sink) {
            Ok(_) => Ok(()),
            Err(convert::ConvertError::SinkFull(e)) => self.room(Err(e)),
            Err(_) => Err(malformed(units, 0)),
        }
    }

    /// Appends text with its escapes replaced.
    pub(super) fn put_escaped(&mut self, text: Escaped<'_>) -> Told {
        let surrogates = match self.options.surrogates {
            Surrogates::Replace => Surrogates::Replace,
            _ => Surrogates::Error,
        };
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
                    Err(convert::ConvertError::SinkFull(e)) => return self.room(Err(e)),
                    Err(_) => return Err(malformed(body, 0)),
                }
            }
            return Ok(());
        }
        for piece in text.pieces(self.kernels, surrogates) {
            match piece? {
                Piece::Run(units, at) => self.put_units(units).map_err(|e| Refusal {
                    at_units: e.at_units + at,
                    ..e
                })?,
                Piece::Char(c) => {
                    let c = char::from_u32(c).unwrap_or(char::REPLACEMENT_CHARACTER);
                    let written = self.sink.put(c.encode_utf8(&mut [0; 4]).as_bytes());
                    self.room(written)?;
                }
            }
        }
        Ok(())
    }

    /// A string: its length, what `put` writes, and NUL.
    #[inline(always)]
    pub(super) fn text_with(&mut self, n_more: usize, put: impl FnOnce(&mut Self) -> Told) -> Told {
        self.begin_value(Tag::String, n_more)?;
        self.framed(put)
    }

    #[inline(always)]
    pub(super) fn framed(&mut self, put: impl FnOnce(&mut Self) -> Told) -> Told {
        let frame = Frame::begin(self.sink).map_err(|e| self.no(e.into()))?;
        put(self)?;
        frame.end_text(self.sink).map_err(|e| self.no(e.into()))
    }

    /// A string where it is the value of a wrapper. `units` is its text without escapes.
    #[inline(never)]
    pub(super) fn wrapped(&mut self, units: Units<'_>) -> Told {
        let State::Want(one) = self.state else {
            return Err(self.unfit());
        };
        self.level.frame.take_back(self.sink);
        self.sink.patch(self.level.tag, &[one.tag().byte()]);
        self.state = State::Had(one);
        if one == One::Symbol {
            return self.framed(|this| this.put_units(units));
        }
        let mut narrow = [0; NARROW_BYTES];
        let Some(text) = narrow_ascii(units, &mut narrow) else {
            // A decimal may have any number of zeros.
            let mut text = Vec::new();
            let done = convert::to_utf8(units, self.policy(units), &mut text);
            done.map_err(|_| malformed(units, 0))?;
            return one.write(&text, self.sink).map_err(|e| self.no(e));
        };
        one.write(text, self.sink).map_err(|e| self.no(e))
    }

    /// A key that begins with `$`. Whether it is written: the key of a wrapper of one string is not.
    #[inline(never)]
    pub(super) fn dollar_key(&mut self, key: Units<'_>) -> Result<bool, Refusal> {
        let mut narrow = [0; NARROW_BYTES];
        let found = narrow_ascii(key, &mut narrow).and_then(Key::of);
        let Some(found) = found else {
            if self.level.kind == Kind::Fresh {
                self.level.kind = Kind::Document;
            }
            return Ok(true);
        };
        match (self.level.kind, found) {
            (Kind::Fresh, Key::One(one)) => {
                self.state = State::Want(one);
                return Ok(false);
            }
            (Kind::Fresh, _) => {
                self.level.kind = Kind::Candidate;
                self.level.strict = found.strict_name();
            }
            (Kind::Candidate, _) => {
                self.level.strict = self.level.strict.or(found.strict_name());
            }
            // The outermost object is a document, whatever its keys.
            _ if self.outer.is_empty() => {}
            _ => {
                if let Some(name) = found.strict_name() {
                    return Err(self.no(Reason::Beside(name)));
                }
            }
        }
        Ok(true)
    }

    #[inline(always)]
    pub(super) fn key_with(
        &mut self,
        first: Units<'_>,
        put: impl FnOnce(&mut Self) -> Told,
    ) -> Told {
        if let State::Had(one) = self.state {
            return Err(self.no(Reason::Beside(one.name())));
        }
        if starts_with_dollar(first) {
            if !self.dollar_key(first)? {
                return Ok(());
            }
        } else if self.level.kind == Kind::Fresh {
            self.level.kind = Kind::Document;
        }
        self.tag = self.sink.mark();
        let written = self.sink.put_byte(0);
        self.room(written)?;
        put(self)?;
        let written = self.sink.put_byte(0);
        self.room(written)
    }

    pub(super) fn open(&mut self, tag: Tag, kind: Kind) -> Told {
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
    pub(super) fn close(&mut self) -> Told {
        match self.outer.pop() {
            Some(level) => {
                self.level = level;
                Ok(())
            }
            None => self.end(),
        }
    }

    /// The document is whole.
    pub(super) fn end(&mut self) -> Told {
        self.state = State::Top;
        let most = self.options.max_bytes;
        match self.sink.len_since(self.begin) > most {
            true => Err(self.no(Reason::TooLong(most))),
            false => Ok(()),
        }
    }

    /// An object ends that may be a wrapper of several parts.
    #[inline(never)]
    pub(super) fn end_candidate(&mut self) -> Told {
        let Level { frame, tag, .. } = self.level;
        let elements = self.sink.committed();
        let elements = &elements[elements.len() - frame.len_bytes(self.sink) + 4..];
        let mut place = std::mem::take(&mut self.place);
        place.clear();
        if place.try_reserve(elements.len()).is_err() {
            let asked_bytes = elements.len();
            return Err(self.no(SinkFull { asked_bytes }.into()));
        }
        place.extend_from_slice(elements);
        frame.take_back(self.sink);
        let n_wrapped = self.n_wrapped.wrapping_sub(self.level.n_wrapped);
        match settle(&place, n_wrapped, self.sink) {
            Ok(Some(found)) => self.sink.patch(tag, &[found.byte()]),
            Ok(None) => {
                if let Some(key) = self.level.strict {
                    let wants = wants(key);
                    return Err(self.no(Reason::Wrapper { key, wants }));
                }
                // A document after all.
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

/// Bytes of a text with escapes that are made at a time.
const PART_BYTES: usize = 512;

/// Bytes of the longest text of a wrapper that is looked at without an allocation.
const NARROW_BYTES: usize = 64;

/// Text as bytes where it is ASCII and short, or UTF-8.
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
