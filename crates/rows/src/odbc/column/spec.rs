//! What every kind of column shares: a value's bytes, and what to bind for it.

use crate::odbc::ffi::c;
use crate::schema::ColumnType;

/// How a kind of column is read, what to bind for it, and its type in the schema.
pub(crate) type Plan<K> = (K, Spec, ColumnType);

/// Bytes bound for a column whose values have no useful limit: longer ones are fetched on their own.
pub(crate) const OPEN_BYTES: usize = 1024;
/// Declared sizes up to this many bytes are bound in full.
pub(crate) const DECLARED_BYTES: usize = 4096;

/// The bytes of a value that is not NULL, in its slot or in the arena.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw<'b>(&'b [u8]);

impl<'b> Raw<'b> {
    /// A value's bytes, aligned as the block's buffers are.
    pub(crate) fn new(bytes: &'b [u8]) -> Raw<'b> {
        Raw(bytes)
    }

    /// The bytes.
    #[inline]
    pub(crate) fn bytes(self) -> &'b [u8] {
        self.0
    }

    /// The bytes `at..at + N`, as one array; zeros where the driver gave too few, which no fixed-size type does.
    #[inline]
    pub(crate) fn array<const N: usize>(self, at: usize) -> [u8; N] {
        self.0
            .get(at..at + N)
            .and_then(|b| b.try_into().ok())
            .unwrap_or([0; N])
    }

    /// A 16-bit field of a struct.
    #[inline]
    pub(crate) fn u16(self, at: usize) -> u16 {
        u16::from_ne_bytes(self.array(at))
    }
}

/// What to bind for a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spec {
    /// `SQL_C_…`.
    pub(crate) c_type: i16,
    /// Bytes of a slot, a terminator included.
    pub(crate) bytes: usize,
    /// Bytes of the terminator: 0, 1 or 2.
    pub(crate) terminator: usize,
    /// Values have lengths of their own.
    pub(crate) variable: bool,
    /// Values longer than the slot are to be expected.
    pub(crate) open: bool,
}

impl Spec {
    /// A C type of one size.
    pub(crate) const fn fixed(c_type: i16, bytes: usize) -> Spec {
        Spec {
            c_type,
            bytes,
            terminator: 0,
            variable: false,
            open: false,
        }
    }

    /// Short text in ASCII that is parsed: digits, times.
    pub(crate) const fn digits(bytes: usize) -> Spec {
        Spec {
            c_type: c::CHAR,
            bytes,
            terminator: 1,
            variable: true,
            open: false,
        }
    }
}

/// A column as the driver describes it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Described {
    pub(crate) name: String,
    /// `SQL_…`.
    pub(crate) sql_type: i16,
    /// Characters, bytes or digits; 0 where unknown.
    pub(crate) size: usize,
    /// Digits behind the point.
    pub(crate) digits: i16,
    pub(crate) nullable: Option<bool>,
    pub(crate) type_name: String,
    pub(crate) unsigned: bool,
    /// `SQL_DESC_OCTET_LENGTH`, 0 where unknown.
    pub(crate) octets: usize,
}

/// Returns whether so many bytes are whole units of text with this terminator.
#[inline]
pub(crate) fn is_whole_units(n_bytes: usize, terminator: usize) -> bool {
    n_bytes & (terminator >> 1) == 0
}
