//! Tests the options for lone surrogates, and the limits of depth and size, of the conversion from
//! Extended JSON.

use super::*;

#[test]
fn lone_surrogates_are_replaced_where_this_is_asked() {
    let options = FromJson {
        surrogates: Policy::Replace,
        ..FromJson::default()
    };
    let found = bson_with(r#"{"a":"x\ud800y"}"#, &options).expect("replaced");
    let all = naive::documents(&found).expect("a document");
    assert_eq!(all[0][0].1, text("x\u{FFFD}y"));
    let units: Vec<u16> = "{\"a\":\"x"
        .encode_utf16()
        .chain([0xD800])
        .chain("y\"}".encode_utf16())
        .collect();
    let mut sink = Vec::new();
    from_json::<Ucs2, _>(&units, 0, &options, &mut sink).expect("replaced");
    assert_eq!(sink, found);
    let error = from_json::<Ucs2, _>(&units, 0, &FromJson::default(), &mut sink)
        .expect_err("a lone surrogate");
    assert_eq!(
        (error.reason, error.at_units),
        (Reason::Json(read::Reason::Surrogate), 7)
    );
}

#[test]
fn depth_and_size_are_limited() {
    let nested = |n: usize| format!("{{\"a\":{}{}}}", "[".repeat(n), "]".repeat(n));
    assert!(bson(&nested(999)).is_ok());
    assert_eq!(
        bson(&nested(1000)),
        Err((Reason::Json(read::Reason::Depth), 5 + 999))
    );
    let deep = "[".repeat(100_000);
    assert_eq!(
        bson(&format!("{{\"a\":{deep}")),
        Err((Reason::Json(read::Reason::Depth), 5 + 999))
    );
    let json = r#"{"a":"0123456789","b":[1,2]}"#;
    let whole = bson(json).expect("good").len();
    let limit = |max_bytes| FromJson {
        max_bytes,
        ..FromJson::default()
    };
    assert_eq!(bson_with(json, &limit(whole)).map(|b| b.len()), Ok(whole));
    for most in 0..whole {
        let (reason, _) = bson_with(json, &limit(most)).expect_err("too long");
        assert_eq!(reason, Reason::TooLong(most));
    }
}
