//! The BSON reader: it accepts the documents that the reference implementation accepts, and refuses
//! others with a position. Fields that are read one by one are those of the whole document. A
//! document that is read and written again has the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onecopy_text::convert::{Kernels, Work, with_kernels};
use onecopy_text::{Units, find_malformed};
use onecopy_wire::bson::naive::{self, Document, Tree, has_index_keys};
use onecopy_wire::bson::read::{
    ArrayKeys, BsonEvents, Element, Elements, ReadError, Reason, Rules, read_all, read_value,
};

/// The depth limit, since the reference implementation is recursive.
const DEPTH: usize = 100;

fn rules(array_keys: ArrayKeys) -> Rules {
    Rules {
        max_depth: DEPTH,
        array_keys,
        ..Rules::default()
    }
}

enum Reading<'a> {
    Whole(&'a [u8], ArrayKeys),
    Field(&'a [u8], &'a Element<'a>),
}

impl Work for Reading<'_> {
    type Output = Result<Document, ReadError>;

    #[inline(always)]
    fn run<K: Kernels>(self, kernels: K) -> Self::Output {
        let mut tree = Tree::default();
        match self {
            Reading::Whole(data, keys) => read_all(kernels, data, rules(keys), &mut tree)?,
            Reading::Field(data, element) => {
                tree.begin_document().expect("begun");
                let key = tree.key(element.key);
                key.map_err(|e| ReadError {
                    reason: e.reason,
                    offset_bytes: element.at + 1 + e.at_bytes,
                })?;
                read_value(kernels, data, element, rules(ArrayKeys::Any), &mut tree)?;
                tree.end_document().expect("ended");
            }
        }
        Ok(tree.finish().expect("a document was read"))
    }
}

fn by_elements(data: &[u8]) -> Result<Document, ReadError> {
    let mut elements = Elements::of(data)?;
    let mut document = Vec::new();
    while let Some(element) = elements.next_element()? {
        document.extend(with_kernels(Reading::Field(data, &element))?);
    }
    Ok(document)
}

fuzz_target!(|data: &[u8]| {
    // For half of the inputs the length of the document is corrected.
    let mut data = data.to_vec();
    if data.len() >= 5 && data[0] & 1 == 1 {
        let length = (data.len() as u32).to_le_bytes();
        data[..4].copy_from_slice(&length);
    }
    let found = with_kernels(Reading::Whole(&data, ArrayKeys::Any));
    if let Err(e) = &found {
        assert!(e.offset_bytes <= data.len());
        if let Reason::Malformed(_) = e.reason {
            let malformed = find_malformed(Units::Utf8(&data[e.offset_bytes..]));
            assert!(malformed.is_some_and(|malformed| malformed.at_units == 0));
        }
    }
    assert_eq!(by_elements(&data).ok(), found.clone().ok());
    match &found {
        Err(ReadError { reason: Reason::Depth, .. }) => return,
        _ => {
            let reference = naive::documents(&data).filter(|all| all.len() == 1);
            assert_eq!(found.clone().ok().map(|document| vec![document]), reference);
        }
    }
    let strict = with_kernels(Reading::Whole(&data, ArrayKeys::Strict));
    if let Ok(document) = found {
        assert_eq!(strict.is_ok(), has_index_keys(&document));
        // Each value has exactly one encoding, so the bytes must be equal.
        assert_eq!(naive::write(&document), data);
    } else {
        assert!(strict.is_err());
    }
});
