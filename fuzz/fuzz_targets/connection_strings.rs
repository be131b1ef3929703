//! ODBC connection strings: the string that is passed to the driver has the same pairs, and texts
//! that are shown to people contain no secret.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onecopy_fuzz::parts;
use onecopy_rows::odbc::fuzzing::ConnectionString;

/// Keywords whose values must never be shown.
const SECRET: [&str; 5] = ["Pwd", "PASSWORD", "AccessToken", "client_secret", "Api-Key"];

fuzz_target!(|text: &str| {
    let [before, secret, after] = parts(text);
    check(before);
    // A value in braces is taken literally.
    let keyword = SECRET[after.len() % SECRET.len()];
    let quoted = format!("{{{}}}", secret.replace('}', "}}"));
    let parsed = ConnectionString::parse(&format!("{keyword}={quoted};{after}"));
    assert_eq!(parsed.get(keyword), Some(secret));
    check(&format!("{before};{keyword}={quoted};{after}"));
});

fn check(text: &str) {
    let string = ConnectionString::parse(text);
    let driver = string.to_driver();
    let again = ConnectionString::parse(&driver);
    assert_eq!(again, string, "{text:?} became {driver:?}");
    assert_eq!(again.to_driver(), driver);
    for shown in [string.redacted(), format!("{string:?}")] {
        for keyword in SECRET {
            // A secret of stars, or a short one, may occur in the shown text by chance.
            let is_long = |s: &&str| s.chars().count() >= 8 && !s.contains('*');
            if let Some(secret) = string.get(keyword).filter(is_long) {
                assert!(!shown.contains(secret), "{secret:?} is shown: {shown:?}");
            }
        }
    }
}
