//! Text as calls pass it: bytes in narrow ones, 16-bit units in wide ones. What is the same in both is written once.

use std::cell::Cell;
use std::thread::LocalKey;

/// `SQLCHAR` or `SQLWCHAR`.
pub(super) trait Unit: Copy + Default + PartialEq + 'static {
    /// A thread's room for messages, which goes from one to the next.
    fn room() -> &'static LocalKey<Cell<Vec<Self>>>;

    /// Units as text, U+FFFD for what is malformed: names and messages are for people.
    fn text_lossy(units: &[Self]) -> String;
}

thread_local! {
    static NARROW: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    static WIDE: Cell<Vec<u16>> = const { Cell::new(Vec::new()) };
}

impl Unit for u8 {
    fn room() -> &'static LocalKey<Cell<Vec<u8>>> {
        &NARROW
    }

    fn text_lossy(units: &[u8]) -> String {
        String::from_utf8_lossy(units).into_owned()
    }
}

impl Unit for u16 {
    fn room() -> &'static LocalKey<Cell<Vec<u16>>> {
        &WIDE
    }

    fn text_lossy(units: &[u16]) -> String {
        String::from_utf16_lossy(units)
    }
}

/// The text before the terminator; all of it where there is none.
pub(super) fn until_nul<U: Unit>(units: &[U]) -> String {
    let nul = units.iter().position(|u| *u == U::default());
    U::text_lossy(&units[..nul.unwrap_or(units.len())])
}

/// The text that `call` writes into a zeroed buffer of `N` units. Its length counts for nothing: some drivers give it in
/// bytes and others in characters.
pub(super) fn written<U: Unit, const N: usize>(call: impl FnOnce(*mut U)) -> String {
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
