//! Compares the reader with its reference implementation, for documents with values of all types,
//! and for such documents with one changed byte. Other tests check the position of each error.

use onecopy_text::convert::{Kernels, Work, with_kernels};
use proptest::prelude::*;

use super::super::naive::{self, Document, Tree, Value, has_index_keys};
use super::super::{SUBTYPE_OLD, SUBTYPE_OLD_UUID, SUBTYPE_UUID, UUID_BYTES};
use super::*;

struct ReadTree<'a>(&'a [u8], Rules);

impl Work for ReadTree<'_> {
    type Output = Result<Document, ReadError>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Self::Output {
        let mut tree = Tree::default();
        read_all(kernels, self.0, self.1, &mut tree)?;
        Ok(tree.finish().expect("a complete document"))
    }
}

fn tree(bytes: &[u8], rules: Rules) -> Result<Document, ReadError> {
    with_kernels(ReadTree(bytes, rules))
}

/// The arguments of a test function that writes the key and the value of a BSON element into a
/// tree. The first field is the document, the second is the element.
struct ReadValue<'a>(&'a [u8], &'a Element<'a>);

impl Work for ReadValue<'_> {
    type Output = Result<Document, ReadError>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Self::Output {
        let mut tree = Tree::default();
        tree.begin_document().expect("accepted");
        tree.key(self.1.key).expect("a key");
        read_value(kernels, self.0, self.1, Rules::default(), &mut tree)?;
        tree.end_document().expect("accepted");
        Ok(tree.finish().expect("a complete document"))
    }
}

/// Reads a BSON document by another way than `tree`: [`Elements`] iterates over the elements, and
/// [`read_value`] reads each value.
fn by_elements(bytes: &[u8]) -> Result<Document, ReadError> {
    let mut elements = Elements::of(bytes)?;
    let mut document = Vec::new();
    while let Some(element) = elements.next_element()? {
        let key = str::from_utf8(element.key).map_err(|_| ReadError {
            reason: malformed(element.key).reason,
            offset_bytes: element.at + 1 + malformed(element.key).at_bytes,
        })?;
        assert_eq!(bytes[element.at], element.tag);
        assert!(bytes[element.at + 1..].starts_with(key.as_bytes()));
        assert!(bytes[element.value_at..].starts_with(element.value));
        document.extend(with_kernels(ReadValue(bytes, &element))?);
    }
    Ok(document)
}

fn with_depth(max_depth: usize) -> Rules {
    Rules {
        max_depth,
        ..Rules::default()
    }
}

const STRICT: Rules = Rules {
    max_depth: 1000,
    max_bytes: usize::MAX,
    array_keys: ArrayKeys::Strict,
};

#[track_caller]
fn refused(bytes: &[u8], reason: Reason, offset_bytes: usize) {
    let expected = ReadError {
        reason,
        offset_bytes,
    };
    assert_eq!(tree(bytes, Rules::default()), Err(expected), "{bytes:?}");
    // Reading the elements separately finds the same error at the same position. An error inside an
    // embedded document is found when the value of the element is read.
    assert_eq!(by_elements(bytes), Err(expected), "{bytes:?}");
}

/// Returns the bytes of the document that consists of `elements`.
fn document(elements: &[u8]) -> Vec<u8> {
    let length = elements.len() as u32 + 5;
    [&length.to_le_bytes(), elements, &[0]].concat()
}

fn text() -> impl Strategy<Value = String> + Clone {
    prop_oneof![
        "[a-z]{0,20}",
        "[ -~]{0,100}",
        ".{0,40}",
        "[а-я東京😀]{0,60}"
    ]
    .boxed()
}

fn key() -> impl Strategy<Value = String> + Clone {
    text().prop_map(|text| text.replace('\0', "")).boxed()
}

/// Returns a binary value of the subtype `subtype`. For the UUID subtypes, `bytes` is truncated or
/// extended to 16 bytes.
fn binary(subtype: u8, mut bytes: Vec<u8>) -> Value {
    if matches!(subtype, SUBTYPE_OLD_UUID | SUBTYPE_UUID) {
        bytes.resize(UUID_BYTES, 0);
    }
    Value::Binary(subtype, bytes)
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<u64>().prop_map(Value::Double),
        text().prop_map(Value::String),
        (any::<u8>(), prop::collection::vec(any::<u8>(), 0..40))
            .prop_map(|(subtype, bytes)| binary(subtype, bytes)),
        (3..5_u8, prop::collection::vec(any::<u8>(), 16)).prop_map(|(s, bytes)| binary(s, bytes)),
        prop::collection::vec(any::<u8>(), 0..9).prop_map(|bytes| Value::Binary(2, bytes)),
        Just(Value::Undefined),
        any::<[u8; 12]>().prop_map(Value::ObjectId),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::DateTime),
        Just(Value::Null),
        (key(), key()).prop_map(|(pattern, options)| Value::Regex(pattern, options)),
        (text(), any::<[u8; 12]>()).prop_map(|(name, id)| Value::DbPointer(name, id)),
        text().prop_map(Value::Code),
        text().prop_map(Value::Symbol),
        any::<i32>().prop_map(Value::Int32),
        any::<(u32, u32)>().prop_map(|(seconds, increment)| Value::Timestamp(seconds, increment)),
        any::<i64>().prop_map(Value::Int64),
        any::<[u8; 16]>().prop_map(Value::Decimal128),
        Just(Value::MinKey),
        Just(Value::MaxKey),
    ]
}

fn indexed(values: Vec<Value>) -> Document {
    let items = values.into_iter().enumerate();
    items.map(|(i, value)| (i.to_string(), value)).collect()
}

fn documents() -> impl Strategy<Value = Document> {
    let value = scalar().prop_recursive(6, 60, 12, |inner| {
        let elements = prop::collection::vec((key(), inner.clone()), 0..12);
        prop_oneof![
            elements.clone().prop_map(Value::Document),
            (text(), elements.clone()).prop_map(|(code, scope)| Value::CodeWithScope(code, scope)),
            prop::collection::vec(inner, 0..24).prop_map(|values| Value::Array(indexed(values))),
            elements.prop_map(Value::Array),
        ]
    });
    prop::collection::vec((key(), value), 0..12)
}

proptest! {
    #[test]
    fn a_document_is_told_as_it_was_written(document in documents()) {
        let bytes = naive::write(&document);
        prop_assert_eq!(naive::documents(&bytes), Some(vec![document.clone()]));
        prop_assert_eq!(tree(&bytes, Rules::default()), Ok(document.clone()));
        prop_assert_eq!(by_elements(&bytes), Ok(document.clone()));
        let strict = tree(&bytes, STRICT);
        if has_index_keys(&document) {
            prop_assert_eq!(strict, Ok(document));
        } else {
            prop_assert_eq!(strict.map_err(|e| e.reason), Err(Reason::ArrayKey));
        }
    }

    #[test]
    fn what_was_harmed_is_read_as_by_the_twin(
        document in documents(),
        harm in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        is_small in any::<bool>(),
    ) {
        let mut bytes = naive::write(&document);
        for (at, byte) in harm {
            let at = at.index(bytes.len());
            // Small changes of a byte produce lengths that are nearly correct.
            bytes[at] = if is_small { bytes[at].wrapping_add(byte % 3).wrapping_sub(1) } else { byte };
        }
        let expected = naive::documents(&bytes).filter(|all| all.len() == 1);
        let found = tree(&bytes, Rules::default());
        prop_assert_eq!(by_elements(&bytes).ok(), found.clone().ok());
        match found {
            Ok(found) => prop_assert_eq!(Some(vec![found]), expected),
            Err(e) => {
                prop_assert_eq!(expected, None, "{}", e);
                prop_assert!(e.offset_bytes <= bytes.len(), "{}", e);
            }
        }
    }

    #[test]
    fn any_bytes_are_read_as_by_the_twin(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let mut bytes = bytes;
        if let Some(length) = bytes.first_chunk_mut::<4>() {
            *length = [length[0] % 64, 0, 0, 0];
        }
        let expected = naive::documents(&bytes).filter(|all| all.len() == 1);
        prop_assert_eq!(tree(&bytes, Rules::default()).ok().map(|found| vec![found]), expected);
    }

    #[test]
    fn what_is_cut_off_is_refused(document in documents(), at in any::<prop::sample::Index>()) {
        let bytes = naive::write(&document);
        let cut = &bytes[..at.index(bytes.len())];
        prop_assert_eq!(tree(cut, Rules::default()).map_err(|e| e.reason), Err(Reason::End));
    }
}

#[test]
fn lengths_of_documents_are_checked() {
    refused(b"", Reason::End, 0);
    refused(b"\x05\0\0", Reason::End, 0);
    refused(b"\x06\0\0\0\0", Reason::End, 0);
    refused(b"\x04\0\0\0\0", Reason::DocumentLength, 0);
    refused(b"\0\0\0\0\0", Reason::DocumentLength, 0);
    refused(b"\xFF\xFF\xFF\xFF\0", Reason::DocumentLength, 0);
    refused(b"\x05\0\0\0\x01", Reason::NoTerminator, 4);
    refused(b"\x05\0\0\0\0\0", Reason::TrailingData, 5);
    refused(&document(b"\0"), Reason::EarlyEnd, 4);
    refused(&document(b"\x0Aa\0\0\x0Ab\0"), Reason::EarlyEnd, 7);
    let limited = Rules {
        max_bytes: 7,
        ..Rules::default()
    };
    assert!(tree(b"\x05\0\0\0\0", limited).is_ok());
    let e = tree(&document(b"\x0Aa\0"), limited).map_err(|e| (e.reason, e.offset_bytes));
    assert_eq!(e, Err((Reason::Size, 0)));
}

#[test]
fn lengths_inside_are_checked_against_what_is_left() {
    for tag in [b"\x03", b"\x04"] {
        let inner = |bytes: &[u8]| document(&[tag, &b"a\0"[..], bytes].concat());
        refused(&inner(b"\x04\0\0\0\0"), Reason::DocumentLength, 7);
        refused(&inner(b"\xFF\xFF\xFF\xFF\0"), Reason::DocumentLength, 7);
        refused(&inner(b"\x06\0\0\0\0"), Reason::Length, 7);
        refused(&inner(b"\x05\0\0"), Reason::Value, 7);
        refused(&inner(b"\x05\0\0\0\x01"), Reason::NoTerminator, 11);
        refused(&inner(b"\x08\0\0\0\x0A\0\0\0"), Reason::EarlyEnd, 13);
    }
    for tag in [b"\x02", b"\x0D", b"\x0E"] {
        let inner = |bytes: &[u8]| document(&[tag, &b"a\0"[..], bytes].concat());
        refused(&inner(b"\0\0\0\0\0"), Reason::TextLength, 7);
        refused(&inner(b"\xFF\xFF\xFF\xFF\0"), Reason::TextLength, 7);
        refused(&inner(b"\x02\0\0\0\0"), Reason::Length, 7);
        refused(&inner(b"\x02\0\0\0ab\0"), Reason::TextEnd, 12);
        refused(&inner(b"\x02\0\0"), Reason::Value, 7);
    }
    refused(&document(b"\x05a\0\x02\0\0\0\0b"), Reason::Length, 7);
    refused(
        &document(b"\x05a\0\xFF\xFF\xFF\xFF\0"),
        Reason::BinaryLength,
        7,
    );
    refused(&document(b"\x05a\0\x01\0\0\0"), Reason::Value, 11);
    refused(
        &document(b"\x05a\0\x03\0\0\0\x02abc"),
        Reason::OldBinary,
        12,
    );
    refused(
        &document(b"\x05a\0\x05\0\0\0\x02\x02\0\0\0a"),
        Reason::OldBinary,
        12,
    );
    refused(
        &document(b"\x05a\0\x05\0\0\0\x02\0\0\0\0a"),
        Reason::OldBinary,
        12,
    );
    refused(&document(b"\x01a\0\0\0\0\0\0\0\0"), Reason::Value, 7);
    refused(&document(b"\x07a\0twelve byte"), Reason::Value, 7);
    refused(
        &document(b"\x0Ca\0\x02\0\0\0a\0twelve byte"),
        Reason::Value,
        13,
    );
    refused(&document(b"\x10a\0\0\0\0"), Reason::Value, 7);
}

#[test]
fn binary_of_the_subtype_of_a_uuid_without_16_bytes_is_refused() {
    let data = [7; 33];
    for subtype in 0..=255_u8 {
        for n in (0..data.len()).filter(|n| subtype != SUBTYPE_OLD || *n == 33) {
            let value = [&[n as u8, 0, 0, 0, subtype], &data[..n]].concat();
            let bytes = document(&[b"\x05a\0", &value[..]].concat());
            if matches!(subtype, 3 | 4) && n != 16 {
                refused(&bytes, Reason::Uuid, 12);
            } else if subtype != SUBTYPE_OLD {
                let expected = Value::Binary(subtype, data[..n].to_vec());
                let found = tree(&bytes, Rules::default()).expect("good");
                assert_eq!(found, [("a".to_owned(), expected)]);
            }
        }
    }
}

#[test]
fn a_key_of_an_array_is_text_whether_it_is_the_index_or_not() {
    let array = |items: &[u8]| document(&[b"\x04a\0", &document(items)[..]].concat());
    let start = Reason::Malformed(onecopy_text::MalformedKind::InvalidStartByte);
    refused(&array(b"\x0A\xFF\0"), start, 12);
    refused(&array(b"\x0A0\0\x0Aab\xFF\0"), start, 17);
    // After an array inside this array, the reader has to find the index of the next item again.
    refused(&array(b"\x040\0\x05\0\0\0\0\x0A\xFF\0"), start, 20);
    refused(&array(b"\x040\0\x08\0\0\0\x0A0\0\0\x0A1\xFF\0"), start, 24);
    let error = |bytes: &[u8]| tree(bytes, STRICT).map_err(|e| e.reason);
    assert_eq!(error(&array(b"\x0A\xFF\0")), Err(Reason::ArrayKey));
    assert!(tree(&array("\x0Aé\0".as_bytes()), Rules::default()).is_ok());
}

#[test]
fn tags_booleans_and_texts_without_an_end_are_refused() {
    for tag in (0x14..0x7F).chain(0x80..0xFF) {
        refused(
            &document(&[0x0A, b'a', 0, tag, b'b', 0]),
            Reason::Tag(tag),
            7,
        );
    }
    refused(&document(b"\x08a\0\x02"), Reason::Boolean(2), 7);
    refused(&document(b"\x08a\0\xFF"), Reason::Boolean(0xFF), 7);
    refused(&document(b"\x0Aa"), Reason::OpenText, 5);
    refused(
        &document(b"\x0Aa key of several words"),
        Reason::OpenText,
        5,
    );
    refused(&document(b"\x0Ba\0pattern"), Reason::OpenText, 7);
    refused(&document(b"\x0Ba\0pattern\0options"), Reason::OpenText, 15);
    refused(
        &document(b"\x04a\0\x08\0\0\0\x0A0\x01\0"),
        Reason::OpenText,
        12,
    );
}

#[test]
fn malformed_texts_are_refused_where_they_are() {
    use onecopy_text::MalformedKind::{InvalidContinuation, InvalidStartByte};
    let start = Reason::Malformed(InvalidStartByte);
    refused(&document(b"\x0Aab\xFF\0"), start, 7);
    refused(&document(b"\x02a\0\x04\0\0\0ab\xC0\0"), start, 13);
    refused(
        &document(b"\x02a\0\x04\0\0\0\xED\xA0\x80\0"),
        Reason::Malformed(InvalidContinuation),
        11,
    );
    refused(&document(b"\x0Ba\0b\xFF\0\0"), start, 8);
    refused(&document(b"\x0Ba\0b\0im\xFF\0"), start, 11);
    refused(
        &document(b"\x0Ca\0\x03\0\0\0a\xFF\0twelve bytes"),
        start,
        12,
    );
}

#[test]
fn code_with_a_scope_has_four_lengths_that_agree() {
    let scope = |lengths: [u8; 3], end: u8| {
        let [whole, code, scope] = lengths;
        document(
            &[
                b"\x0Fa\0" as &[u8],
                &[whole, 0, 0, 0, code, 0, 0, 0],
                b"f()\0",
                &[scope, 0, 0, 0, 0x0A, b'b', 0, end],
            ]
            .concat(),
        )
    };
    let good = tree(&scope([20, 4, 8], 0), Rules::default()).expect("good");
    let inner = vec![("b".to_owned(), Value::Null)];
    let expected = Value::CodeWithScope("f()".to_owned(), inner);
    assert_eq!(good, [("a".to_owned(), expected)]);
    refused(&scope([21, 4, 8], 0), Reason::Length, 7);
    refused(&scope([19, 4, 8], 0), Reason::ScopeLength, 19);
    refused(&scope([3, 4, 8], 0), Reason::ScopeLength, 7);
    refused(&scope([20, 4, 7], 0), Reason::ScopeLength, 19);
    refused(&scope([20, 4, 9], 0), Reason::ScopeLength, 19);
    refused(&scope([20, 0, 8], 0), Reason::TextLength, 11);
    refused(&scope([20, 200, 8], 0), Reason::Length, 11);
    refused(&scope([20, 3, 8], 0), Reason::TextEnd, 17);
    refused(&scope([20, 4, 8], 1), Reason::NoTerminator, 26);
}

#[test]
fn keys_of_arrays_are_looked_at_where_it_is_asked() {
    let array = |keys: &[&str]| {
        let elements: Vec<u8> = keys
            .iter()
            .flat_map(|key| [&[0x0A], key.as_bytes(), &[0]].concat())
            .collect();
        document(&[b"\x04a\0", &document(&elements)[..]].concat())
    };
    let error = |bytes: &[u8]| tree(bytes, STRICT).map_err(|e| (e.reason, e.offset_bytes));
    assert!(error(&array(&["0", "1", "2"])).is_ok());
    for keys in [
        &["0", "2"][..],
        &["0", ""],
        &["0", "01"],
        &["0", "a"],
        &["0", "1\u{80}"],
    ] {
        assert_eq!(error(&array(keys)), Err((Reason::ArrayKey, 15)), "{keys:?}");
        assert!(tree(&array(keys), Rules::default()).is_ok());
    }
    assert_eq!(error(&array(&["1"])), Err((Reason::ArrayKey, 12)));
}

#[test]
fn depth_is_counted_from_the_outermost_document() {
    let mut bytes = document(b"");
    for n in 1..200 {
        assert!(tree(&bytes, with_depth(n)).is_ok());
        let too_deep = tree(&bytes, with_depth(n - 1)).map_err(|e| e.reason);
        assert_eq!(too_deep, Err(Reason::Depth), "{n}");
        let tag = [b"\x03", b"\x04"][n % 2];
        bytes = document(&[&tag[..], b"0\0", &bytes].concat());
    }
    assert!(tree(&bytes, STRICT).is_ok());
    let deep = with_depth(1 << 20);
    let place = tree(&bytes, with_depth(7)).expect_err("too deep");
    assert_eq!(place.offset_bytes, 7 * 7);
    assert!(tree(&bytes, deep).is_ok());
}
