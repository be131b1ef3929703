//! Types that all column kinds share: `Raw`, the bytes of a value, and `Spec`, the binding of a
//! column.

use crate::odbc::ffi::c;
use crate::schema::ColumnType;

/// How the values of a column are fetched: the column's kind, the buffer to bind, and the column's
/// type in the schema.
pub(crate) type ColumnBinding<K> = (K, Spec, ColumnType);

/// The size in bytes of a slot (the buffer of one value) for a column whose declared size is
/// unknown or larger than [`DECLARED_BYTES`]. Values longer than the slot are read by `SQLGetData`.
pub(crate) const OPEN_BYTES: usize = 1024;
/// A column whose declared size is at most this number of bytes gets a slot of its declared size.
pub(crate) const DECLARED_BYTES: usize = 4096;

/// The bytes of a value that is not NULL: in the buffer to which the driver wrote it, or in the
/// `Arena` if the value was longer than that buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw<'b>(&'b [u8]);

impl<'b> Raw<'b> {
    /// Wraps the bytes of a value. The bytes must have the alignment of the block's buffers.
    pub(crate) fn new(bytes: &'b [u8]) -> Raw<'b> {
        Raw(bytes)
    }

    /// Returns the bytes of the value.
    #[inline]
    pub(crate) fn bytes(self) -> &'b [u8] {
        self.0
    }

    /// Returns the bytes `at..at + N` as an array; zeros if the value is shorter, which does not
    /// happen for a type of fixed size.
    #[inline]
    pub(crate) fn array<const N: usize>(self, at: usize) -> [u8; N] {
        self.0
            .get(at..at + N)
            .and_then(|b| b.try_into().ok())
            .unwrap_or([0; N])
    }

    /// Returns the 16-bit field at byte `at` of an ODBC struct.
    #[inline]
    pub(crate) fn u16(self, at: usize) -> u16 {
        u16::from_ne_bytes(self.array(at))
    }
}

/// The binding of a column: the type and the size of the buffer that the driver fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spec {
    /// The C data type of the buffer, `SQL_C_…`.
    pub(crate) c_type: i16,
    /// The size in bytes of a slot, the buffer of one value, including the terminator.
    pub(crate) bytes: usize,
    /// The size of the terminator in bytes: 0, 1 or 2.
    pub(crate) terminator: usize,
    /// `true` if the length of the values varies.
    pub(crate) variable: bool,
    /// `true` if a value may be longer than its slot, so that the driver truncates it.
    pub(crate) open: bool,
}

impl Spec {
    /// Creates the binding of a C type of fixed size.
    pub(crate) const fn fixed(c_type: i16, bytes: usize) -> Spec {
        Spec {
            c_type,
            bytes,
            terminator: 0,
            variable: false,
            open: false,
        }
    }

    /// Creates the binding of a column whose values the driver returns as short ASCII text, such as
    /// digits or times. This crate parses the text.
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

/// A driver's description of a column.
#[derive(Clone, Debug, Default)]
pub(crate) struct Described {
    pub(crate) name: String,
    /// The SQL type of the column, `SQL_…`.
    pub(crate) sql_type: i16,
    /// The size in characters, bytes or digits, as the driver reports it; 0 if it is unknown.
    pub(crate) size: usize,
    /// The number of digits after the decimal point, or in the fraction of a second.
    pub(crate) digits: i16,
    pub(crate) nullable: Option<bool>,
    pub(crate) type_name: String,
    pub(crate) unsigned: bool,
    /// The largest size of a value in bytes (`SQL_DESC_OCTET_LENGTH`); 0 if it is unknown.
    pub(crate) octets: usize,
}

/// Returns `true` if `n_bytes` is a multiple of the size of a unit. A unit of text is as large as
/// the text's terminator (1 or 2 bytes). For binary values, `terminator` is 0 and a unit is a byte.
#[inline]
pub(crate) fn is_whole_units(n_bytes: usize, terminator: usize) -> bool {
    n_bytes & (terminator >> 1) == 0
}
