//! `SqlUnit`: the unit of text in an ODBC call. Functions such as `SQLExecDirect` use bytes,
//! functions such as `SQLExecDirectW` use 16-bit units. Code that is generic over this trait calls
//! either.

use std::cell::Cell;
use std::thread::LocalKey;

/// The unit of text in an ODBC call: `SQLCHAR` (a byte) or `SQLWCHAR` (16 bits).
pub(super) trait SqlUnit: Copy + Default + PartialEq + 'static {
    /// Returns the buffer of this thread into which drivers write messages.
    fn message_buffer() -> &'static LocalKey<Cell<Vec<Self>>>;

    /// Converts units to text. U+FFFD replaces malformed units, which is acceptable because this
    /// function converts only names and messages.
    fn text_lossy(units: &[Self]) -> String;
}

thread_local! {
    static NARROW: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    static WIDE: Cell<Vec<u16>> = const { Cell::new(Vec::new()) };
}

impl SqlUnit for u8 {
    fn message_buffer() -> &'static LocalKey<Cell<Vec<u8>>> {
        &NARROW
    }

    fn text_lossy(units: &[u8]) -> String {
        String::from_utf8_lossy(units).into_owned()
    }
}

impl SqlUnit for u16 {
    fn message_buffer() -> &'static LocalKey<Cell<Vec<u16>>> {
        &WIDE
    }

    fn text_lossy(units: &[u16]) -> String {
        String::from_utf16_lossy(units)
    }
}

/// Returns the text in `units` before the first NUL; all of the text if `units` contains no NUL.
pub(super) fn until_nul<U: SqlUnit>(units: &[U]) -> String {
    let nul = units.iter().position(|u| *u == U::default());
    U::text_lossy(&units[..nul.unwrap_or(units.len())])
}

/// Returns the text that `call` writes into a zeroed buffer of `N` units, up to its terminator. The
/// length that ODBC functions report is not used: some drivers report bytes, others characters.
pub(super) fn written<U: SqlUnit, const N: usize>(call: impl FnOnce(*mut U)) -> String {
    let mut buffer = [U::default(); N];
    call(buffer.as_mut_ptr());
    until_nul(&buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_ends_at_its_terminator_or_with_its_buffer() {
        assert_eq!(until_nul("é\0x".as_bytes()), "é");
        assert_eq!(until_nul(b"abc"), "abc");
        let wide: Vec<u16> = "日😀\0x".encode_utf16().collect();
        assert_eq!(until_nul(&wide), "日😀");
        assert_eq!(written::<u16, 4>(|_| ()), "");
    }
}
