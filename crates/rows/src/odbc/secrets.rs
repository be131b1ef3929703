//! `Secrets`: the secret values of a connection string, which are removed from messages and logs.

use std::fmt;

/// The text that replaces a secret in messages.
pub(crate) const STARS: &str = "***";

/// The smallest length in characters of a secret that is masked at any position in a message. A
/// shorter secret could equal a word of the message by chance.
const LONG_CHARS: usize = 8;

/// The values that must never be shown; empty for a connection string without secrets.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

impl Secrets {
    /// Creates the list from the secret values. Each value is also added with doubled braces and
    /// percent-encoded, because a driver may repeat the value in this way in a message.
    pub(crate) fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Secrets {
        let mut all = Vec::new();
        for value in values.into_iter().filter(|v| !v.is_empty()) {
            let encoded =
                percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC);
            for form in [
                value.to_owned(),
                value.replace('}', "}}"),
                encoded.to_string(),
                encoded.to_string().to_lowercase(),
            ] {
                if !all.contains(&form) {
                    all.push(form);
                }
            }
        }
        // The longest secret is first: a secret that contains another one must be replaced as a
        // whole.
        all.sort_by_key(|s| std::cmp::Reverse(s.len()));
        Secrets(all)
    }

    /// Replaces every secret in `text` by `***`. A secret of [`LONG_CHARS`] or more characters is
    /// replaced anywhere. A shorter secret is replaced only as the value of a field (`Pwd=…`,
    /// `user:…@host`), because it may also occur within a word of the message, and masking it there
    /// would reveal it.
    pub(crate) fn scrub(&self, text: &str) -> String {
        if self.0.is_empty() {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        'next: while let Some(first) = rest.chars().next() {
            let before = &text[..text.len() - rest.len()];
            for secret in &self.0 {
                if let Some(after) = rest.strip_prefix(secret.as_str())
                    && (secret.chars().count() >= LONG_CHARS || is_field(before, after))
                {
                    out.push_str(STARS);
                    rest = after;
                    continue 'next;
                }
            }
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
        out
    }
}

/// Returns `true` if the text between `before` and `after` is the value of a field, as in `Pwd=…;`
/// or `user:…@host`.
fn is_field(before: &str, after: &str) -> bool {
    let opened = before.trim_end_matches(['{', '\'', '"', '`', ' ']);
    opened.ends_with(['=', ':']) && !after.starts_with(char::is_alphanumeric)
}

/// Returns `true` if the value of `keyword` is a secret (a password, token or key), according to
/// the keyword's name.
pub(crate) fn is_secret_keyword(keyword: &str) -> bool {
    let keyword: String = keyword
        .chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect();
    [
        "pwd",
        "passw",
        "token",
        "secret",
        "apikey",
        "privatekey",
        "credential",
        "passphrase",
    ]
    .iter()
    .any(|word| keyword.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_secret_inside_a_driver_message_is_starred() {
        let secrets = Secrets::new(["s3cr3t;}x"]);
        assert_eq!(
            secrets.scrub("cannot log in with s3cr3t;}x or {s3cr3t;}}x} or s3cr3t%3B%7Dx"),
            "cannot log in with *** or {***} or ***"
        );
    }

    #[test]
    fn a_short_secret_is_starred_in_the_fields_that_hold_it_and_nowhere_else() {
        let secrets = Secrets::new(["p"]);
        for (text, scrubbed) in [
            ("port 5432 of postgres", "port 5432 of postgres"),
            ("Uid=p1;Pwd=p;Port=1", "Uid=p1;Pwd=***;Port=1"),
            ("Pwd={p};x", "Pwd={***};x"),
            ("postgresql://me:p@host/p", "postgresql://me:***@host/p"),
            ("password: p", "password: ***"),
            ("PASSWORD='p'", "PASSWORD='***'"),
        ] {
            assert_eq!(secrets.scrub(text), scrubbed);
        }
    }

    #[test]
    fn keywords_of_secrets_are_known_by_name() {
        for keyword in [
            "Pwd",
            "PASSWORD",
            "AccessToken",
            "SSLKeyPassword",
            "client_secret",
            "Api-Key",
        ] {
            assert!(is_secret_keyword(keyword), "{keyword}");
        }
        for keyword in ["Server", "Uid", "Database", "Driver", "sslkey"] {
            assert!(!is_secret_keyword(keyword), "{keyword}");
        }
    }

    proptest! {
        #[test]
        fn no_long_secret_survives_a_scrub(
            before in "[^*]{0,20}", secret in "[^*]{8,12}", after in "[^*]{0,20}", n in 1usize..4,
        ) {
            let text = format!("{before}{}{after}", secret.repeat(n));
            prop_assert!(!Secrets::new([secret.as_str()]).scrub(&text).contains(&secret));
        }
    }
}
