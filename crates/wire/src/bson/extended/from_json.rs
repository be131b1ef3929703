//! [`from_json()`]: converts Extended JSON to BSON in one pass. Each parse event of the JSON reader
//! is written as BSON immediately.

use onecopy_text::convert::{Kernels, Work, with_kernels};
use onecopy_text::{ByteSink, Policy, Units};

use super::error::{FromJsonError, Reason};
use super::wrapper::StringWrapper;
use super::writer::{ContainerKind, DocumentWriter, ValueState};
use crate::bson::{self, Frame, MOST_BYTES, Tag};
use crate::json::read::{
    self, Escaped, EventResult, JsonEvents, Limits, Rejection, SourceForm, Text,
};

/// The treatment of integers that need more than 64 bits, which BSON integers cannot represent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BigInts {
    /// The integer is converted to the nearest double, as the Extended JSON specification requires.
    #[default]
    Float,
    /// An integer of more than 64 bits is an error.
    Error,
}

/// The options for reading Extended JSON.
#[derive(Clone, Copy, Debug)]
pub struct FromJson {
    /// The largest permitted nesting depth of arrays and objects.
    pub max_depth: usize,
    /// The largest size of a document in bytes, at most [`MOST_BYTES`].
    pub max_bytes: usize,
    /// The treatment of lone surrogates in strings and keys. It must be one of [`Policy::BASIC`].
    /// Any other policy has the effect of [`Policy::Strict`].
    pub surrogates: Policy,
    /// The treatment of integers that need more than 64 bits.
    pub big_ints: BigInts,
}

impl Default for FromJson {
    fn default() -> FromJson {
        FromJson {
            max_depth: Limits::default().max_depth,
            max_bytes: MOST_BYTES,
            surrogates: Policy::Strict,
            big_ints: BigInts::Float,
        }
    }
}

/// Converts one object of Extended JSON v2 and appends the document to the sink. The formats
/// canonical and relaxed are accepted, and also the legacy syntax of binary values and regular
/// expressions. The object begins at unit `start`, or after white space that begins there. Returns
/// the index of the unit after the object.
///
/// Each string is copied once, into the sink. A string that has escapes, or that is in a type
/// wrapper with several keys, is copied a second time.
///
/// # Errors
/// Returns a [`FromJsonError`]. The sink is then unchanged.
pub fn from_json<F: SourceForm, S: ByteSink>(
    text: &[F::Unit],
    start: usize,
    options: &FromJson,
    sink: &mut S,
) -> Result<usize, FromJsonError> {
    let begin = sink.mark();
    let done = with_kernels(FromJsonTask::<F, S> {
        text,
        start,
        options,
        sink,
    });
    if done.is_err() {
        sink.rewind(begin);
    }
    done
}

struct FromJsonTask<'a, F: SourceForm, S> {
    text: &'a [F::Unit],
    start: usize,
    options: &'a FromJson,
    sink: &'a mut S,
}

impl<F: SourceForm, S: ByteSink> Work for FromJsonTask<'_, F, S> {
    type Output = Result<usize, FromJsonError>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Self::Output {
        let mut writer = DocumentWriter::new(kernels, self.options, self.sink);
        let limits = Limits {
            max_depth: self.options.max_depth,
        };
        let done = read::read::<F, K, _>(kernels, self.text, self.start, limits, &mut writer);
        done.map_err(|e| FromJsonError {
            reason: writer.fault.unwrap_or(Reason::Json(e.reason)),
            at_units: e.at_units,
        })
    }
}

impl<K: Kernels, S: ByteSink> JsonEvents for DocumentWriter<'_, K, S> {
    #[inline(always)]
    fn null(&mut self) -> EventResult {
        self.begin_value(Tag::Null, 0)
    }

    #[inline(always)]
    fn boolean(&mut self, value: bool) -> EventResult {
        self.short(Tag::Bool, |w| bson::put_bool(value, w))
    }

    #[inline(always)]
    fn int(&mut self, value: i64) -> EventResult {
        match i32::try_from(value) {
            Ok(value) => self.short(Tag::Int32, |w| bson::put_i32(value, w)),
            Err(_) => self.short(Tag::Int64, |w| bson::put_i64(value, w)),
        }
    }

    fn big_int(&mut self, digits: &[u8]) -> EventResult {
        if self.options.big_ints == BigInts::Error {
            return Err(Rejection::here(read::Reason::BigInt));
        }
        let value = std::str::from_utf8(digits).ok();
        let value: f64 = value.and_then(|d| d.parse().ok()).unwrap_or(f64::INFINITY);
        self.float(value, Units::Utf8(digits))
    }

    #[inline(always)]
    fn float(&mut self, value: f64, _: Units<'_>) -> EventResult {
        if !value.is_finite() {
            return Err(Rejection::here(read::Reason::FloatRange));
        }
        self.short(Tag::Double, |w| bson::put_f64(value, w))
    }

    #[inline(always)]
    fn string(&mut self, text: Text<'_>) -> EventResult {
        if self.state != ValueState::Plain {
            return self.wrapped(text.units());
        }
        self.text_with(text.units().len_units(), |this| this.put_text(text))
    }

    #[inline(never)]
    fn escaped_string(&mut self, text: Escaped<'_>) -> EventResult {
        if self.state == ValueState::Plain {
            return self.text_with(0, |this| this.put_escaped(text));
        }
        // The unescaped text is written after the end of the document, where it is validated, and
        // then removed from the sink.
        let mark = self.sink.mark();
        self.put_escaped(text)?;
        let n_bytes = self.sink.len_since(mark);
        let written = self.sink.committed();
        let plain = written[written.len() - n_bytes..].to_vec();
        self.sink.rewind(mark);
        self.wrapped(Units::Utf8(&plain))
            .map_err(|e| Rejection { at_units: 0, ..e })
    }

    #[inline(always)]
    fn key(&mut self, text: Text<'_>) -> EventResult {
        self.key_with(text.units(), |this| this.put_text(text))
    }

    #[inline(never)]
    fn escaped_key(&mut self, text: Escaped<'_>) -> EventResult {
        let mark = self.sink.mark();
        self.put_escaped(text)?;
        let n_bytes = self.sink.len_since(mark);
        let written = self.sink.committed();
        let plain = written[written.len() - n_bytes..].to_vec();
        self.sink.rewind(mark);
        if plain.contains(&0) {
            return Err(self.no(Reason::Nul));
        }
        let plain = Units::Utf8(&plain);
        self.key_with(plain, |this| this.put_units(plain))
    }

    #[inline(always)]
    fn begin_array(&mut self) -> EventResult {
        self.open(Tag::Array, ContainerKind::Array)
    }

    #[inline(always)]
    fn end_array(&mut self) -> EventResult {
        let ended = self.level.frame.end_document(self.sink);
        ended.map_err(|e| self.no(e.into()))?;
        self.close()
    }

    #[inline(always)]
    fn begin_object(&mut self) -> EventResult {
        match self.state {
            ValueState::Plain => {}
            ValueState::Top => {
                let begun = Frame::begin(self.sink);
                self.level.frame = begun.map_err(|e| self.no(e.into()))?;
                self.state = ValueState::Plain;
                return Ok(());
            }
            ValueState::Want(StringWrapper::Date) => {
                // The key belongs to a wrapper with several parts, so the key is written as in a
                // plain document.
                self.state = ValueState::Plain;
                self.level.kind = ContainerKind::Candidate;
                self.level.strict = Some(StringWrapper::Date.name());
                self.tag = self.sink.mark();
                let written = self.sink.put(b"\0$date\0");
                self.check_sink(written)?;
            }
            _ => return Err(self.unfit()),
        }
        self.open(Tag::Document, ContainerKind::Fresh)
    }

    #[inline(always)]
    fn end_object(&mut self) -> EventResult {
        if let ValueState::Had(_) = self.state {
            self.state = ValueState::Plain;
            self.n_wrapped = self.n_wrapped.wrapping_add(1);
        } else if self.level.kind == ContainerKind::Candidate {
            self.end_candidate()?;
        } else {
            let ended = self.level.frame.end_document(self.sink);
            ended.map_err(|e| self.no(e.into()))?;
        }
        self.close()
    }
}
