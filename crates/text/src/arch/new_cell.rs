//! Makes a `str` or `bytes` for a cell. A caller allocates the object, and a kernel writes it.

use crate::new_object::{MadeStr, NewBytes, NewStr, StrData};
use crate::{Kind, Shape};

/// The largest size in bytes of a text that is converted as a cell.
pub const MOST_CELL_BYTES: usize = 128;

/// A new `bytes` object or an error; `None` if the text is not converted as a cell.
pub(super) type MaybeBytes<B> = Option<Result<<B as NewBytes>::Bytes, <B as NewBytes>::Error>>;

/// A new `str` or an error; `None` if the text is not converted as a cell.
pub(super) type MaybeStr<N> = Option<Result<MadeStr<<N as NewStr>::Str>, <N as NewStr>::Error>>;

/// Makes a `bytes` object of length `len`. `write` must fill its data.
#[inline(always)]
pub(super) fn encoded<B: NewBytes>(
    new: &mut B,
    len: usize,
    write: impl FnOnce(*mut u8),
) -> Result<B::Bytes, B::Error> {
    let mut made = new.new_bytes(len)?;
    let out = new.data(&mut made);
    assert_eq!(out.len(), len, "bytes of another length were made");
    write(out.as_mut_ptr().cast());
    Ok(made)
}

macro_rules! writers {
    ($($name:ident: $unit:ty, $variant:ident;)*) => {$(
        /// Makes a `str` of `n_chars` characters. `write` must fill its units.
        #[inline(always)]
        pub(super) fn $name<N: NewStr>(
            new: &mut N,
            kind: Kind,
            n_chars: usize,
            is_copied: bool,
            write: impl FnOnce(*mut $unit),
        ) -> Result<MadeStr<N::Str>, N::Error> {
            let mut made = new.new_str(Shape { kind, n_chars })?;
            match new.data(&mut made) {
                StrData::$variant(out) if out.len() == n_chars => write(out.as_mut_ptr().cast()),
                _ => of_another_shape(),
            }
            Ok(MadeStr {
                made,
                is_copied,
                in_vain_bytes: 0,
            })
        }
    )*};
}

writers! {
    one: u8, One;
    two: u16, Two;
    four: u32, Four;
}

#[cold]
pub(super) fn of_another_shape() -> ! {
    panic!("a `str` of another shape was made")
}
