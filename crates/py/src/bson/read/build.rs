//! Objects of what the reader tells.

use onecopy_text::convert::{Ascii, Kernels};
use onecopy_text::{Tally, Units};
use onecopy_wire::bson::read::{BsonEvents, Reason, Refusal, Told, malformed};
use onecopy_wire::bson::{SUBTYPE_OLD_UUID, SUBTYPE_UUID};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTzInfo};

use super::document::Parent;
use super::options::{Dates, Document, Given, Types};
use super::rare::{self, Classes};
use crate::raw::codecs;
use crate::raw::fresh::Blanks;
use crate::raw::objects::building::Building;
use crate::raw::objects::fresh_number::Numbers;
use crate::raw::objects::scalars;
use crate::raw::text::MakeError;
use crate::raw::{self, uuid};

/// The first and the last millisecond of Python's dates.
const FIRST_MS: i64 = -62_135_596_800_000;
const LAST_MS: i64 = 253_402_300_799_999;

/// Documents under construction.
pub(super) struct Build<'a, 'py, K> {
    pub(super) kernels: K,
    pub(super) building: Building<'py>,
    pub(super) blanks: Blanks<'py>,
    pub(super) numbers: Numbers<'py>,
    pub(super) options: &'a Given<'py>,
    /// Whether documents are dicts and nothing else.
    pub(super) is_plain: bool,
    /// Where documents inside of others lie that stay as they are.
    pub(super) raw: Option<Parent<'a>>,
    /// Levels around the outermost document.
    pub(super) n_around: usize,
    /// Looked up when the first is wanted.
    pub(super) classes: Option<&'static Classes>,
    pub(super) tally: Option<&'a mut Tally>,
    /// The code of the scopes that are open.
    pub(super) codes: Vec<Bound<'py, PyAny>>,
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
    pub(super) fn fail(&mut self, error: PyErr) -> Refusal {
        self.error = Some(error);
        Refusal::OWN
    }

    #[inline(always)]
    pub(super) fn push(&mut self, value: PyResult<Bound<'py, PyAny>>) -> Told {
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
    pub(super) fn push_other(&mut self, value: PyResult<Bound<'py, PyAny>>) -> Told {
        self.building.has_container();
        self.push(value)
    }

    /// A `str` of any text.
    #[inline(always)]
    pub(super) fn text(&mut self, bytes: &[u8]) -> Result<Bound<'py, PyAny>, Refusal> {
        if let Some(ascii) = Ascii::of_cell(self.kernels, bytes) {
            return self.ascii(ascii);
        }
        self.other_text(bytes)
    }

    #[inline(always)]
    pub(super) fn ascii(&mut self, text: Ascii<'_>) -> Result<Bound<'py, PyAny>, Refusal> {
        let tally = self.tally.as_deref_mut();
        let made = scalars::ascii(self.blanks, self.kernels, text, tally);
        made.map_err(|e| self.fail(e))
    }

    /// A `str` of a text that is long, or not ASCII.
    #[inline(always)]
    pub(super) fn other_text(&mut self, bytes: &[u8]) -> Result<Bound<'py, PyAny>, Refusal> {
        if self.tally.is_none()
            && let Some(made) = scalars::short_utf8(self.blanks, self.kernels, bytes)
        {
            return Ok(made);
        }
        self.any_text(bytes)
    }

    /// A `str` of any text, by the way of long ones.
    #[inline(never)]
    pub(super) fn any_text(&mut self, bytes: &[u8]) -> Result<Bound<'py, PyAny>, Refusal> {
        let tally = self.tally.as_deref_mut();
        let made = scalars::other_text(self.blanks.py(), Units::Utf8(bytes), tally);
        made.or_else(|e| self.malformed_text(bytes, e))
    }

    /// A text that is malformed: refused, or what a handler makes of it.
    #[cold]
    #[inline(never)]
    pub(super) fn malformed_text(
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
    pub(super) fn new_key(&mut self, at: u16, hash: u32, bytes: &[u8]) -> Result<(), Refusal> {
        let key = self.any_text(bytes)?;
        let kept = self.building.keep_key(at, hash, bytes, &key);
        kept.map_err(|e| self.fail(e))
    }

    /// A key that is not remembered.
    #[inline(never)]
    pub(super) fn other_key(&mut self, key: &[u8]) -> Told {
        let made = self.text(key)?;
        let pushed = self.building.push_key(made);
        pushed.map_err(|e| self.fail(e))
    }

    /// The classes of values that Python has no type for.
    #[inline]
    pub(super) fn classes(&mut self) -> Result<&'static Classes, Refusal> {
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
    pub(super) fn push_rare(
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
    pub(super) fn other_document(
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
    pub(super) fn push_document(&mut self, dict: PyResult<Bound<'py, PyAny>>) -> Told {
        if self.is_plain {
            return self.push(dict);
        }
        let dict = dict.map_err(|e| self.fail(e))?;
        let made = self.other_document(dict, true)?;
        self.push_other(Ok(made))
    }

    /// The zone of datetimes.
    #[inline(always)]
    pub(super) fn zone(&mut self) -> Result<Option<&'py Bound<'py, PyTzInfo>>, Refusal> {
        if !self.options.tz_aware {
            return Ok(None);
        }
        let py = self.building.py();
        Ok(Some(self.classes()?.utc(py)))
    }

    /// A datetime that is not to be, or cannot be, a `datetime`.
    #[cold]
    #[inline(never)]
    pub(super) fn other_datetime(&mut self, milliseconds: i64) -> Told {
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
    pub(super) fn other_binary(&mut self, subtype: u8, bytes: &[u8]) -> Told {
        let py = self.building.py();
        if matches!(subtype, SUBTYPE_UUID | SUBTYPE_OLD_UUID)
            && let Ok(order) = bytes.try_into()
            && let Some(order) = rare::uuid_order(self.options.uuids, subtype, order)
        {
            let made = uuid::make(py, order);
            return self.push_other(made);
        }
        let made = binary(py, bytes).map_err(|e| self.fail(e))?;
        self.push_rare(|classes, _| classes.binary(made, subtype))
    }
}

/// `bytes` of their own. Copies: one.
#[inline(always)]
pub(super) fn binary<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    raw::binary::make(py, bytes)
}
