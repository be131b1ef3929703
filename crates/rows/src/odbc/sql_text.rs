//! Finding the end of the first statement of a text, in the dialects of the databases known.

use std::borrow::Cow;

use crate::dialect::Dialect;

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
        match b {
            b';' => {
                ended = true;
                at += 1;
            }
            _ if ended => return true,
            _ => at = token_end(bytes, at, dialect),
        }
    }
    false
}

/// Returns the end of the token at `at`, which is neither white space nor a comment.
fn token_end(bytes: &[u8], at: usize, dialect: Dialect) -> usize {
    match bytes[at] {
        // The end of an executable comment: `*/*` opens no comment.
        b'*' if bytes[at..].starts_with(b"*/") && dialect == Dialect::MySql => at + 2,
        b'\'' => quoted_end(bytes, at, b'\'', dialect == Dialect::MySql),
        b'"' => quoted_end(bytes, at, b'"', dialect == Dialect::MySql),
        b'`' if matches!(dialect, Dialect::MySql | Dialect::Sqlite) => {
            quoted_end(bytes, at, b'`', false)
        }
        b'[' if matches!(dialect, Dialect::SqlServer | Dialect::Sqlite) => {
            quoted_end(bytes, at, b']', false)
        }
        b'$' if dialect == Dialect::Postgres => dollar_end(bytes, at),
        b if in_name(b) => name_end(bytes, at, dialect),
        _ => at + 1,
    }
}

/// Returns whether a text is one query that changes nothing, so that a cursor can be declared for it.
///
/// False for a query that contains a word of a statement that writes, be it the name of a column:
/// it is executed without a cursor, which is always right. False as well where a `--` comment ends
/// the text: psqlodbc appends a keyword to it.
pub(crate) fn is_plain_query(sql: &str, dialect: Dialect) -> bool {
    const WRITES: [&str; 5] = ["INSERT", "UPDATE", "DELETE", "MERGE", "INTO"];
    let bytes = sql.as_bytes();
    let (mut at, mut first, mut is_ended) = (0, None, false);
    while at < bytes.len() {
        if let Some(end) = blank_end(bytes, at, dialect) {
            if end == bytes.len() && bytes[at] == b'-' && bytes[end - 1] != b'\n' {
                return false;
            }
            at = end;
            continue;
        }
        let end = token_end(bytes, at, dialect).min(bytes.len());
        let token = &bytes[at..end];
        at = end;
        let is = |word: &&str| token.eq_ignore_ascii_case(word.as_bytes());
        match token {
            b";" => is_ended = true,
            _ if is_ended || WRITES.iter().any(is) => return false,
            b"(" if first.is_none() => {}
            _ if first.is_none() => first = Some(["SELECT", "WITH", "VALUES"].iter().any(is)),
            _ => {}
        }
    }
    first == Some(true)
}

/// Returns whether an INSERT or REPLACE only stores its parameters: nothing is computed with them.
pub(crate) fn stores_only(sql: &str, dialect: Dialect) -> bool {
    if !matches!(first_word(sql, dialect).as_str(), "INSERT" | "REPLACE") {
        return false;
    }
    let bytes = sql.as_bytes();
    let (mut at, mut in_values, mut is_after) = (0, false, false);
    while at < bytes.len() {
        if let Some(end) = blank_end(bytes, at, dialect) {
            at = end;
            continue;
        }
        let end = token_end(bytes, at, dialect).min(bytes.len());
        let token = &bytes[at..end];
        at = end;
        match token {
            b"?" if is_after || !in_values => return false,
            b"?" | b"(" | b")" | b"," | b";" => {}
            _ if is_after => {}
            _ if token.eq_ignore_ascii_case(b"ON") => is_after = true,
            _ if !in_values => in_values = token.eq_ignore_ascii_case(b"VALUES"),
            [b'\'' | b'0'..=b'9', ..] => {}
            _ if [&b"NULL"[..], b"DEFAULT"]
                .iter()
                .any(|w| token.eq_ignore_ascii_case(w)) => {}
            _ => return false,
        }
    }
    in_values
}

/// Returns the text that a driver takes for one with PostgreSQL's operators that contain `??`, the
/// escape for `?`.
///
/// Drivers take each `?` outside of strings and comments for a parameter. psqlodbc ends a `--`
/// comment at LF, PostgreSQL at CR as well: the operator is in a comment only for the driver.
pub(crate) fn with_question_operators(sql: &str) -> Cow<'_, str> {
    const OPERATORS: &[u8] = b"+-*/<>=~!@#%^&|`?";
    if !sql.contains("??") {
        return Cow::Borrowed(sql);
    }
    let bytes = sql.as_bytes();
    let (mut text, mut at) = (String::with_capacity(sql.len() + 16), 0);
    while at < bytes.len() {
        let start = at;
        if let Some(end) = blank_end(bytes, at, Dialect::Postgres) {
            at = end;
        } else if OPERATORS.contains(&bytes[at]) {
            let is_comment = |at| bytes[at..].starts_with(b"--") || bytes[at..].starts_with(b"/*");
            at += 1;
            while at < bytes.len() && OPERATORS.contains(&bytes[at]) && !is_comment(at) {
                at += 1;
            }
            if sql[start..at].contains("??") {
                text.push_str("--\r");
                text.push_str(&sql[start..at].replace("??", "?"));
                text.push('\n');
                continue;
            }
        } else {
            at = token_end(bytes, at, Dialect::Postgres).min(bytes.len());
            while !sql.is_char_boundary(at) {
                at += 1;
            }
        }
        text.push_str(&sql[start..at]);
    }
    Cow::Owned(text)
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
            assert!(!has_second(sql, Dialect::Generic), "{sql}");
        }
    }

    #[test]
    fn the_first_word_stands_behind_blanks_and_comments() {
        for (sql, dialect, word) in [
            ("insert into t", Dialect::Generic, "INSERT"),
            (" -- x\n /* y */ Update t", Dialect::Postgres, "UPDATE"),
            ("# x\ndelete", Dialect::MySql, "DELETE"),
            ("/*! insert */ x", Dialect::MySql, ""),
            ("(select 1)", Dialect::Generic, ""),
            ("", Dialect::Generic, ""),
        ] {
            assert_eq!(first_word(sql, dialect), word, "{sql}");
        }
    }

    #[test]
    fn only_a_query_that_writes_nothing_is_plain() {
        for (sql, is_plain) in [
            ("select 1", true),
            ("/* a */ (select 1) union (select 2);", true),
            ("with x as (select 1) select * from x -- end\n", true),
            ("values (1)", true),
            ("select 'insert', \"update\", $$ into $$ /* delete */", true),
            ("select 1 -- x", false),
            ("select 1; -- x", false),
            ("select 1; select 2", false),
            ("select 1 a into t", false),
            ("select * from t for update", false),
            (
                "with x as (select 1 a) insert into t select a from x",
                false,
            ),
            (
                "with x as (delete from t returning id) select * from x",
                false,
            ),
            ("WITH x AS (SELECT 1) MERGE INTO t USING x ON true", false),
            ("update t set a = 1 returning a", false),
            ("show all", false),
            ("", false),
        ] {
            assert_eq!(is_plain_query(sql, Dialect::Postgres), is_plain, "{sql}");
        }
    }

    #[test]
    fn only_values_that_are_stored_as_they_are_need_no_casts() {
        for (sql, stores) in [
            ("insert into t (a, b) values (?, ?), (1, 'x');", true),
            ("replace into t values (?, null, default)", true),
            (
                "insert into t values (?) on duplicate key update a = a + values(a)",
                true,
            ),
            (
                "insert into t values (?) on duplicate key update a = a + ?",
                false,
            ),
            ("insert into t values (? + 1)", false),
            ("insert into t values (round(?))", false),
            ("insert into t select ?", false),
            ("update t set a = ?", false),
        ] {
            assert_eq!(stores_only(sql, Dialect::MySql), stores, "{sql}");
        }
    }

    #[test]
    fn operators_with_question_marks_are_hidden_from_the_driver() {
        for (sql, text) in [
            ("select a ?? ?", "select a --\r?\n ?"),
            (
                "a ??| b and a @?? '??' -- ??",
                "a --\r?|\n b and a --\r@?\n '??' -- ??",
            ),
            ("a-? ; é??'é'", "a-? ; é--\r?\n'é'"),
        ] {
            assert_eq!(with_question_operators(sql), text);
        }
    }

    #[test]
    fn a_second_statement_is_seen() {
        for sql in [
            "select 1; delete from t",
            "select ''; select 2",
            "select 1;/* x */commit",
        ] {
            assert!(has_second(sql, Dialect::Generic), "{sql}");
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
