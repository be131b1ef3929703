//! The JSON reader: for every form of a text its result is that of the reference implementation and
//! of serde_json. A text that one of them refuses is refused by all.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onecopy_text::convert::{Kernels, Work, with_kernels};
use onecopy_text::{Policy, Units, find_malformed};
use onecopy_wire::json::read::naive::{Tree, Value, parse};
use onecopy_wire::json::read::{
    SourceForm, LEAST_PART_BYTES, Latin1, Limits, TextPosition, ReadError, Reason, Ucs2, Ucs4, Utf8,
    read_all,
};

/// The depth limit; it is less than that of serde_json.
const DEPTH: usize = 100;

struct Reading<'a, F: SourceForm>(&'a [F::Unit], Policy);

impl<F: SourceForm> Work for Reading<'_, F> {
    type Output = Result<Value, ReadError>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Self::Output {
        let mut tree = Tree::new(self.1);
        let limits = Limits { max_depth: DEPTH };
        read_all::<F, K, _>(kernels, self.0, limits, &mut tree)?;
        Ok(tree.finish().expect("a value was read"))
    }
}

fn read<F: SourceForm>(text: &[F::Unit], policy: Policy) -> Result<Value, ReadError> {
    with_kernels(Reading::<F>(text, policy))
}

fuzz_target!(|data: &[u8]| {
    let found = read::<Utf8>(data, Policy::Strict);
    if let Err(e) = &found {
        assert!(e.at_units <= data.len());
        let place = TextPosition::of(Units::Utf8(data), e.at_units);
        assert!(place.line >= 1 && place.column >= 1 && place.char_index <= place.byte_index);
        if let Reason::Malformed(kind) = e.reason {
            let malformed = find_malformed(Units::Utf8(data)).expect("it is malformed");
            assert_eq!((malformed.kind, malformed.at_units), (kind, e.at_units));
        }
    }
    match serde_json::from_slice::<serde_json::Value>(data) {
        Ok(other) => match &found {
            Ok(found) => assert!(is_same(found, &other), "{found:?} {other:?}"),
            Err(e) => assert_eq!(e.reason, Reason::Depth, "{}", data.escape_ascii()),
        },
        Err(e) if e.to_string().contains("number out of range") => {}
        Err(e) => assert!(found.is_err(), "{e}: {}", data.escape_ascii()),
    }
    let Ok(text) = std::str::from_utf8(data) else {
        assert!(found.is_err(), "malformed");
        return;
    };
    let chars: Vec<u32> = text.chars().map(u32::from).collect();
    let latin1: Option<Vec<u8>> = chars.iter().map(|&c| u8::try_from(c).ok()).collect();
    let ucs2: Option<Vec<u16>> = chars.iter().map(|&c| u16::try_from(c).ok()).collect();
    for policy in [Policy::Strict, Policy::Replace, Policy::SurrogatePass] {
        let expected = parse(&chars, policy, DEPTH);
        assert_eq!(read::<Utf8>(data, policy).ok(), expected);
        assert_eq!(read::<Ucs4>(&chars, policy).ok(), expected);
        if let Some(latin1) = &latin1 {
            assert_eq!(read::<Latin1>(latin1, policy).ok(), expected);
        }
        if let Some(ucs2) = &ucs2 {
            assert_eq!(read::<Ucs2>(ucs2, policy).ok(), expected);
        }
        unescape_in_parts(data, policy);
    }
});

/// Unescapes the strings of the text again with the kernels, in parts of the smallest size.
fn unescape_in_parts(data: &[u8], policy: Policy) {
    struct Parts<'a>(&'a [u8], Policy);
    impl Work for Parts<'_> {
        type Output = ();

        #[inline(always)]
        fn run<K: Kernels>(self, kernels: K) {
            let mut rest = self.0;
            while let Some(start) = rest.iter().position(|&b| b == b'"') {
                rest = &rest[start + 1..];
                let Some(end) = kernels.closing_quote_u8(rest) else {
                    break;
                };
                let text = onecopy_wire::json::read::Escaped::of(Units::Utf8(&rest[..end]));
                let expected: Result<Vec<u32>, _> = text.chars(self.1).collect();
                let (mut from, mut made) = (0, Ok(Vec::new()));
                while from < end {
                    let mut out = [0; LEAST_PART_BYTES];
                    match text.unescape(kernels, from, self.1, &mut out) {
                        Ok(part) => {
                            assert!(part.n_read > 0);
                            from += part.n_read;
                            if let Ok(made) = &mut made {
                                made.extend_from_slice(&out[..part.n_written]);
                            }
                        }
                        Err(e) => {
                            made = Err(e);
                            break;
                        }
                    }
                }
                match (made, expected) {
                    (Ok(made), Ok(expected)) if self.1 != Policy::SurrogatePass => {
                        let made = std::str::from_utf8(&made).expect("the text is well-formed");
                        assert!(made.chars().map(u32::from).eq(expected));
                    }
                    (Ok(_), Ok(_)) => {}
                    (made, expected) => assert_eq!(made.err(), expected.err()),
                }
                rest = &rest[end + 1..];
            }
        }
    }
    with_kernels(Parts(data, policy));
}

/// Returns true if both values are the same for serde_json, which keeps only the last of two equal
/// keys and reads integers of more than 64 bits as floats.
fn is_same(found: &Value, other: &serde_json::Value) -> bool {
    let text =
        |text: &[u32]| -> String { text.iter().filter_map(|&c| char::from_u32(c)).collect() };
    match (found, other) {
        (Value::Null, serde_json::Value::Null) => true,
        (Value::Bool(a), serde_json::Value::Bool(b)) => a == b,
        (Value::Int(digits), serde_json::Value::Number(number)) => {
            // serde_json reads `-0` as a float.
            number.to_string() == *digits
                || (number.is_f64() && digits.parse() == Ok(number.as_f64().unwrap_or(f64::NAN)))
        }
        (Value::Float(bits), serde_json::Value::Number(number)) => {
            // serde_json may differ from the nearest float by one unit in the last place.
            number
                .as_f64()
                .is_some_and(|value| value.to_bits().abs_diff(*bits) <= 1)
        }
        (Value::Str(a), serde_json::Value::String(b)) => text(a) == *b,
        (Value::Array(a), serde_json::Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), serde_json::Value::Object(b)) => {
            b.iter().all(|(key, value)| {
                let last = a.iter().rev().find(|(name, _)| text(name) == *key);
                last.is_some_and(|(_, found)| is_same(found, value))
            }) && a.iter().all(|(key, _)| b.contains_key(&text(key)))
        }
        _ => false,
    }
}
