//! Traits that allocate the `str` or `bytes` of a conversion.

use std::mem::MaybeUninit;

use crate::Shape;

/// The data area of a new `str`.
#[derive(Debug)]
pub enum StrData<'a> {
    /// A `str` of kind 1, ASCII or Latin-1: 8 bits per character.
    One(&'a mut [MaybeUninit<u8>]),
    /// A `str` of kind 2: 16 bits per character.
    Two(&'a mut [MaybeUninit<u16>]),
    /// A `str` of kind 4: 32 bits per character.
    Four(&'a mut [MaybeUninit<u32>]),
}

impl StrData<'_> {
    /// Returns a shorter borrow of this data.
    pub(crate) fn reborrow(&mut self) -> StrData<'_> {
        match self {
            StrData::One(data) => StrData::One(data),
            StrData::Two(data) => StrData::Two(data),
            StrData::Four(data) => StrData::Four(data),
        }
    }
}

/// An allocator of new `str` objects.
pub trait NewStr {
    /// A new `str`, such as a pointer to a Python object.
    type Str;
    /// The error if a `str` cannot be allocated.
    type Error;

    /// Allocates a `str` of the kind and length in `shape`. The conversion then writes its data. A
    /// failed conversion drops the `str`.
    ///
    /// # Errors
    /// Returns an error if memory is exhausted.
    fn new_str(&mut self, shape: Shape) -> Result<Self::Str, Self::Error>;

    /// Returns the data area: `shape.n_chars` units.
    fn data<'a>(&self, made: &'a mut Self::Str) -> StrData<'a>;
}

/// A `str` that was written in one pass, without measuring the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadeStr<S> {
    /// The new `str`.
    pub made: S,
    /// `true` if the conversion was a plain copy.
    pub is_copied: bool,
    /// The number of bytes that were converted twice, because the first `str` was too narrow.
    pub in_vain_bytes: usize,
}

/// An allocator of new `bytes` objects.
pub trait NewBytes {
    /// A new `bytes`, such as a pointer to a Python object.
    type Bytes;
    /// The error if the `bytes` cannot be allocated.
    type Error;

    /// Allocates a `bytes` object of length `len`. The conversion then writes its data.
    ///
    /// # Errors
    /// Returns an error if memory is exhausted.
    fn new_bytes(&mut self, len: usize) -> Result<Self::Bytes, Self::Error>;

    /// Returns the data area of the `bytes`.
    fn data<'a>(&self, made: &'a mut Self::Bytes) -> &'a mut [MaybeUninit<u8>];
}
