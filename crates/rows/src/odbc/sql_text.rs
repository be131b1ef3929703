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
        if let Some(end) = blank_end(bytes, at, dialect) {
            at = end;
            continue;
        }
        let next = bytes.get(at + 1).copied();
        match b {
            b';' => {
                ended = true;
                at += 1;
            }
            _ if ended => return true,
            // Where one of those ends: `*/*` opens no comment.
            b'*' if next == Some(b'/') && dialect == Dialect::MySql => at += 2,
            b'\'' => at = quoted_end(bytes, at, b'\'', dialect == Dialect::MySql),
            b'"' => at = quoted_end(bytes, at, b'"', dialect == Dialect::MySql),
            b'`' if matches!(dialect, Dialect::MySql | Dialect::Sqlite) => {
                at = quoted_end(bytes, at, b'`', false);
            }
            b'[' if matches!(dialect, Dialect::SqlServer | Dialect::Sqlite) => {
                at = quoted_end(bytes, at, b']', false);
            }
            b'$' if dialect == Dialect::Postgres => at = dollar_end(bytes, at),
            b if in_name(b) => at = name_end(bytes, at, dialect),
            _ => at += 1,
        }
    }
    false
}

/// The first word of a text, in capitals: what kind of statement it is. Empty where it begins with anything else.
pub(crate) fn first_word(sql: &str, dialect: Dialect) -> String {
    let bytes = sql.as_bytes();
    let mut at = 0;
    while let Some(end) = blank_end(bytes, at, dialect) {
        at = end;
    }
    let word = bytes[at..].iter().take_while(|b| b.is_ascii_alphabetic());
    word.map(|b| char::from(b.to_ascii_uppercase())).collect()
}

/// Returns whether a text of PostgreSQL's is a `COPY` between a table and the client.
pub(crate) fn copies_through_client(sql: &str) -> bool {
    first_word(sql, Dialect::Postgres) == "COPY"
        && has_word(sql, Dialect::Postgres, &["STDOUT", "STDIN"])
}

/// Returns whether a text of MariaDB's or MySQL's sends a file of the client's to the server.
pub(crate) fn loads_local_file(sql: &str) -> bool {
    // Texts may be long, and few have the word at all.
    let mut sixes = sql.as_bytes().windows(6);
    if !sixes.any(|six| six.eq_ignore_ascii_case(b"INFILE")) {
        return false;
    }
    let has = |word| has_word(sql, Dialect::MySql, &[word]);
    has("LOAD") && has("LOCAL") && has("INFILE")
}

/// Returns whether one of these words is in a text, outside of quotes and comments.
fn has_word(sql: &str, dialect: Dialect, words: &[&str]) -> bool {
    let bytes = sql.as_bytes();
    let mut at = 0;
    while let Some(&b) = bytes.get(at) {
        let end = match b {
            _ if let Some(end) = blank_end(bytes, at, dialect) => end,
            b'`' if dialect == Dialect::MySql => quoted_end(bytes, at, b'`', false),
            b'\'' | b'"' => quoted_end(bytes, at, b, dialect == Dialect::MySql),
            b'$' if dialect == Dialect::Postgres => dollar_end(bytes, at),
            b if in_name(b) => name_end(bytes, at, dialect),
            _ => at + 1,
        };
        if words
            .iter()
            .any(|w| bytes[at..end].eq_ignore_ascii_case(w.as_bytes()))
        {
            return true;
        }
        at = end;
    }
    false
}

/// Behind the comment or the white space at `at`; `None` where neither begins there.
fn blank_end(bytes: &[u8], at: usize, dialect: Dialect) -> Option<usize> {
    let next = bytes.get(at + 1).copied();
    let is_mysql = dialect == Dialect::MySql;
    match *bytes.get(at)? {
        b'-' if next == Some(b'-') && is_dash_comment(bytes, at, dialect) => {
            Some(line_end(bytes, at))
        }
        b'#' if is_mysql => Some(line_end(bytes, at)),
        // MySQL runs what stands in `/*! … */`.
        b'/' if next == Some(b'*') && !(is_mysql && executable(bytes, at)) => {
            Some(comment_end(bytes, at, dialect))
        }
        b if b.is_ascii_whitespace() => Some(at + 1),
        _ => None,
    }
}

/// Behind the name, keyword or number at `at`: what stands inside it opens nothing (`a$b$`). PostgreSQL's `E'…'`, whose
/// backslashes escape, is one with its string.
fn name_end(bytes: &[u8], at: usize, dialect: Dialect) -> usize {
    let len = bytes[at..].iter().take_while(|b| in_name(**b)).count();
    let end = at + len;
    let escapes = dialect == Dialect::Postgres && matches!(bytes[at..end], [b'E' | b'e']);
    if escapes && bytes.get(end) == Some(&b'\'') {
        return quoted_end(bytes, end, b'\'', true);
    }
    end
}

/// Whether a byte may stand in a name: any of a character above ASCII does.
fn in_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$') || b >= 0x80
}

/// MySQL reads `5--1` as a sum: its comments need white space after the dashes.
fn is_dash_comment(bytes: &[u8], at: usize, dialect: Dialect) -> bool {
    dialect != Dialect::MySql
        || bytes
            .get(at + 2)
            .is_none_or(|b| b.is_ascii_whitespace() || b.is_ascii_control())
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
    // `$1` is a parameter.
    if bytes.get(at + 1).is_some_and(u8::is_ascii_digit) {
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
    fn a_copy_through_the_client_is_known_by_its_words() {
        for sql in [
            "copy t to stdout",
            "/* a */ COPY (select 1) TO STDOUT csv",
            "copy t from STDIN",
            "copy t (a, \"b\") to -- here\nstdout",
        ] {
            assert!(copies_through_client(sql), "{sql}");
        }
        for sql in [
            "copy t to 'stdout'",
            "copy \"stdout\" to '/f'",
            "copy (select $$ to stdout $$) to '/f'",
            "select stdout from copy",
            "copy t to '/f' -- stdout",
        ] {
            assert!(!copies_through_client(sql), "{sql}");
        }
    }

    #[test]
    fn a_local_file_is_known_by_the_words_outside_of_quotes() {
        for sql in [
            "load data local infile '/f' into table t",
            "LOAD DATA LOW_PRIORITY LOCAL INFILE '/f' INTO TABLE t",
            "select 1; load xml local infile '/f' into table t",
            "/*! load data local infile '/f' into table t */",
        ] {
            assert!(loads_local_file(sql), "{sql}");
        }
        for sql in [
            "load data infile '/f' into table t",
            "select 'load data local infile'",
            "select `load`, local, infile_ from t",
            "insert into t values ('it\\'s', 'load local infile')",
            "select 1 -- load local infile",
        ] {
            assert!(!loads_local_file(sql), "{sql}");
        }
    }

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
    fn the_first_word_stands_behind_blanks_and_comments() {
        for (sql, dialect, word) in [
            ("insert into t", Dialect::Other, "INSERT"),
            (" -- x\n /* y */ Update t", Dialect::Postgres, "UPDATE"),
            ("# x\ndelete", Dialect::MySql, "DELETE"),
            ("/*! insert */ x", Dialect::MySql, ""),
            ("(select 1)", Dialect::Other, ""),
            ("", Dialect::Other, ""),
        ] {
            assert_eq!(first_word(sql, dialect), word, "{sql}");
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
            ("select é$a$; drop table t --$a$", Dialect::Postgres, true),
            ("select a$$a$; drop table t --$a$", Dialect::Postgres, true),
            (
                "select $$a$$$$'$$; drop table t --'",
                Dialect::Postgres,
                true,
            ),
            ("select $$a$$$$;$$", Dialect::Postgres, false),
            (r"select éE'\'; drop table t --'", Dialect::Postgres, true),
            (r"select '\'; x'", Dialect::MySql, false),
            ("select 5--1; drop table t", Dialect::MySql, true),
            ("select 5 -- 1; drop table t", Dialect::MySql, false),
            ("select 5 --", Dialect::MySql, false),
            ("select `;`", Dialect::MySql, false),
            ("select 1 # ; x\n", Dialect::MySql, false),
            ("select 1; /*! drop table t */", Dialect::MySql, true),
            ("select 1 /*!*/*1; x; /* */", Dialect::MySql, true),
            ("select [a;b] from t", Dialect::SqlServer, false),
            ("select /* /* ; */ ; */ 1", Dialect::Postgres, false),
        ] {
            assert_eq!(has_second(sql, dialect), expected, "{sql}");
        }
    }
}
