//! Parses and writes ODBC connection strings: `keyword=value;…`. Braces surround a value with
//! special characters, and `}` is doubled inside them.
//!
//! Source: ODBC reference, `SQLDriverConnect`, "Connection strings". If a keyword occurs twice, the
//! first value applies; keywords are case-insensitive.

use std::fmt;

use super::secrets::{STARS, Secrets, is_secret_keyword};

/// A parsed connection string. Its `Debug` output and [`ConnectionString::redacted`] contain no
/// secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct ConnectionString {
    pairs: Vec<(String, String)>,
}

impl fmt::Debug for ConnectionString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.redacted())
    }
}

impl ConnectionString {
    /// Parses `text`. Parsing never fails: an entry without `=` is stored as a keyword without a
    /// value, and the driver will refuse it.
    pub(crate) fn parse(text: &str) -> ConnectionString {
        let mut pairs = Vec::new();
        let mut rest = text.trim_start_matches(|c| c == ';' || is_blank(c));
        while !rest.is_empty() {
            let end = rest.find(['=', ';']).unwrap_or(rest.len());
            let keyword = rest[..end].trim_matches(is_blank).to_owned();
            let value;
            if rest[end..].starts_with('=') {
                (value, rest) = take_value(&rest[end + 1..]);
            } else {
                value = String::new();
                rest = &rest[end..];
            }
            pairs.push((keyword, value));
            rest = rest.trim_start_matches(|c| c == ';' || is_blank(c));
        }
        ConnectionString { pairs }
    }

    /// Returns the value of `keyword`, whose case is ignored. Returns `None` if the string does not
    /// contain the keyword.
    pub(crate) fn get(&self, keyword: &str) -> Option<&str> {
        self.pairs
            .iter()
            .find(|(k, _)| k.eq_ignore_ascii_case(keyword))
            .map(|(_, v)| v.as_str())
    }

    /// Appends a pair, unless the string contains the keyword: the user's value has precedence.
    pub(crate) fn add_default(&mut self, keyword: &str, value: &str) {
        if self.get(keyword).is_none() {
            self.pairs.push((keyword.to_owned(), value.to_owned()));
        }
    }

    /// Sets the value of a keyword; an earlier value is replaced.
    pub(crate) fn set(&mut self, keyword: &str, value: &str) {
        match self
            .pairs
            .iter_mut()
            .find(|(k, _)| k.eq_ignore_ascii_case(keyword))
        {
            Some((_, v)) => value.clone_into(v),
            None => self.pairs.push((keyword.to_owned(), value.to_owned())),
        }
    }

    /// Returns the values that must never be shown, such as passwords.
    pub(crate) fn secrets(&self) -> Secrets {
        Secrets::new(
            self.pairs
                .iter()
                .filter(|(k, _)| is_secret_keyword(k))
                .map(|(_, v)| v.as_str()),
        )
    }

    /// Returns the connection string for the driver, including secrets: only for
    /// `SQLDriverConnect`.
    pub(crate) fn to_driver(&self) -> String {
        self.render(false)
    }

    /// Returns the connection string with `***` instead of every secret.
    pub(crate) fn redacted(&self) -> String {
        self.secrets().scrub(&self.render(true))
    }

    fn render(&self, redact: bool) -> String {
        let mut out = String::new();
        for (i, (keyword, value)) in self.pairs.iter().enumerate() {
            if i > 0 {
                out.push(';');
            }
            out.push_str(keyword);
            out.push('=');
            if redact && is_secret_keyword(keyword) {
                out.push_str(STARS);
            } else if needs_braces(keyword, value) {
                out.push('{');
                out.push_str(&value.replace('}', "}}"));
                out.push('}');
            } else {
                out.push_str(value);
            }
        }
        out
    }
}

/// Returns `true` for a character that is removed from both ends of a keyword: white space or NUL.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || c == '\0'
}

/// Parses the value of a keyword. `text` is the rest of the connection string after `=`. Returns
/// the value, and the text after the value.
fn take_value(text: &str) -> (String, &str) {
    let trimmed = text.trim_start();
    let Some(body) = trimmed.strip_prefix('{') else {
        let end = text.find(';').unwrap_or(text.len());
        return (text[..end].trim().to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut rest = body;
    loop {
        let Some(at) = rest.find('}') else {
            // Without a closing brace, the rest of the text is the value. Otherwise a part of a
            // secret could be parsed as another pair, and be shown.
            value.push_str(rest);
            return (value, "");
        };
        value.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        match rest.strip_prefix('}') {
            Some(after) => {
                value.push('}');
                rest = after;
            }
            None => break,
        }
    }
    // The grammar permits no characters between `}` and `;`. If there are any, they are treated as
    // part of the value, because the value may be a secret.
    let end = rest.find(';').unwrap_or(rest.len());
    value.push_str(rest[..end].trim_end());
    (value, &rest[end..])
}

/// Returns `true` if a value must be written in braces. The ODBC reference calls `[]{}(),;?*=!@`
/// special. Braces are written only around values with a character at which drivers split, because
/// some drivers do not remove the braces (a file name then contains them).
fn needs_braces(keyword: &str, value: &str) -> bool {
    value.contains([';', '{', '}'])
        || value.starts_with(char::is_whitespace)
        || value.ends_with(char::is_whitespace)
        || (keyword.eq_ignore_ascii_case("driver") && value.contains(' '))
        || (value.contains('=') && is_secret_keyword(keyword))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn braces_quote_semicolons_and_doubled_braces() {
        let s =
            ConnectionString::parse("Driver={PostgreSQL Unicode};Pwd={a;b}}c};Server=x ; Uid= me");
        assert_eq!(s.get("driver"), Some("PostgreSQL Unicode"));
        assert_eq!(s.get("PWD"), Some("a;b}c"));
        assert_eq!(s.get("server"), Some("x"));
        assert_eq!(s.get("uid"), Some("me"));
        assert_eq!(
            s.to_driver(),
            "Driver={PostgreSQL Unicode};Pwd={a;b}}c};Server=x;Uid=me"
        );
        assert_eq!(
            s.redacted(),
            "Driver={PostgreSQL Unicode};Pwd=***;Server=x;Uid=me"
        );
    }

    #[test]
    fn blanks_of_any_kind_are_no_part_of_a_keyword() {
        let s = ConnectionString::parse("a=b;\u{b}\0 c\0\u{a0}=d");
        assert_eq!(s.to_driver(), "a=b;c=d");
    }

    #[test]
    fn an_unclosed_brace_hides_all_that_follows() {
        let s = ConnectionString::parse("Uid=u;Pwd={secret;Server=x");
        assert_eq!(s.get("pwd"), Some("secret;Server=x"));
        assert_eq!(s.redacted(), "Uid=u;Pwd=***");
    }

    #[test]
    fn the_users_keyword_wins_over_a_default() {
        let mut s = ConnectionString::parse("fetch=50");
        s.add_default("Fetch", "10000");
        s.add_default("UseDeclareFetch", "1");
        assert_eq!(s.to_driver(), "fetch=50;UseDeclareFetch=1");
    }

    #[test]
    fn a_password_repeated_in_another_value_is_starred_there_too() {
        let s = ConnectionString::parse("Pwd=hunter2;Options=--x=hunter2");
        assert!(!s.redacted().contains("hunter2"));
        assert!(!format!("{s:?}").contains("hunter2"));
    }

    proptest! {
        #[test]
        fn what_is_rendered_parses_back(
            pairs in proptest::collection::btree_map("[A-Za-z][A-Za-z0-9 ]{0,8}[a-z]", "\\PC{0,16}", 0..6),
        ) {
            let mut s = ConnectionString::default();
            for (k, v) in &pairs {
                s.set(k, v);
            }
            let back = ConnectionString::parse(&s.to_driver());
            for (k, v) in &pairs {
                if pairs.keys().filter(|other| other.eq_ignore_ascii_case(k)).count() == 1 {
                    prop_assert_eq!(back.get(k), Some(v.as_str()));
                }
            }
        }

        #[test]
        fn a_password_is_never_shown(password in "[^*\0]{1,20}", raw in "\\PC{0,30}") {
            let mut s = ConnectionString::parse("Driver=d;Server=h");
            s.set("Pwd", &password);
            prop_assert!(s.redacted().ends_with(";Pwd=***"));
            // A shorter password may occur by chance in another word of the string.
            prop_assume!(password.chars().count() >= 8);
            prop_assert!(!s.redacted().contains(&password));
            let s = ConnectionString::parse(&format!("{raw};Password={{{}}}", password.replace('}', "}}")));
            let shown = format!("{:?}", s);
            prop_assert!(!shown.contains(&password) || s.get("Password").is_none());
        }
    }
}
