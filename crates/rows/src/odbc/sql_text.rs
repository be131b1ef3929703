//! Finding the end of the first statement of a text, in the dialects of the databases known.

use super::quirks::Dialect;

/// Whether something besides blanks, comments and semicolons stands behind the first statement.
///
/// Knows `'…'`, `"…"`, `` `…` ``, `[…]`, `--`, `/* */`, `#`, `$tag$…$tag$`, each where its dialect has it. In a dialect
/// that is not known, a backslash is an ordinary character and there are no dollar quotes.
pub(crate) fn has_second(sql: &str, dialect: Dialect) -> bool {
    let bytes = sql.as_bytes();
    let mut at = 0;
    let mut ended = false;
    while let Some(&b) = bytes.get(at) {
        let next = bytes.get(at + 1).copied();
        match b {
            b'-' if next == Some(b'-') => at = line_end(bytes, at),
            b'#' if dialect == Dialect::MySql => at = line_end(bytes, at),
            // MySQL runs what stands in `/*! … */`.
            b'/' if next == Some(b'*') && !(dialect == Dialect::MySql && executable(bytes, at)) => {
                at = comment_end(bytes, at, dialect);
            }
            b';' => {
                ended = true;
                at += 1;
            }
            b if b.is_ascii_whitespace() => at += 1,
            _ if ended => return true,
            b'\'' => at = quoted_end(bytes, at, b'\'', escapes(bytes, at, dialect)),
            b'"' => at = quoted_end(bytes, at, b'"', dialect == Dialect::MySql),
            b'`' if matches!(dialect, Dialect::MySql | Dialect::Sqlite) => {
                at = quoted_end(bytes, at, b'`', false);
            }
            b'[' if matches!(dialect, Dialect::SqlServer | Dialect::Sqlite) => {
                at = quoted_end(bytes, at, b']', false);
            }
            b'$' if dialect == Dialect::Postgres => at = dollar_end(bytes, at),
            _ => at += 1,
        }
    }
    false
}

/// Whether a backslash escapes in the string literal at `at`.
fn escapes(bytes: &[u8], at: usize, dialect: Dialect) -> bool {
    match dialect {
        Dialect::MySql => true,
        // `E'…'`, the E being a word of its own.
        Dialect::Postgres => {
            let e = at
                .checked_sub(1)
                .is_some_and(|i| matches!(bytes[i], b'E' | b'e'));
            let word = at
                .checked_sub(2)
                .is_some_and(|i| bytes[i].is_ascii_alphanumeric() || bytes[i] == b'_');
            e && !word
        }
        _ => false,
    }
}

fn executable(bytes: &[u8], at: usize) -> bool {
    bytes.get(at + 2) == Some(&b'!') || bytes.get(at + 2..at + 4) == Some(b"M!")
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..]
        .iter()
        .position(|b| *b == b'\n')
        .map_or(bytes.len(), |n| at + n + 1)
}

fn comment_end(bytes: &[u8], at: usize, dialect: Dialect) -> usize {
    // Comments nest in standard SQL; not in MySQL and SQLite.
    let nests = matches!(dialect, Dialect::Postgres | Dialect::SqlServer);
    let (mut depth, mut at) = (1, at + 2);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else if nests && bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else {
            at += 1;
        }
    }
    bytes.len()
}

fn quoted_end(bytes: &[u8], at: usize, quote: u8, backslash: bool) -> usize {
    let mut at = at + 1;
    while at < bytes.len() {
        if backslash && bytes[at] == b'\\' {
            at += 2;
        } else if bytes[at] == quote {
            if bytes.get(at + 1) == Some(&quote) {
                at += 2;
            } else {
                return at + 1;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

fn dollar_end(bytes: &[u8], at: usize) -> usize {
    let tag_len = bytes[at + 1..]
        .iter()
        .position(|b| !(b.is_ascii_alphanumeric() || *b == b'_' || *b >= 0x80));
    let Some(tag_len) = tag_len.filter(|n| bytes[at + 1 + n] == b'$') else {
        return at + 1;
    };
    // `$1` is a parameter, and `a$b$` goes on a name.
    let digit = bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
    let in_word = at
        .checked_sub(1)
        .is_some_and(|i| bytes[i].is_ascii_alphanumeric() || bytes[i] == b'_');
    if digit || in_word {
        return at + 1;
    }
    let tag = &bytes[at..at + tag_len + 2];
    let body = at + tag.len();
    bytes[body..]
        .windows(tag.len())
        .position(|w| w == tag)
        .map_or(bytes.len(), |n| body + n + tag.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_statement_with_a_final_semicolon_and_comments_is_one() {
        for sql in [
            "select 1",
            "select 1;",
            "select ';' ; -- done; really\n /* ; */ ;",
            "select \"a;b\", 'it''s; fine'",
        ] {
            assert!(!has_second(sql, Dialect::Other), "{sql}");
        }
    }

    #[test]
    fn a_second_statement_is_seen() {
        for sql in [
            "select 1; delete from t",
            "select ''; select 2",
            "select 1;/* x */commit",
        ] {
            assert!(has_second(sql, Dialect::Other), "{sql}");
        }
    }

    #[test]
    fn each_dialect_quotes_in_its_own_way() {
        for (sql, dialect, expected) in [
            ("select $a$;x$a$, $$;$$", Dialect::Postgres, false),
            ("select $1; drop table t --$1", Dialect::Postgres, true),
            (r"select E'\'; x'", Dialect::Postgres, false),
            (r"select '\'; drop table t --'", Dialect::Postgres, true),
            (r"select '\'; x'", Dialect::MySql, false),
            ("select `;`", Dialect::MySql, false),
            ("select 1 # ; x\n", Dialect::MySql, false),
            ("select 1; /*! drop table t */", Dialect::MySql, true),
            ("select [a;b] from t", Dialect::SqlServer, false),
            ("select /* /* ; */ ; */ 1", Dialect::Postgres, false),
        ] {
            assert_eq!(has_second(sql, dialect), expected, "{sql}");
        }
    }
}
