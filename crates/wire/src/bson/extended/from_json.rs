//! Extended JSON to BSON: what the reader of JSON tells is written as it comes.

use onecopy_text::convert::{Kernels, Work, with_kernels};
use onecopy_text::{ByteSink, Units};

use super::error::{FromJsonError, Reason};
use super::wrapper::One;
use super::writer::{Kind, State, Told, Writer};
use crate::bson::{self, Frame, MOST_BYTES, Tag};
use crate::json::read::{self, Escaped, Events, Form, Limits, Refusal, Surrogates, Text};

/// What becomes of integers of more than 64 bits, which BSON does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BigInts {
    /// The nearest double, as the specification has it.
    #[default]
    Double,
    /// They are refused.
    Error,
}

/// How Extended JSON is read.
#[derive(Clone, Copy, Debug)]
pub struct FromJson {
    /// How deep arrays and objects may stand in each other.
    pub max_depth: usize,
    /// The longest document, in bytes: at most [`MOST_BYTES`].
    pub max_bytes: usize,
    /// What becomes of lone surrogates: no text can pass with them, so [`Surrogates::Pass`] is as [`Surrogates::Error`].
    pub surrogates: Surrogates,
    /// What becomes of long integers.
    pub big_ints: BigInts,
}

impl Default for FromJson {
    fn default() -> FromJson {
        FromJson {
            max_depth: Limits::default().max_depth,
            max_bytes: MOST_BYTES,
            surrogates: Surrogates::Error,
            big_ints: BigInts::Double,
        }
    }
}

/// Appends the document of one object of Extended JSON v2 (canonical, relaxed, and the forms of old of binary and regular
/// expressions) that begins at unit `start`, or behind white space there; returns the unit behind it.
///
/// Copies: one, of each text into the sink; of one with escapes, and of the parts of a type wrapper, one more.
///
/// # Errors
/// [`FromJsonError`]; the sink is then as it was.
pub fn from_json<F: Form, S: ByteSink>(
    text: &[F::Unit],
    start: usize,
    options: &FromJson,
    sink: &mut S,
) -> Result<usize, FromJsonError> {
    let begin = sink.mark();
    let done = with_kernels(Run::<F, S> {
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

struct Run<'a, F: Form, S> {
    text: &'a [F::Unit],
    start: usize,
    options: &'a FromJson,
    sink: &'a mut S,
}

impl<F: Form, S: ByteSink> Work for Run<'_, F, S> {
    type Output = Result<usize, FromJsonError>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Self::Output {
        let mut writer = Writer::new(kernels, self.options, self.sink);
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

impl<K: Kernels, S: ByteSink> Events for Writer<'_, K, S> {
    #[inline(always)]
    fn null(&mut self) -> Told {
        self.begin_value(Tag::Null, 0)
    }

    #[inline(always)]
    fn boolean(&mut self, value: bool) -> Told {
        self.short(Tag::Bool, |w| bson::put_bool(value, w))
    }

    #[inline(always)]
    fn int(&mut self, value: i64) -> Told {
        match i32::try_from(value) {
            Ok(value) => self.short(Tag::Int32, |w| bson::put_i32(value, w)),
            Err(_) => self.short(Tag::Int64, |w| bson::put_i64(value, w)),
        }
    }

    fn big_int(&mut self, digits: &[u8]) -> Told {
        if self.options.big_ints == BigInts::Error {
            return Err(Refusal::here(read::Reason::BigInt));
        }
        let value = std::str::from_utf8(digits).ok();
        let value: f64 = value.and_then(|d| d.parse().ok()).unwrap_or(f64::INFINITY);
        self.float(value, Units::Utf8(digits))
    }

    #[inline(always)]
    fn float(&mut self, value: f64, _: Units<'_>) -> Told {
        if !value.is_finite() {
            return Err(Refusal::here(read::Reason::FloatRange));
        }
        self.short(Tag::Double, |w| bson::put_f64(value, w))
    }

    #[inline(always)]
    fn string(&mut self, text: Text<'_>) -> Told {
        if self.state != State::Plain {
            return self.wrapped(text.units());
        }
        self.text_with(text.units().len_units(), |this| this.put_text(text))
    }

    #[inline(never)]
    fn escaped_string(&mut self, text: Escaped<'_>) -> Told {
        if self.state == State::Plain {
            return self.text_with(0, |this| this.put_escaped(text));
        }
        // Written behind the end, to be looked at, and taken back.
        let mark = self.sink.mark();
        self.put_escaped(text)?;
        let n_bytes = self.sink.len_since(mark);
        let written = self.sink.committed();
        let plain = written[written.len() - n_bytes..].to_vec();
        self.sink.rewind(mark);
        self.wrapped(Units::Utf8(&plain))
            .map_err(|e| Refusal { at_units: 0, ..e })
    }

    #[inline(always)]
    fn key(&mut self, text: Text<'_>) -> Told {
        self.key_with(text.units(), |this| this.put_text(text))
    }

    #[inline(never)]
    fn escaped_key(&mut self, text: Escaped<'_>) -> Told {
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
    fn begin_array(&mut self) -> Told {
        self.open(Tag::Array, Kind::Array)
    }

    #[inline(always)]
    fn end_array(&mut self) -> Told {
        let ended = self.level.frame.end_document(self.sink);
        ended.map_err(|e| self.no(e.into()))?;
        self.close()
    }

    #[inline(always)]
    fn begin_object(&mut self) -> Told {
        match self.state {
            State::Plain => {}
            State::Top => {
                let begun = Frame::begin(self.sink);
                self.level.frame = begun.map_err(|e| self.no(e.into()))?;
                self.state = State::Plain;
                return Ok(());
            }
            State::Want(One::Date) => {
                // Of parts: its key is written after all.
                self.state = State::Plain;
                self.level.kind = Kind::Candidate;
                self.level.strict = Some(One::Date.name());
                self.tag = self.sink.mark();
                let written = self.sink.put(b"\0$date\0");
                self.room(written)?;
            }
            _ => return Err(self.unfit()),
        }
        self.open(Tag::Document, Kind::Fresh)
    }

    #[inline(always)]
    fn end_object(&mut self) -> Told {
        if let State::Had(_) = self.state {
            self.state = State::Plain;
            self.n_wrapped = self.n_wrapped.wrapping_add(1);
        } else if self.level.kind == Kind::Candidate {
            self.end_candidate()?;
        } else {
            let ended = self.level.frame.end_document(self.sink);
            ended.map_err(|e| self.no(e.into()))?;
        }
        self.close()
    }
}
