//! [`check`]: validation of BSON bytes.

use onecopy_text::convert::{Kernels, Work, with_kernels};
use onecopy_text::is_utf8;

use super::read::{self, BsonEvents, EventResult, ReadError, Rules, malformed};

/// Validates the document at the start of `bytes` and returns its length in bytes. Lengths,
/// terminators, type tags, booleans and the nesting depth must be valid. A UUID must have 16 bytes.
/// All texts and keys, including those of arrays, must be UTF-8.
///
/// Nothing is copied.
///
/// # Errors
/// Returns a [`ReadError`].
pub fn check(bytes: &[u8], rules: Rules) -> Result<usize, ReadError> {
    with_kernels(CheckTask { bytes, rules })
}

struct CheckTask<'a> {
    bytes: &'a [u8],
    rules: Rules,
}

impl Work for CheckTask<'_> {
    type Output = Result<usize, ReadError>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Self::Output {
        read::read(kernels, self.bytes, self.rules, &mut Check)
    }
}

/// The event handler of [`check`]. It validates only that text is UTF-8. The reader validates
/// everything else before it calls the event handler.
struct Check;

#[inline(always)]
fn text(text: &[u8]) -> EventResult {
    match is_utf8(text) {
        true => Ok(()),
        false => Err(malformed(text)),
    }
}

macro_rules! good {
    ($($name:ident($($argument:ty),*)),* $(,)?) => {
        $(
            #[inline(always)]
            fn $name(&mut self, $(_: $argument),*) -> EventResult {
                Ok(())
            }
        )*
    };
}

impl BsonEvents for Check {
    good!(
        begin_document(),
        end_document(),
        begin_array(),
        end_array(),
        end_code_with_scope(),
        double(f64),
        binary(u8, &[u8]),
        undefined(),
        object_id(&[u8; 12]),
        boolean(bool),
        datetime(i64),
        null(),
        int32(i32),
        timestamp(u32, u32),
        int64(i64),
        decimal128(&[u8; 16]),
        min_key(),
        max_key(),
    );

    #[inline(always)]
    fn key(&mut self, key: &[u8]) -> EventResult {
        text(key)
    }
    #[inline(always)]
    fn other_array_key(&mut self, key: &[u8]) -> EventResult {
        text(key)
    }
    fn begin_code_with_scope(&mut self, code: &[u8]) -> EventResult {
        text(code)
    }
    #[inline(always)]
    fn string(&mut self, string: &[u8]) -> EventResult {
        text(string)
    }
    fn regex(&mut self, pattern: &[u8], options: &[u8]) -> EventResult {
        text(pattern)?;
        text(options).map_err(|e| e.later_by(pattern.len() + 1))
    }
    fn db_pointer(&mut self, name: &[u8], _: &[u8; 12]) -> EventResult {
        text(name)
    }
    fn code(&mut self, code: &[u8]) -> EventResult {
        text(code)
    }
    fn symbol(&mut self, symbol: &[u8]) -> EventResult {
        text(symbol)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bson::naive::{Value, tree};
    use crate::bson::read::Reason;

    #[test]
    fn what_is_cut_or_malformed_is_told_with_its_byte() {
        let bytes = tree::write(&vec![
            ("é".to_owned(), Value::String("ü".to_owned())),
            ("r".to_owned(), Value::Regex("a".to_owned(), "ö".to_owned())),
            ("d".to_owned(), Value::Double(1)),
        ]);
        assert_eq!(check(&bytes, Rules::default()), Ok(bytes.len()));
        for n in 0..bytes.len() {
            assert!(check(&bytes[..n], Rules::default()).is_err(), "{n}");
        }
        let mut n_texts = 0;
        for at in 0..bytes.len() {
            if bytes[at] == 0xC3 {
                let mut bad = bytes.clone();
                bad[at + 1] = b'x';
                let error = check(&bad, Rules::default()).expect_err("malformed");
                assert!(matches!(error.reason, Reason::Malformed(_)));
                assert_eq!(error.offset_bytes, at);
                n_texts += 1;
            }
        }
        assert_eq!(n_texts, 3);
    }
}
