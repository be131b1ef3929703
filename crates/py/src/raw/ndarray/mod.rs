//! Reads NumPy arrays and scalars directly from their memory.
//!
//! | module | contents |
//! |---|---|
//! | `classes` | NumPy's classes, and the check of their instances' layout |
//! | `object` | views of the memory of arrays, and values of scalars |
//! | `view` | the items in the memory of an array |
//!
//! C code may write to an array without the GIL. Therefore each item is read only once, and the
//! shape and strides too, at the creation of a [`View`]. Python code may replace the memory
//! (`resize(refcheck=False)`). After Python code, [`is_current`] checks the view.

mod classes;
mod object;
mod view;

use onecopy_wire::datetime64::Step;

pub(crate) use classes::{Class, ScalarClass, class_of, is_generic, is_scalar, reads_arrays};
pub(crate) use object::{Described, Memory, describe, is_current, view_of};
pub(crate) use view::{Bits, Item, Subarray, View};

/// The type of an array's items, without their byte order.
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
    /// `datetime64` with its time unit, or `None` without a unit.
    Moment(Option<Step>),
    /// Strings of this number of 32-bit characters, padded with NULs.
    Text(usize),
    /// Binary values of this number of bytes, padded with NULs.
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

/// The item type and the byte order of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DType {
    pub(crate) of: ItemType,
    /// `true` if the byte order differs from that of the processor.
    pub(crate) is_swapped: bool,
}

impl DType {
    /// Returns `true` for strings and binary values.
    pub(crate) fn is_text(self) -> bool {
        matches!(self.of, ItemType::Text(_) | ItemType::Binary(_))
    }
}

/// Returns the item type for a type character of NumPy and an item size. `step` is the time unit of
/// a `datetime64` or `timedelta64`. `None` if the type is not supported.
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

/// The value of a NumPy number, boolean or datetime.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scalar {
    Bool(bool),
    /// A signed integer of up to 32 bits, or an unsigned one of up to 16 bits.
    Int32(i32),
    /// A signed integer of 64 bits, or an unsigned one of 32 bits.
    Int64(i64),
    Uint64(u64),
    /// The bits of a 16-bit float (IEEE 754).
    Half(u16),
    Float(f32),
    Double(f64),
    /// A `datetime64`: its count of time units since 1970, and the unit, if any.
    Moment(i64, Option<Step>),
}

/// The `datetime64` value `NaT` (not a time).
pub(crate) const NOT_A_TIME: i64 = i64::MIN;

/// The option for NumPy objects that the encoder writes itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// `default` receives NumPy objects. A `float64` is still written as a subclass of `float`.
    Left,
    /// All NumPy objects that the format can represent.
    Any,
    /// Only the NumPy objects that orjson writes.
    Orjson,
}
