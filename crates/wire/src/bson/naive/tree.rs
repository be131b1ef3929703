//! [`Tree`]: an event handler that builds a tree from the events of the reader. [`write()`]
//! converts a tree back to bytes.

use super::{Document, Value};
use crate::bson::read::{BsonEvents, EventResult, malformed};
use crate::bson::{SUBTYPE_OLD, Tag};

/// An event handler that builds a document tree from the events of the reader. All texts must be
/// UTF-8.
#[derive(Debug, Default)]
pub struct Tree {
    open: Vec<Open>,
    key: String,
    done: Option<Document>,
}

#[derive(Debug)]
struct Open {
    /// The key of this document in the document that encloses it.
    key: String,
    /// The code of a value of type "code with scope", if this document is the scope of that value;
    /// otherwise `None`.
    code: Option<String>,
    items: Document,
}

impl Tree {
    /// Returns the document that was built; `None` if the event for its end was not received.
    #[must_use]
    pub fn finish(self) -> Option<Document> {
        self.done
    }

    fn put(&mut self, value: Value) -> EventResult {
        let key = std::mem::take(&mut self.key);
        let open = self.open.last_mut().expect("a document is open");
        open.items.push((key, value));
        Ok(())
    }

    fn begin(&mut self, code: Option<String>) -> EventResult {
        let key = std::mem::take(&mut self.key);
        self.open.push(Open {
            key,
            code,
            items: Vec::new(),
        });
        Ok(())
    }

    fn end(&mut self, value: impl FnOnce(Option<String>, Document) -> Value) -> EventResult {
        let Open { key, code, items } = self.open.pop().expect("one was begun");
        if self.open.is_empty() {
            self.done = Some(items);
            return Ok(());
        }
        self.key = key;
        self.put(value(code, items))
    }
}

fn text(bytes: &[u8]) -> Result<String, crate::bson::read::Rejection> {
    String::from_utf8(bytes.to_vec()).map_err(|_| malformed(bytes))
}

impl BsonEvents for Tree {
    fn key(&mut self, key: &[u8]) -> EventResult {
        self.key = text(key)?;
        Ok(())
    }
    fn array_key(&mut self, key: &[u8]) -> EventResult {
        self.key(key)
    }
    fn other_array_key(&mut self, key: &[u8]) -> EventResult {
        text(key).map(drop)
    }
    fn begin_document(&mut self) -> EventResult {
        self.begin(None)
    }
    fn end_document(&mut self) -> EventResult {
        self.end(|_, items| Value::Document(items))
    }
    fn begin_array(&mut self) -> EventResult {
        self.begin(None)
    }
    fn end_array(&mut self) -> EventResult {
        self.end(|_, items| Value::Array(items))
    }
    fn begin_code_with_scope(&mut self, code: &[u8]) -> EventResult {
        self.begin(Some(text(code)?))
    }
    fn end_code_with_scope(&mut self) -> EventResult {
        self.end(|code, items| Value::CodeWithScope(code.expect("it has code"), items))
    }
    fn double(&mut self, value: f64) -> EventResult {
        self.put(Value::Double(value.to_bits()))
    }
    fn string(&mut self, string: &[u8]) -> EventResult {
        self.put(Value::String(text(string)?))
    }
    fn binary(&mut self, subtype: u8, bytes: &[u8]) -> EventResult {
        self.put(Value::Binary(subtype, bytes.to_vec()))
    }
    fn undefined(&mut self) -> EventResult {
        self.put(Value::Undefined)
    }
    fn object_id(&mut self, id: &[u8; 12]) -> EventResult {
        self.put(Value::ObjectId(*id))
    }
    fn boolean(&mut self, value: bool) -> EventResult {
        self.put(Value::Bool(value))
    }
    fn datetime(&mut self, milliseconds: i64) -> EventResult {
        self.put(Value::DateTime(milliseconds))
    }
    fn null(&mut self) -> EventResult {
        self.put(Value::Null)
    }
    fn regex(&mut self, pattern: &[u8], options: &[u8]) -> EventResult {
        let first = text(pattern)?;
        let second = text(options).map_err(|e| e.later_by(pattern.len() + 1))?;
        self.put(Value::Regex(first, second))
    }
    fn db_pointer(&mut self, name: &[u8], id: &[u8; 12]) -> EventResult {
        self.put(Value::DbPointer(text(name)?, *id))
    }
    fn code(&mut self, code: &[u8]) -> EventResult {
        self.put(Value::Code(text(code)?))
    }
    fn symbol(&mut self, symbol: &[u8]) -> EventResult {
        self.put(Value::Symbol(text(symbol)?))
    }
    fn int32(&mut self, value: i32) -> EventResult {
        self.put(Value::Int32(value))
    }
    fn timestamp(&mut self, seconds: u32, increment: u32) -> EventResult {
        self.put(Value::Timestamp(seconds, increment))
    }
    fn int64(&mut self, value: i64) -> EventResult {
        self.put(Value::Int64(value))
    }
    fn decimal128(&mut self, bytes: &[u8; 16]) -> EventResult {
        self.put(Value::Decimal128(*bytes))
    }
    fn min_key(&mut self) -> EventResult {
        self.put(Value::MinKey)
    }
    fn max_key(&mut self) -> EventResult {
        self.put(Value::MaxKey)
    }
}

/// Returns `true` if the keys of each array, at any depth, are the indexes of its items (`0`, `1`,
/// `2`…).
#[must_use]
pub fn has_index_keys(document: &Document) -> bool {
    document.iter().all(|(_, value)| match value {
        Value::Array(items) => {
            let mut keys = items.iter().enumerate();
            keys.all(|(i, (key, _))| *key == i.to_string()) && has_index_keys(items)
        }
        Value::Document(inner) | Value::CodeWithScope(_, inner) => has_index_keys(inner),
        _ => true,
    })
}

/// Returns the document as BSON bytes. All keys are written unchanged, including those of arrays.
#[must_use]
pub fn write(document: &Document) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    for (key, value) in document {
        bytes.push(tag_of(value).byte());
        bytes.extend(cstring(key));
        bytes.extend(value_bytes(value));
    }
    bytes.push(0);
    whole(bytes)
}

/// Writes the length of `bytes` into its first four bytes, which the caller must have reserved.
/// Returns `bytes`.
fn whole(mut bytes: Vec<u8>) -> Vec<u8> {
    let length = (bytes.len() as u32).to_le_bytes();
    bytes[..4].copy_from_slice(&length);
    bytes
}

fn cstring(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0]].concat()
}

fn string(text: &str) -> Vec<u8> {
    let length = (text.len() as u32 + 1).to_le_bytes();
    [&length[..], text.as_bytes(), &[0]].concat()
}

fn value_bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::Double(bits) => bits.to_le_bytes().to_vec(),
        Value::String(text) | Value::Code(text) | Value::Symbol(text) => string(text),
        Value::Document(inner) | Value::Array(inner) => write(inner),
        Value::Binary(subtype, bytes) => {
            let inner = if *subtype == SUBTYPE_OLD {
                [&(bytes.len() as u32).to_le_bytes()[..], bytes].concat()
            } else {
                bytes.clone()
            };
            let length = (inner.len() as u32).to_le_bytes();
            [&length[..], &[*subtype], &inner[..]].concat()
        }
        Value::ObjectId(id) => id.to_vec(),
        Value::Bool(value) => vec![u8::from(*value)],
        Value::DateTime(value) | Value::Int64(value) => value.to_le_bytes().to_vec(),
        Value::Undefined | Value::Null | Value::MinKey | Value::MaxKey => Vec::new(),
        Value::Regex(pattern, options) => [cstring(pattern), cstring(options)].concat(),
        Value::DbPointer(name, id) => [&string(name), &id[..]].concat(),
        Value::CodeWithScope(code, scope) => {
            whole([vec![0; 4], string(code), write(scope)].concat())
        }
        Value::Int32(value) => value.to_le_bytes().to_vec(),
        Value::Timestamp(seconds, increment) => {
            [increment.to_le_bytes(), seconds.to_le_bytes()].concat()
        }
        Value::Decimal128(bytes) => bytes.to_vec(),
    }
}

fn tag_of(value: &Value) -> Tag {
    match value {
        Value::Double(_) => Tag::Double,
        Value::String(_) => Tag::String,
        Value::Document(_) => Tag::Document,
        Value::Array(_) => Tag::Array,
        Value::Binary(..) => Tag::Binary,
        Value::Undefined => Tag::Undefined,
        Value::ObjectId(_) => Tag::ObjectId,
        Value::Bool(_) => Tag::Bool,
        Value::DateTime(_) => Tag::DateTime,
        Value::Null => Tag::Null,
        Value::Regex(..) => Tag::Regex,
        Value::DbPointer(..) => Tag::DbPointer,
        Value::Code(_) => Tag::Code,
        Value::Symbol(_) => Tag::Symbol,
        Value::CodeWithScope(..) => Tag::CodeWithScope,
        Value::Int32(_) => Tag::Int32,
        Value::Timestamp(..) => Tag::Timestamp,
        Value::Int64(_) => Tag::Int64,
        Value::Decimal128(_) => Tag::Decimal128,
        Value::MinKey => Tag::MinKey,
        Value::MaxKey => Tag::MaxKey,
    }
}
