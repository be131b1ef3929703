//! `Build`: creates Python objects from the events of the BSON reader.

use onecopy_text::convert::{Ascii, Kernels};
use onecopy_text::{Tally, Units};
use onecopy_wire::bson::read::{BsonEvents, EventResult, Reason, Rejection, malformed};
use onecopy_wire::bson::{SUBTYPE_OLD_UUID, SUBTYPE_UUID};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTzInfo};

use super::bson_classes::{self, BsonClasses};
use super::options::{Dates, Document, Given, Types};
use super::raw_document::Parent;
use crate::raw::codecs;
use crate::raw::fresh::Blanks;
use crate::raw::objects::building::Building;
use crate::raw::objects::fresh_number::Numbers;
use crate::raw::objects::scalars;
use crate::raw::text::MakeError;
use crate::raw::{self, uuid};

/// The earliest `datetime` of Python, in milliseconds since 1970.
const FIRST_MS: i64 = -62_135_596_800_000;
const LAST_MS: i64 = 253_402_300_799_999;

/// The event handler of the BSON reader.
pub(super) struct Build<'a, 'py, K> {
    pub(super) kernels: K,
    pub(super) building: Building<'py>,
    pub(super) blanks: Blanks<'py>,
    pub(super) numbers: Numbers<'py>,
    pub(super) options: &'a Given<'py>,
    /// `true` if each document becomes a plain `dict`.
    pub(super) is_plain: bool,
    /// The buffer for nested `RawDocument` objects; `None` if nested documents are decoded.
    pub(super) raw: Option<Parent<'a>>,
    /// 1 inside the list of `decode_all`, otherwise 0.
    pub(super) n_around: usize,
    /// The classes for BSON types without a Python equivalent, loaded at first use.
    pub(super) classes: Option<&'static BsonClasses>,
    pub(super) tally: Option<&'a mut Tally>,
    /// The code strings of open "code with scope" values, the innermost last.
    pub(super) codes: Vec<Bound<'py, PyAny>>,
    /// The Python exception of the last event.
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

    /// Begins the list of a `decode_all` call.
    pub(super) fn begin_all(&mut self) {
        self.building.begin(false);
        self.n_around = 1;
    }

    /// Ends the list of [`Build::begin_all`].
    pub(super) fn end_all(&mut self) -> PyResult<()> {
        let all = self.building.end_list()?;
        self.building.push(all)
    }

    /// Makes later nested documents `RawDocument` objects over the buffer `parent`.
    pub(super) fn keep_raw(&mut self, parent: Parent<'a>) {
        self.raw = Some(parent);
    }

    /// Returns the Python object for the whole input. Call it after the last event.
    #[inline(always)]
    pub(super) fn finish(self) -> Bound<'py, PyAny> {
        self.building.finish()
    }

    #[cold]
    #[inline(never)]
    pub(super) fn fail(&mut self, error: PyErr) -> Rejection {
        self.error = Some(error);
        Rejection::OWN
    }

    #[inline(always)]
    pub(super) fn push(&mut self, value: PyResult<Bound<'py, PyAny>>) -> EventResult {
        match value {
            Ok(value) => {
                let pushed = self.building.push(value);
                pushed.map_err(|e| self.fail(e))
            }
            Err(e) => Err(self.fail(e)),
        }
    }

    /// Appends any object. The garbage collector then tracks the list or dict around it.
    #[inline(never)]
    pub(super) fn push_other(&mut self, value: PyResult<Bound<'py, PyAny>>) -> EventResult {
        self.building.has_container();
        self.push(value)
    }

    #[inline(always)]
    pub(super) fn text(&mut self, bytes: &[u8]) -> Result<Bound<'py, PyAny>, Rejection> {
        if let Some(ascii) = Ascii::of_cell(self.kernels, bytes) {
            return self.ascii(ascii);
        }
        self.other_text(bytes)
    }

    #[inline(always)]
    pub(super) fn ascii(&mut self, text: Ascii<'_>) -> Result<Bound<'py, PyAny>, Rejection> {
        let tally = self.tally.as_deref_mut();
        let made = scalars::ascii(self.blanks, self.kernels, text, tally);
        made.map_err(|e| self.fail(e))
    }

    /// Creates a `str` from long or non-ASCII UTF-8.
    #[inline(always)]
    pub(super) fn other_text(&mut self, bytes: &[u8]) -> Result<Bound<'py, PyAny>, Rejection> {
        if self.tally.is_none()
            && let Some(made) = scalars::short_utf8(self.blanks, self.kernels, bytes)
        {
            return Ok(made);
        }
        self.any_text(bytes)
    }

    /// Creates a `str` from UTF-8, without a fast path. Counts the bytes in the ledger.
    #[inline(never)]
    pub(super) fn any_text(&mut self, bytes: &[u8]) -> Result<Bound<'py, PyAny>, Rejection> {
        let tally = self.tally.as_deref_mut();
        let made = scalars::other_text(self.blanks.py(), Units::Utf8(bytes), tally);
        made.or_else(|e| self.malformed_text(bytes, e))
    }

    /// Handles malformed text with the error handler of the option `errors`.
    #[cold]
    #[inline(never)]
    pub(super) fn malformed_text(
        &mut self,
        bytes: &[u8],
        error: MakeError,
    ) -> Result<Bound<'py, PyAny>, Rejection> {
        if let MakeError::Python(e) = error {
            return Err(self.fail(e));
        }
        let Some(handler) = &self.options.errors else {
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

    /// Creates the `str` of a key and stores it in slot `at` of the key cache.
    #[cold]
    #[inline(never)]
    pub(super) fn new_key(&mut self, at: u16, hash: u32, bytes: &[u8]) -> Result<(), Rejection> {
        let key = self.any_text(bytes)?;
        let kept = self.building.keep_key(at, hash, bytes, &key);
        kept.map_err(|e| self.fail(e))
    }

    /// Creates the `str` of a key outside of the key cache.
    #[inline(never)]
    pub(super) fn other_key(&mut self, key: &[u8]) -> EventResult {
        let made = self.text(key)?;
        let pushed = self.building.push_key(made);
        pushed.map_err(|e| self.fail(e))
    }

    /// Returns the classes for BSON types without a Python equivalent.
    #[inline]
    pub(super) fn classes(&mut self) -> Result<&'static BsonClasses, Rejection> {
        if let Some(classes) = self.classes {
            return Ok(classes);
        }
        let py = self.building.py();
        let found = self
            .building
            .with_foreign(|| bson_classes::classes(py, self.options.types));
        let found = found.map_err(|e| self.fail(e))?;
        self.classes = Some(found);
        Ok(found)
    }

    /// Appends the result of `make`, a value without a Python equivalent.
    #[inline(never)]
    pub(super) fn push_rare(
        &mut self,
        make: impl FnOnce(&'static BsonClasses, Python<'py>) -> PyResult<Bound<'py, PyAny>>,
    ) -> EventResult {
        let classes = self.classes()?;
        let py = self.building.py();
        let made = self.building.with_foreign(|| make(classes, py));
        self.push_other(made)
    }

    /// Converts the `dict` of a document to a `DBRef` or to the caller's document class.
    #[cold]
    #[inline(never)]
    pub(super) fn other_document(
        &mut self,
        dict: Bound<'py, PyAny>,
        is_value: bool,
    ) -> Result<Bound<'py, PyAny>, Rejection> {
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
    pub(super) fn push_document(&mut self, dict: PyResult<Bound<'py, PyAny>>) -> EventResult {
        if self.is_plain {
            return self.push(dict);
        }
        let dict = dict.map_err(|e| self.fail(e))?;
        let made = self.other_document(dict, true)?;
        self.push_other(Ok(made))
    }

    /// Returns UTC, or `None` for naive datetimes.
    #[inline(always)]
    pub(super) fn zone(&mut self) -> Result<Option<&'py Bound<'py, PyTzInfo>>, Rejection> {
        if !self.options.tz_aware {
            return Ok(None);
        }
        let py = self.building.py();
        Ok(Some(self.classes()?.utc(py)))
    }

    /// Appends a datetime that is out of range or becomes another type.
    #[cold]
    #[inline(never)]
    pub(super) fn other_datetime(&mut self, milliseconds: i64) -> EventResult {
        match self.options.dates {
            Dates::Error => Err(Rejection::here(Reason::DateRange)),
            Dates::Clamp => self.datetime(milliseconds.clamp(FIRST_MS, LAST_MS)),
            Dates::Raw | Dates::Auto => {
                self.push_rare(|classes, py| classes.datetime_ms(py, milliseconds))
            }
        }
    }

    /// Appends a binary value with a subtype other than 0 (generic).
    #[inline(never)]
    pub(super) fn other_binary(&mut self, subtype: u8, bytes: &[u8]) -> EventResult {
        let py = self.building.py();
        if matches!(subtype, SUBTYPE_UUID | SUBTYPE_OLD_UUID)
            && let Ok(order) = bytes.try_into()
            && let Some(order) = bson_classes::uuid_order(self.options.uuids, subtype, order)
        {
            let made = uuid::make(py, order);
            return self.push_other(made);
        }
        let made = binary(py, bytes).map_err(|e| self.fail(e))?;
        self.push_rare(|classes, _| classes.binary(made, subtype))
    }
}

/// Creates a `bytes` object. Copies: the bytes are copied once.
#[inline(always)]
pub(super) fn binary<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    raw::binary::make(py, bytes)
}
