//! Implements `BsonEvents`, the event handler of the BSON reader.

use onecopy_text::convert::{Ascii, Kernels};
use onecopy_text::is_utf8;
use onecopy_wire::bson::SUBTYPE_GENERIC;
use onecopy_wire::bson::read::{BsonEvents, EventResult, Rejection, malformed};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBool;

use super::build::{Build, binary};
use super::options::{Dates, Types};
use crate::raw::objects::text_hash;
use crate::raw::temporal;

/// The maximum size of a key in the key cache.
const MOST_KEY_BYTES: usize = 64;

impl<'py, K: Kernels> BsonEvents for Build<'_, 'py, K> {
    #[inline(always)]
    fn key(&mut self, key: &[u8]) -> EventResult {
        if key.len() <= MOST_KEY_BYTES {
            let (kernels, hash) = (self.kernels, text_hash::hash(key));
            let is_it = |known: &[u8]| known.len() == key.len() && kernels.starts_with(key, known);
            let at = match self.building.find_key(hash, is_it) {
                Ok(at) => at,
                // The error handler changes this key. The cache is shared with calls that have no
                // handler.
                Err(_) if self.options.errors.is_some() && !is_utf8(key) => {
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
    fn likely_key(&mut self) -> EventResult {
        let pushed = self.building.push_likely_key();
        pushed.map_err(|e| self.fail(e))
    }

    #[inline(always)]
    fn other_array_key(&mut self, key: &[u8]) -> EventResult {
        match key.is_ascii() || is_utf8(key) || self.options.errors.is_some() {
            true => Ok(()),
            false => Err(malformed(key)),
        }
    }

    #[inline(always)]
    fn begin_document(&mut self) -> EventResult {
        self.building.begin(true);
        Ok(())
    }

    #[inline(always)]
    fn end_document(&mut self) -> EventResult {
        let made = self.building.end_dict().map(|(dict, _)| dict);
        self.push_document(made)
    }

    #[inline(always)]
    fn empty_document(&mut self) -> EventResult {
        let made = self.building.empty_dict();
        self.push_document(made)
    }

    #[inline(always)]
    fn takes_raw(&mut self, document: &[u8], at: usize) -> Result<bool, Rejection> {
        let Some(parent) = self.raw else {
            return Ok(false);
        };
        let made = parent.inner(self.building.py(), at, document.len());
        self.push_other(made)?;
        Ok(true)
    }

    #[inline(always)]
    fn begin_array(&mut self) -> EventResult {
        self.building.begin(false);
        Ok(())
    }

    #[inline(always)]
    fn end_array(&mut self) -> EventResult {
        let made = self.building.end_list();
        self.push(made)
    }

    #[inline(always)]
    fn empty_array(&mut self) -> EventResult {
        let made = self.building.empty_list();
        self.push(made)
    }

    #[inline(always)]
    fn string(&mut self, text: &[u8]) -> EventResult {
        let Some(ascii) = Ascii::of_cell(self.kernels, text) else {
            let made = self.other_text(text)?;
            return self.push(Ok(made));
        };
        let made = self.ascii(ascii)?;
        self.push(Ok(made))
    }

    #[inline(always)]
    fn double(&mut self, value: f64) -> EventResult {
        let made = self.numbers.float(value);
        self.push(made)
    }

    #[inline(always)]
    fn int32(&mut self, value: i32) -> EventResult {
        let made = self.numbers.int(value.into());
        self.push(made)
    }

    #[inline(always)]
    fn int64(&mut self, value: i64) -> EventResult {
        if i32::try_from(value).is_err() && self.options.types == Types::Onecopy {
            let made = self.numbers.int(value);
            return self.push(made);
        }
        let classes = self.classes()?;
        let made = classes.int64(self.building.py(), value);
        self.push(made)
    }

    #[inline(always)]
    fn boolean(&mut self, value: bool) -> EventResult {
        let value = PyBool::new(self.building.py(), value).to_owned().into_any();
        self.push(Ok(value))
    }

    #[inline(always)]
    fn null(&mut self) -> EventResult {
        let none = self.building.py().None().into_bound(self.building.py());
        self.push(Ok(none))
    }

    #[inline(always)]
    fn datetime(&mut self, milliseconds: i64) -> EventResult {
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
    fn object_id(&mut self, id: &[u8; 12]) -> EventResult {
        let classes = self.classes()?;
        let made = classes.object_id(self.building.py(), id);
        self.push(made)
    }

    #[inline(always)]
    fn binary(&mut self, subtype: u8, bytes: &[u8]) -> EventResult {
        if subtype != SUBTYPE_GENERIC {
            return self.other_binary(subtype, bytes);
        }
        let made = binary(self.building.py(), bytes);
        self.push(made)
    }

    #[inline(never)]
    fn decimal128(&mut self, bytes: &[u8; 16]) -> EventResult {
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
    fn timestamp(&mut self, seconds: u32, increment: u32) -> EventResult {
        self.push_rare(|classes, py| classes.timestamp(py, seconds, increment))
    }

    #[inline(never)]
    fn regex(&mut self, pattern: &[u8], options: &[u8]) -> EventResult {
        let first = self.text(pattern)?;
        let second = self.text(options);
        let second = second.map_err(|e| e.later_by(pattern.len() + 1))?;
        self.push_rare(|classes, _| classes.regex(first, second, options))
    }

    #[inline(never)]
    fn code(&mut self, text: &[u8]) -> EventResult {
        let code = self.text(text)?;
        self.push_rare(|classes, _| classes.code(code, None))
    }

    #[inline(never)]
    fn begin_code_with_scope(&mut self, code: &[u8]) -> EventResult {
        let code = self.text(code)?;
        self.codes.push(code);
        self.building.begin(true);
        Ok(())
    }

    #[inline(never)]
    fn end_code_with_scope(&mut self) -> EventResult {
        let scope = self.building.end_dict();
        let (scope, _) = scope.map_err(|e| self.fail(e))?;
        let scope = self.other_document(scope, false)?;
        let code = self.codes.pop().expect("a scope was begun");
        self.push_rare(|classes, _| classes.code(code, Some(scope)))
    }

    #[inline(never)]
    fn symbol(&mut self, text: &[u8]) -> EventResult {
        let text = self.text(text)?;
        self.push_rare(|classes, _| classes.symbol(text))
    }

    #[inline(never)]
    fn db_pointer(&mut self, name: &[u8], id: &[u8; 12]) -> EventResult {
        let name = self.text(name)?;
        self.push_rare(|classes, _| classes.db_pointer(name, id))
    }

    #[inline(never)]
    fn undefined(&mut self) -> EventResult {
        self.push_rare(|classes, py| Ok(classes.undefined(py)))
    }

    #[inline(never)]
    fn min_key(&mut self) -> EventResult {
        self.push_rare(|classes, py| Ok(classes.min_key(py)))
    }

    #[inline(never)]
    fn max_key(&mut self) -> EventResult {
        self.push_rare(|classes, py| Ok(classes.max_key(py)))
    }
}
