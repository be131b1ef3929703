//! Fresh `str` and `bytes` that conversions write into.

use std::mem::MaybeUninit;

use crate::Shape;

/// The data area of a fresh `str`.
#[derive(Debug)]
pub enum StrData<'a> {
    /// Kind 1, ASCII or Latin-1.
    One(&'a mut [MaybeUninit<u8>]),
    /// Kind 2.
    Two(&'a mut [MaybeUninit<u16>]),
    /// Kind 4.
    Four(&'a mut [MaybeUninit<u32>]),
}

impl StrData<'_> {
    /// The same data, borrowed again.
    pub(crate) fn reborrow(&mut self) -> StrData<'_> {
        match self {
            StrData::One(data) => StrData::One(data),
            StrData::Two(data) => StrData::Two(data),
            StrData::Four(data) => StrData::Four(data),
        }
    }
}

/// Makes fresh `str`s.
pub trait NewStr {
    /// A fresh `str`.
    type Str;
    /// Why none could be made.
    type Error;

    /// A `str` of this shape, its data not yet written. Where it is given up, it is dropped.
    ///
    /// # Errors
    /// No memory.
    fn new_str(&mut self, shape: Shape) -> Result<Self::Str, Self::Error>;

    /// The data area: `shape.n_chars` units of the kind.
    fn data<'a>(&self, made: &'a mut Self::Str) -> StrData<'a>;
}

/// A `str` that was made in one pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadeStr<S> {
    /// The `str`.
    pub made: S,
    /// Whether it is a plain copy: the units matched those of the `str` already.
    pub is_copied: bool,
    /// Bytes of the text that were written for nothing, since a wider character followed.
    pub in_vain_bytes: usize,
}

/// Makes fresh `bytes`.
pub trait NewBytes {
    /// Fresh `bytes`.
    type Bytes;
    /// Why none could be made.
    type Error;

    /// `bytes` of this length, their data not yet written.
    ///
    /// # Errors
    /// No memory.
    fn new_bytes(&mut self, len: usize) -> Result<Self::Bytes, Self::Error>;

    /// The data: as many bytes.
    fn data<'a>(&self, made: &'a mut Self::Bytes) -> &'a mut [MaybeUninit<u8>];
}
