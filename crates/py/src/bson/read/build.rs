//! Objects of what the reader tells.

use onecopy_text::convert::{Ascii, Kernels};
use onecopy_text::{Tally, Units, is_utf8};
use onecopy_wire::bson::read::{BsonEvents, Reason, Refusal, Told, malformed};
use onecopy_wire::bson::{SUBTYPE_GENERIC, SUBTYPE_UUID};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyTzInfo};

use super::document::Parent;
use super::options::{Dates, Document, Given, Types};
use super::rare::{self, Classes};
use crate::raw::codecs;
use crate::raw::fresh::Blanks;
use crate::raw::objects::building::Building;
use crate::raw::objects::fresh_number::Numbers;
use crate::raw::objects::{scalars, values};
use crate::raw::text::MakeError;
use crate::raw::{self, temporal, uuid};

/// Keys that are remembered have at most as many bytes.
const MOST_KEY_BYTES: usize = 64;

/// Subtype of a UUID, as old drivers had it, each with its own order of the bytes.
const SUBTYPE_OLD_UUID: u8 = 3;

/// The first and the last millisecond of Python's dates.
const FIRST_MS: i64 = -62_135_596_800_000;
const LAST_MS: i64 = 253_402_300_799_999;

/// Documents under construction.
pub(super) struct Build<'a, 'py, K> {
    kernels: K,
    building: Building<'py>,
    blanks: Blanks<'py>,
    numbers: Numbers<'py>,
    options: &'a Given<'py>,
    /// Whether documents are dicts and nothing else.
    is_plain: bool,
    /// Where documents inside of others lie that stay as they are.
    raw: Option<Parent<'a>>,
    /// Levels around the outermost document.
    n_around: usize,
    /// Looked up when the first is wanted.
    classes: Option<&'static Classes>,
    tally: Option<&'a mut Tally>,
    /// The code of the scopes that are open.
    codes: Vec<Bound<'py, PyAny>>,
    /// Why the last event was refused, where Python says so.
    pub(super) error: Option<PyErr>,
}

impl<'a, 'py, K: Kernels> Build<'a, 'py, K> {
    #[inline(always)]
    pub(super) fn new(
        py: Python<'py>,
        kernels: K,
        options: &'a Given<'py>,
        tally: Option<&'a mut Tally>,
    ) -> Self {
        Build {
            kernels,
            building: Building::new(py, options.is_alone()),
            blanks: Blanks::new(py),
            numbers: Numbers::new(py),
            options,
            is_plain: options.is_alone() && options.types == Types::Onecopy,
            raw: None,
            n_around: 0,
            classes: None,
            tally,
            codes: Vec::new(),
            error: None,
        }
    }

    /// Begins the list that all documents go into.
    pub(super) fn begin_all(&mut self) {
        self.building.begin(false);
        self.n_around = 1;
    }

    /// Ends it.
    pub(super) fn end_all(&mut self) -> PyResult<()> {
        let all = self.building.end_list()?;
        self.building.push(all)
    }

    /// Leaves the documents inside of others as they are.
    pub(super) fn keep_raw(&mut self, parent: Parent<'a>) {
        self.raw = Some(parent);
    }

    /// The value, once all was told.
    #[inline(always)]
    pub(super) fn finish(self) -> Bound<'py, PyAny> {
        self.building.finish()
    }

    #[cold]
    #[inline(never)]
    fn fail(&mut self, error: PyErr) -> Refusal {
        self.error = Some(error);
        Refusal::OWN
    }

    #[inline(always)]
    fn push(&mut self, value: PyResult<Bound<'py, PyAny>>) -> Told {
        match value {
            Ok(value) => {
                let pushed = self.building.push(value);
                pushed.map_err(|e| self.fail(e))
            }
            Err(e) => Err(self.fail(e)),
        }
    }

    /// Adds what was made by code of others, or may hold other objects.
    #[inline(never)]
    fn push_other(&mut self, value: PyResult<Bound<'py, PyAny>>) -> Told {
        self.building.has_container();
        self.push(value)
    }

    /// A `str` of any text.
    #[inline(always)]
    fn text(&mut self, bytes: &[u8]) -> Result<Bound<'py, PyAny>, Refusal> {
        if let Some(ascii) = Ascii::of_cell(self.kernels, bytes) {
            return self.ascii(ascii);
        }
        self.other_text(bytes)
    }

    #[inline(always)]
    fn ascii(&mut self, text: Ascii<'_>) -> Result<Bound<'py, PyAny>, Refusal> {
        let tally = self.tally.as_deref_mut();
        let made = scalars::ascii(self.blanks, self.kernels, text, tally);
        made.map_err(|e| self.fail(e))
    }

    /// A `str` of a text that is long, or not ASCII.
    #[inline(always)]
    fn other_text(&mut self, bytes: &[u8]) -> Result<Bound<'py, PyAny>, Refusal> {
        if self.tally.is_none()
            && let Some(made) = scalars::short_utf8(self.blanks, self.kernels, bytes)
        {
            return Ok(made);
        }
        self.any_text(bytes)
    }

    /// A `str` of any text, by the way of long ones.
    #[inline(never)]
    fn any_text(&mut self, bytes: &[u8]) -> Result<Bound<'py, PyAny>, Refusal> {
        let tally = self.tally.as_deref_mut();
        let made = scalars::other_text(self.blanks.py(), Units::Utf8(bytes), tally);
        made.or_else(|e| self.malformed_text(bytes, e))
    }

    /// A text that is malformed: refused, or what a handler makes of it.
    #[cold]
    #[inline(never)]
    fn malformed_text(
        &mut self,
        bytes: &[u8],
        error: MakeError,
    ) -> Result<Bound<'py, PyAny>, Refusal> {
        if let MakeError::Python(e) = error {
            return Err(self.fail(e));
        }
        let Some(handler) = &self.options.on_invalid_utf8 else {
            return Err(malformed(bytes));
        };
        let py = self.building.py();
        if let Some(tally) = self.tally.as_deref_mut() {
            tally.converted(bytes.len());
        }
        let made = self
            .building
            .with_foreign(|| codecs::decode(py, bytes, c"utf-8", Some(handler.as_borrowed())));
        made.map_err(|e| self.fail(e))
    }

    /// Makes a key and keeps it in its place.
    #[cold]
    #[inline(never)]
    fn new_key(&mut self, at: u16, hash: u32, bytes: &[u8]) -> Result<(), Refusal> {
        let key = self.any_text(bytes)?;
        let kept = self.building.keep_key(at, hash, bytes, &key);
        kept.map_err(|e| self.fail(e))
    }

    /// A key that is not remembered.
    #[inline(never)]
    fn other_key(&mut self, key: &[u8]) -> Told {
        let made = self.text(key)?;
        let pushed = self.building.push_key(made);
        pushed.map_err(|e| self.fail(e))
    }

    /// The classes of values that Python has no type for.
    #[inline]
    fn classes(&mut self) -> Result<&'static Classes, Refusal> {
        if let Some(classes) = self.classes {
            return Ok(classes);
        }
        let py = self.building.py();
        let found = self
            .building
            .with_foreign(|| rare::classes(py, self.options.types));
        let found = found.map_err(|e| self.fail(e))?;
        self.classes = Some(found);
        Ok(found)
    }

    /// A value that Python has no type for, made by code of its class.
    #[inline(never)]
    fn push_rare(
        &mut self,
        make: impl FnOnce(&'static Classes, Python<'py>) -> PyResult<Bound<'py, PyAny>>,
    ) -> Told {
        let classes = self.classes()?;
        let py = self.building.py();
        let made = self.building.with_foreign(|| make(classes, py));
        self.push_other(made)
    }

    /// A document that is more than a `dict`: of another class, or what pymongo makes of it.
    #[cold]
    #[inline(never)]
    fn other_document(
        &mut self,
        dict: Bound<'py, PyAny>,
        is_value: bool,
    ) -> Result<Bound<'py, PyAny>, Refusal> {
        let dict: Bound<'py, PyDict> = dict.cast_into().expect("a dict was made");
        if is_value && self.options.types == Types::Pymongo && self.building.depth() > self.n_around
        {
            let classes = self.classes()?;
            let made = self.building.with_foreign(|| classes.db_ref(&dict));
            if let Some(made) = made.map_err(|e| self.fail(e))? {
                return Ok(made);
            }
        }
        let Document::Class(class) = &self.options.document else {
            return Ok(dict.into_any());
        };
        let made = self.building.with_foreign(|| {
            let made = class.call0()?;
            for (key, value) in &dict {
                made.set_item(key, value)?;
            }
            Ok(made)
        });
        made.map_err(|e| self.fail(e))
    }

    #[inline(always)]
    fn push_document(&mut self, dict: PyResult<Bound<'py, PyAny>>) -> Told {
        if self.is_plain {
            return self.push(dict);
        }
        let dict = dict.map_err(|e| self.fail(e))?;
        let made = self.other_document(dict, true)?;
        self.push_other(Ok(made))
    }

    /// The zone of datetimes.
    #[inline(always)]
    fn zone(&mut self) -> Result<Option<&'py Bound<'py, PyTzInfo>>, Refusal> {
        if !self.options.tz_aware {
            return Ok(None);
        }
        let py = self.building.py();
        Ok(Some(self.classes()?.utc(py)))
    }

    /// A datetime that is not to be, or cannot be, a `datetime`.
    #[cold]
    #[inline(never)]
    fn other_datetime(&mut self, milliseconds: i64) -> Told {
        match self.options.dates {
            Dates::Error => Err(Refusal::here(Reason::DateRange)),
            Dates::Clamp => self.datetime(milliseconds.clamp(FIRST_MS, LAST_MS)),
            Dates::Raw | Dates::Auto => {
                self.push_rare(|classes, py| classes.datetime_ms(py, milliseconds))
            }
        }
    }

    /// Binary of a subtype that is not plain.
    #[inline(never)]
    fn other_binary(&mut self, subtype: u8, bytes: &[u8]) -> Told {
        let py = self.building.py();
        if matches!(subtype, SUBTYPE_UUID | SUBTYPE_OLD_UUID) {
            let Ok(order) = bytes.try_into() else {
                return Err(Refusal::here(Reason::Uuid));
            };
            if let Some(order) = rare::uuid_order(self.options.uuids, subtype, order) {
                let made = uuid::make(py, order);
                return self.push_other(made);
            }
        }
        let made = binary(py, bytes).map_err(|e| self.fail(e))?;
        self.push_rare(|classes, _| classes.binary(made, subtype))
    }
}

/// `bytes` of their own. Copies: one.
#[inline(always)]
fn binary<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    raw::binary::make(py, bytes)
}

impl<'py, K: Kernels> BsonEvents for Build<'_, 'py, K> {
    #[inline(always)]
    fn key(&mut self, key: &[u8]) -> Told {
        if key.len() <= MOST_KEY_BYTES {
            let (kernels, hash) = (self.kernels, values::hash(key));
            let is_it = |known: &[u8]| known.len() == key.len() && kernels.starts_with(key, known);
            let at = match self.building.find_key(hash, is_it) {
                Ok(at) => at,
                // What a handler makes of a malformed key is not for a call that has none.
                Err(_) if self.options.on_invalid_utf8.is_some() && !is_utf8(key) => {
                    return self.other_key(key);
                }
                Err(at) => {
                    self.new_key(at, hash, key)?;
                    at
                }
            };
            return self.building.push_kept_key(at).map_err(|e| self.fail(e));
        }
        self.other_key(key)
    }

    #[inline(always)]
    fn guess(&self) -> Option<&[u8]> {
        self.building.guess(true)
    }

    #[inline(always)]
    fn likely_key(&mut self) -> Told {
        let pushed = self.building.push_likely_key();
        pushed.map_err(|e| self.fail(e))
    }

    #[inline(always)]
    fn begin_document(&mut self) -> Told {
        self.building.begin(true);
        Ok(())
    }

    #[inline(always)]
    fn end_document(&mut self) -> Told {
        let made = self.building.end_dict().map(|(dict, _)| dict);
        self.push_document(made)
    }

    #[inline(always)]
    fn empty_document(&mut self) -> Told {
        let made = self.building.empty_dict();
        self.push_document(made)
    }

    #[inline(always)]
    fn takes_raw(&mut self, document: &[u8], at: usize) -> Result<bool, Refusal> {
        let Some(parent) = self.raw else {
            return Ok(false);
        };
        let made = parent.inner(self.building.py(), at, document.len());
        self.push_other(made)?;
        Ok(true)
    }

    #[inline(always)]
    fn begin_array(&mut self) -> Told {
        self.building.begin(false);
        Ok(())
    }

    #[inline(always)]
    fn end_array(&mut self) -> Told {
        let made = self.building.end_list();
        self.push(made)
    }

    #[inline(always)]
    fn empty_array(&mut self) -> Told {
        let made = self.building.empty_list();
        self.push(made)
    }

    #[inline(always)]
    fn string(&mut self, text: &[u8]) -> Told {
        let Some(ascii) = Ascii::of_cell(self.kernels, text) else {
            let made = self.other_text(text)?;
            return self.push(Ok(made));
        };
        let mut hash = None;
        if self.building.is_looking(text.len()) {
            let kernels = self.kernels;
            let is_it =
                |known: &[u8]| known.len() == text.len() && kernels.starts_with(text, known);
            if let Some(found) = self.building.find_last(is_it) {
                return self.push(Ok(found));
            }
            let looked_for = values::hash(text);
            if let Some(found) = self.building.find(looked_for, is_it) {
                return self.push(Ok(found));
            }
            hash = Some(looked_for);
        }
        let made = self.ascii(ascii)?;
        if let Some(hash) = hash {
            self.building.remember(hash, &made);
        }
        self.push(Ok(made))
    }

    #[inline(always)]
    fn double(&mut self, value: f64) -> Told {
        let made = self.numbers.float(value);
        self.push(made)
    }

    #[inline(always)]
    fn int32(&mut self, value: i32) -> Told {
        let made = self.numbers.int(value.into());
        self.push(made)
    }

    #[inline(always)]
    fn int64(&mut self, value: i64) -> Told {
        if i32::try_from(value).is_err() && self.options.types == Types::Onecopy {
            let made = self.numbers.int(value);
            return self.push(made);
        }
        let classes = self.classes()?;
        let made = classes.int64(self.building.py(), value);
        self.push(made)
    }

    #[inline(always)]
    fn boolean(&mut self, value: bool) -> Told {
        let value = PyBool::new(self.building.py(), value).to_owned().into_any();
        self.push(Ok(value))
    }

    #[inline(always)]
    fn null(&mut self) -> Told {
        let none = self.building.py().None().into_bound(self.building.py());
        self.push(Ok(none))
    }

    #[inline(always)]
    fn datetime(&mut self, milliseconds: i64) -> Told {
        if self.options.dates != Dates::Raw {
            let zone = self.zone()?;
            let py = self.building.py();
            if let Some(made) = temporal::of_unix_ms(py, milliseconds, zone) {
                return self.push(made);
            }
        }
        self.other_datetime(milliseconds)
    }

    #[inline(always)]
    fn object_id(&mut self, id: &[u8; 12]) -> Told {
        let classes = self.classes()?;
        let made = classes.object_id(self.building.py(), id);
        self.push(made)
    }

    #[inline(always)]
    fn binary(&mut self, subtype: u8, bytes: &[u8]) -> Told {
        if subtype != SUBTYPE_GENERIC {
            return self.other_binary(subtype, bytes);
        }
        let made = binary(self.building.py(), bytes);
        self.push(made)
    }

    #[inline(never)]
    fn decimal128(&mut self, bytes: &[u8; 16]) -> Told {
        let as_decimal = self.options.as_decimal;
        self.push_rare(|classes, py| {
            let made = classes.decimal128(py, bytes)?;
            if as_decimal {
                return made.call_method0(intern!(py, "to_decimal"));
            }
            Ok(made)
        })
    }

    #[inline(never)]
    fn timestamp(&mut self, seconds: u32, increment: u32) -> Told {
        self.push_rare(|classes, py| classes.timestamp(py, seconds, increment))
    }

    #[inline(never)]
    fn regex(&mut self, pattern: &[u8], options: &[u8]) -> Told {
        let first = self.text(pattern)?;
        let second = self.text(options);
        let second = second.map_err(|e| e.later_by(pattern.len() + 1))?;
        self.push_rare(|classes, _| classes.regex(first, second))
    }

    #[inline(never)]
    fn code(&mut self, text: &[u8]) -> Told {
        let code = self.text(text)?;
        self.push_rare(|classes, _| classes.code(code, None))
    }

    #[inline(never)]
    fn begin_code_with_scope(&mut self, code: &[u8]) -> Told {
        let code = self.text(code)?;
        self.codes.push(code);
        self.building.begin(true);
        Ok(())
    }

    #[inline(never)]
    fn end_code_with_scope(&mut self) -> Told {
        let scope = self.building.end_dict();
        let (scope, _) = scope.map_err(|e| self.fail(e))?;
        let scope = self.other_document(scope, false)?;
        let code = self.codes.pop().expect("a scope was begun");
        self.push_rare(|classes, _| classes.code(code, Some(scope)))
    }

    #[inline(never)]
    fn symbol(&mut self, text: &[u8]) -> Told {
        let text = self.text(text)?;
        self.push_rare(|classes, _| classes.symbol(text))
    }

    #[inline(never)]
    fn db_pointer(&mut self, name: &[u8], id: &[u8; 12]) -> Told {
        let name = self.text(name)?;
        self.push_rare(|classes, _| classes.db_pointer(name, id))
    }

    #[inline(never)]
    fn undefined(&mut self) -> Told {
        self.push_rare(|classes, py| Ok(classes.undefined(py)))
    }

    #[inline(never)]
    fn min_key(&mut self) -> Told {
        self.push_rare(|classes, py| Ok(classes.min_key(py)))
    }

    #[inline(never)]
    fn max_key(&mut self) -> Told {
        self.push_rare(|classes, py| Ok(classes.max_key(py)))
    }
}
