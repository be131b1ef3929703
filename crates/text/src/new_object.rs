//! The traits that a caller implements to allocate the `str` or `bytes` into which a conversion
//! writes.

use std::mem::MaybeUninit;

use crate::Shape;

/// The data area of a new `str`, in which the units of the text are stored.
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
    /// Returns a borrow of this data with a shorter lifetime, so that `self` can be used again
    /// afterwards.
    pub(crate) fn reborrow(&mut self) -> StrData<'_> {
        match self {
            StrData::One(data) => StrData::One(data),
            StrData::Two(data) => StrData::Two(data),
            StrData::Four(data) => StrData::Four(data),
        }
    }
}

/// An allocator of new `str` objects, which the caller of a conversion implements.
pub trait NewStr {
    /// The type that represents a new `str`, such as a pointer to a Python object.
    type Str;
    /// The error if a `str` cannot be allocated.
    type Error;

    /// Allocates a `str` of the kind and length that `shape` specifies. The conversion writes the
    /// data of the `str` afterwards, and drops the `str` if the conversion fails.
    ///
    /// # Errors
    /// Returns an error if memory is exhausted.
    fn new_str(&mut self, shape: Shape) -> Result<Self::Str, Self::Error>;

    /// Returns the data area of the `str`: `shape.n_chars` units of its kind.
    fn data<'a>(&self, made: &'a mut Self::Str) -> StrData<'a>;
}

/// A `str` that was written in one pass over the text, without measuring the text first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadeStr<S> {
    /// The new `str`, which contains the whole text.
    pub made: S,
    /// `true` if the conversion was a plain copy, because the `str` has the same units as the text.
    pub is_copied: bool,
    /// The number of bytes of the text that were converted twice. The first `str` had a kind that
    /// was too narrow for a later character, so it was discarded.
    pub in_vain_bytes: usize,
}

/// An allocator of new `bytes` objects, which the caller of a conversion implements.
pub trait NewBytes {
    /// The type that represents a new `bytes`, such as a pointer to a Python object.
    type Bytes;
    /// The error if the `bytes` cannot be allocated.
    type Error;

    /// Allocates a `bytes` object of length `len`. The conversion writes its data afterwards.
    ///
    /// # Errors
    /// Returns an error if memory is exhausted.
    fn new_bytes(&mut self, len: usize) -> Result<Self::Bytes, Self::Error>;

    /// Returns the data area of the `bytes`, which has the requested length.
    fn data<'a>(&self, made: &'a mut Self::Bytes) -> &'a mut [MaybeUninit<u8>];
}
