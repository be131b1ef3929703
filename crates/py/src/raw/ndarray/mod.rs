//! Arrays and scalars of NumPy, read in place.
//!
//! | module | what it reads |
//! |---|---|
//! | `classes` | NumPy's classes; the layout of their instances, compared with the protocol |
//! | `object` | arrays and scalars: views of their memory, and values |
//! | `view` | the items of the memory of an array |
//!
//! The memory belongs to the array. Code of C may write to it at any time without the GIL (ufuncs
//! do), so each item is read once; shape and strides are read once for a [`View`]. Python code may
//! give the array other memory (`resize(refcheck=False)`, `__setstate__`): a view is compared with
//! its array again after any code has run, by [`is_current`].

mod classes;
mod object;
mod view;

use onecopy_wire::datetime64::Step;

pub(crate) use classes::{Class, ScalarClass, class_of, is_scalar, reads_arrays};
pub(crate) use object::{Described, Memory, describe, is_current, view_of};
pub(crate) use view::{Bits, Item, Part, View};

/// The type of the items of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemType {
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Float16,
    Float32,
    Float64,
    /// `datetime64`; `None` of one without a unit.
    Moment(Option<Step>),
    /// Texts of at most so many characters, each of 32 bits, with NULs after them.
    Text(usize),
    /// Binary of at most so many bytes, with NULs after it.
    Binary(usize),
}

impl ItemType {
    fn n_bytes(self) -> usize {
        match self {
            ItemType::Bool | ItemType::Int8 | ItemType::Uint8 => 1,
            ItemType::Int16 | ItemType::Uint16 | ItemType::Float16 => 2,
            ItemType::Int32 | ItemType::Uint32 | ItemType::Float32 => 4,
            ItemType::Int64 | ItemType::Uint64 | ItemType::Float64 | ItemType::Moment(_) => 8,
            ItemType::Text(n_chars) => 4 * n_chars,
            ItemType::Binary(n_bytes) => n_bytes,
        }
    }
}

/// The type of the items of an array, and how they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DType {
    pub(crate) of: ItemType,
    /// True if their bytes are in the order of another machine.
    pub(crate) is_swapped: bool,
}

impl DType {
    /// True if they are text or binary.
    fn is_text(self) -> bool {
        matches!(self.of, ItemType::Text(_) | ItemType::Binary(_))
    }
}

/// The type of items of a kind and size, as NumPy's array interface has them; `None` of one that is
/// not read here.
fn item_type(kind: u8, n_bytes: usize, step: Option<Step>) -> Option<ItemType> {
    Some(match (kind, n_bytes) {
        (b'b', 1) => ItemType::Bool,
        (b'i', 1) => ItemType::Int8,
        (b'i', 2) => ItemType::Int16,
        (b'i', 4) => ItemType::Int32,
        (b'i', 8) => ItemType::Int64,
        (b'u', 1) => ItemType::Uint8,
        (b'u', 2) => ItemType::Uint16,
        (b'u', 4) => ItemType::Uint32,
        (b'u', 8) => ItemType::Uint64,
        (b'f', 2) => ItemType::Float16,
        (b'f', 4) => ItemType::Float32,
        (b'f', 8) => ItemType::Float64,
        (b'M', 8) => ItemType::Moment(step),
        (b'U', _) => ItemType::Text(n_bytes / 4),
        (b'S', _) => ItemType::Binary(n_bytes),
        _ => return None,
    })
}

/// A value of a number, boolean or moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scalar {
    Bool(bool),
    /// Of 32 bits or fewer, with a sign or of fewer without one.
    Int32(i32),
    /// Of 64 bits, or of 32 without a sign.
    Int64(i64),
    Uint64(u64),
    /// The bits of a float of 16 bits.
    Half(u16),
    Float(f32),
    Double(f64),
    /// `datetime64`; `None` of one without a unit.
    Moment(i64, Option<Step>),
}

/// Not a time, as `datetime64` has it.
pub(crate) const NOT_A_TIME: i64 = i64::MIN;

/// Which of NumPy's objects are written, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// None: all are left to `default`.
    Left,
    /// All that have a form.
    Any,
    /// Those that orjson writes, as it does.
    Orjson,
}
