//! Determines properties of a SQL statement from its tokens, for example whether it is a query, and
//! detects a second statement in a SQL string.

use std::borrow::Cow;

use super::dialect::Dialect;
use super::lexer::{Lexer, Token, TokenKind};

/// Iterates over the tokens of a SQL string that are neither white space nor comments.
pub(super) fn tokens(sql: &str, dialect: Dialect) -> impl Iterator<Item = Token<'_>> {
    Lexer::of_statement(sql, dialect).filter(|token| !token.is_blank())
}

/// Returns `true` if the first statement in `sql` is followed by anything other than white space,
/// comments and semicolons.
pub(crate) fn has_second(sql: &str, dialect: Dialect) -> bool {
    tokens(sql, dialect)
        .skip_while(|token| token.kind != TokenKind::Semicolon)
        .any(|token| token.kind != TokenKind::Semicolon)
}

/// Returns `true` if a SQL string contains `*` or `table.*` as a list of columns.
pub(crate) fn selects_star(sql: &str, dialect: Dialect) -> bool {
    let mut before = None;
    tokens(sql, dialect).any(|token| {
        let starts_item = before.as_ref().is_some_and(|token: &Token<'_>| {
            let is_keyword = ["SELECT", "DISTINCT", "ALL", "RETURNING"]
                .iter()
                .any(|k| token.is(k));
            is_keyword || matches!(token.text, "," | ".") || token.text.ends_with('.')
        });
        let is_star = token.text == "*" && starts_item;
        before = Some(token);
        is_star
    })
}

/// Returns `true` if a SQL string is one query that changes no rows, so that a cursor can be
/// declared for it.
///
/// Returns `false` for a query that contains a keyword of a statement that writes, even as a column
/// name: such a query is executed without a cursor, which is always correct. Also returns `false`
/// if a `--` comment ends the text, because psqlodbc appends a keyword, which would be in the
/// comment.
pub(crate) fn is_plain_query(sql: &str, dialect: Dialect) -> bool {
    const WRITES: [&str; 5] = ["INSERT", "UPDATE", "DELETE", "MERGE", "INTO"];
    let (mut is_query, mut is_ended) = (None, false);
    for token in Lexer::of_statement(sql, dialect) {
        match token.kind {
            TokenKind::Comment if token.text.starts_with("--") => {
                if token.start + token.text.len() == sql.len() {
                    return false;
                }
            }
            _ if token.is_blank() => {}
            TokenKind::Semicolon => is_ended = true,
            _ if is_ended || WRITES.iter().any(|word| token.is(word)) => return false,
            _ if is_query.is_some() || token.text == "(" => {}
            _ => {
                is_query = Some(
                    ["SELECT", "WITH", "VALUES"]
                        .iter()
                        .any(|word| token.is(word)),
                )
            }
        }
    }
    is_query == Some(true)
}

/// Returns `true` if a statement is an INSERT or REPLACE whose `VALUES` lists contain only literals
/// and parameters, and which has no parameter outside of these lists. The server then stores each
/// parameter without computing with it.
pub(crate) fn stores_only(sql: &str, dialect: Dialect) -> bool {
    if !matches!(first_word(sql, dialect).as_str(), "INSERT" | "REPLACE") {
        return false;
    }
    let (mut in_values, mut is_after) = (false, false);
    for token in tokens(sql, dialect) {
        let is_literal = || {
            token
                .text
                .starts_with(|c: char| c == '\'' || c.is_ascii_digit())
                || token.is("NULL")
                || token.is("DEFAULT")
        };
        match token.text {
            "?" if is_after || !in_values => return false,
            "?" | "(" | ")" | "," | ";" => {}
            _ if is_after => {}
            _ if token.is("ON") => is_after = true,
            _ if !in_values => in_values = token.is("VALUES"),
            _ if is_literal() => {}
            _ => return false,
        }
    }
    in_values
}

/// Replaces `??` by `?` in each operator, for example in `a ?? 'b'`. The application writes `??`
/// because psqlodbc treats each single `?` outside strings and comments as a parameter.
///
/// The operator is hidden from psqlodbc in a comment: it is written after `--` and CR. For
/// PostgreSQL the comment ends at the CR; for psqlodbc it ends only at an LF.
pub(crate) fn with_question_operators(sql: &str) -> Cow<'_, str> {
    if !sql.contains("??") {
        return Cow::Borrowed(sql);
    }
    let is_operator = |token: &Token<'_>| {
        let in_operator = |c| "+-*/<>=~!@#%^&|`?".contains(c);
        matches!(token.kind, TokenKind::Other | TokenKind::QuestionMark)
            && token.text.chars().all(in_operator)
    };
    let mut text = String::with_capacity(sql.len() + 16);
    let mut tokens = Lexer::of_statement(sql, Dialect::Postgres).peekable();
    while let Some(token) = tokens.next() {
        let (start, mut end) = (token.start, token.start + token.text.len());
        if is_operator(&token) {
            while let Some(more) = tokens.next_if(is_operator) {
                end += more.text.len();
            }
        }
        let run = &sql[start..end];
        if is_operator(&token) && run.contains("??") {
            text.push_str("--\r");
            text.push_str(&run.replace("??", "?"));
            text.push('\n');
        } else {
            text.push_str(run);
        }
    }
    Cow::Owned(text)
}

/// Returns `sql` from its first token that is not white space, a comment or a semicolon.
pub(crate) fn skip_blank(sql: &str, dialect: Dialect) -> &str {
    let first = tokens(sql, dialect).find(|token| token.kind != TokenKind::Semicolon);
    first.map_or("", |token| &sql[token.start..])
}

/// Returns the first word of a SQL string in upper case, for example `INSERT`. Returns an empty
/// string if the text does not begin with a word.
pub(crate) fn first_word(sql: &str, dialect: Dialect) -> String {
    let first = tokens(sql, dialect).next();
    let word = first.map_or("", |token| token.text).bytes();
    word.take_while(u8::is_ascii_alphabetic)
        .map(|b| char::from(b.to_ascii_uppercase()))
        .collect()
}

/// Returns `true` if the statement `sql`, which changes rows, may also return rows. This is the
/// case if it contains the word `OUTPUT` (SQL Server) or `RETURNING` (all other databases).
#[must_use]
pub fn returns_rows(sql: &str, dialect: Dialect) -> bool {
    let word = match dialect {
        Dialect::SqlServer => "OUTPUT",
        _ => "RETURNING",
    };
    // This search is faster than the lexer, and most texts do not contain the word.
    let mut windows = sql.as_bytes().windows(word.len());
    windows.any(|window| window.eq_ignore_ascii_case(word.as_bytes()))
        && tokens(sql, dialect).any(|token| token.is(word))
}

/// Returns `true` if a SQL string contains `DROP TABLE` or `ALTER TABLE`, in any of its statements.
pub(crate) fn drops_or_alters_table(sql: &str, dialect: Dialect) -> bool {
    let words = Lexer::new(sql, dialect).filter(|token| !token.is_blank());
    words
        .scan(false, |is_after, token| {
            let found = *is_after && token.is("TABLE");
            *is_after = token.is("DROP") || token.is("ALTER");
            Some(found)
        })
        .any(|found| found)
}

/// Splits a SQL string of PostgreSQL into its statements, and omits empty statements. Semicolons
/// within parentheses (in `CREATE RULE`) and within `BEGIN ATOMIC … END` (in a function body) do
/// not separate statements.
pub(crate) fn split(sql: &str) -> Vec<&str> {
    let (mut pieces, mut start, mut is_blank) = (Vec::new(), 0, true);
    let (mut n_parentheses, mut n_blocks, mut is_after_begin) = (0_usize, 0_usize, false);
    for token in Lexer::of_statement(sql, Dialect::Postgres) {
        match token.kind {
            _ if token.is_blank() => continue,
            TokenKind::Semicolon if n_parentheses == 0 && n_blocks == 0 => {
                if !is_blank {
                    pieces.push(sql[start..token.start].trim());
                }
                start = token.start + token.text.len();
                is_blank = true;
                continue;
            }
            _ => is_blank = false,
        }
        match token.text {
            "(" => n_parentheses += 1,
            ")" => n_parentheses = n_parentheses.saturating_sub(1),
            _ if n_blocks > 0 && token.is("CASE") => n_blocks += 1,
            _ if n_blocks > 0 && token.is("END") => n_blocks -= 1,
            _ if is_after_begin && token.is("ATOMIC") => n_blocks += 1,
            _ => {}
        }
        is_after_begin = token.is("BEGIN");
    }
    if !is_blank {
        pieces.push(sql[start..].trim());
    }
    pieces
}

/// Returns `true` if a SQL string of MariaDB or MySQL contains `LOAD`, `LOCAL` and `INFILE`, and
/// may therefore send a file of the client to the server (`LOAD DATA LOCAL INFILE`).
pub(crate) fn loads_local_file(sql: &str) -> bool {
    // This search is faster than the lexer; texts may be long, and few contain the word.
    let mut sixes = sql.as_bytes().windows(6);
    if !sixes.any(|six| six.eq_ignore_ascii_case(b"INFILE")) {
        return false;
    }
    let has = |word| tokens(sql, Dialect::MySql).any(|token| token.is(word));
    has("LOAD") && has("LOCAL") && has("INFILE")
}

/// Returns `true` if a SQL string of MariaDB has a parameter in a `VALUES` list outside of an
/// INSERT. There, such a list is a query or subquery by itself. The server prepares the statement,
/// but treats the parameters in the list as empty.
pub(crate) fn binds_values_list(sql: &str) -> bool {
    let mut sixes = sql.as_bytes().windows(6);
    if !sql.contains('?') || !sixes.any(|six| six.eq_ignore_ascii_case(b"VALUES")) {
        return false;
    }
    let (mut begins_query, mut in_list, mut depth) = (true, false, 0);
    for token in tokens(sql, Dialect::MySql) {
        match token.text {
            "(" if in_list => depth += 1,
            ")" if depth > 0 => depth -= 1,
            "?" if depth > 0 => return true,
            "," => {}
            _ if depth == 0 => in_list = begins_query && token.is("VALUES"),
            _ => {}
        }
        let words = ["UNION", "ALL", "DISTINCT", "EXCEPT", "INTERSECT"];
        begins_query = token.text == "(" || words.iter().any(|word| token.is(word));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_a_list_of_columns_or_an_operator() {
        for (sql, is_list) in [
            ("select * from t", true),
            ("select distinct t . * from t", true),
            ("select a, t.* from t", true),
            ("select count(*), a * 2, '*' /* * */ from t", false),
        ] {
            assert_eq!(selects_star(sql, Dialect::MySql), is_list, "{sql}");
        }
    }

    #[test]
    fn parameters_of_values_are_found_outside_of_inserts() {
        for (sql, binds) in [
            ("values (?, ?), (1, 2)", true),
            ("VALUES (1, 2), (1, concat('a', ?))", true),
            ("with c(a) as (values (?)) select * from c", true),
            ("insert into t select * from ( /* */ values (?)) v", true),
            ("select 1 union all values (?)", true),
            ("values (1) union values (?)", true),
            ("values (1), (2) limit ?", false),
            ("select ? from (values (1)) v where a = (?)", false),
            ("insert into t values (?), (?)", false),
            (
                "insert into t(a) values (?) on duplicate key update a = (values(a) + ?)",
                false,
            ),
            (
                "insert into t values (?) on duplicate key update a = ifnull(values(a), ?)",
                false,
            ),
            ("replace into `values` (a) value (?)", false),
            ("select values, ? from t", false),
            ("values row(?)", false),
        ] {
            assert_eq!(binds_values_list(sql), binds, "{sql}");
        }
    }

    #[test]
    fn a_table_that_is_dropped_or_altered_is_found_in_any_statement() {
        for sql in [
            "drop table t",
            "/* a */ Alter\n-- b\nTABLE only t add c int",
            "select 1; drop table if exists t",
        ] {
            assert!(drops_or_alters_table(sql, Dialect::Postgres), "{sql}");
        }
        for sql in [
            "select 'drop table t'",
            "drop view v",
            "create table t (\"drop\" int)",
            "-- drop table t",
        ] {
            assert!(!drops_or_alters_table(sql, Dialect::Postgres), "{sql}");
        }
    }

    #[test]
    fn a_text_is_split_where_statements_end() {
        for (sql, expected) in [
            ("select 1", &["select 1"][..]),
            (
                " ; select 1;; select ';' ; -- c",
                &["select 1", "select ';'"],
            ),
            (
                "do $$ a; b $$; select 1 -- ;",
                &["do $$ a; b $$", "select 1 -- ;"],
            ),
            (
                "create rule r as on insert to t do (select 1; select 2); select 3",
                &[
                    "create rule r as on insert to t do (select 1; select 2)",
                    "select 3",
                ],
            ),
            (
                "create function f() returns int begin atomic select case when true then 1 end; end; select f()",
                &[
                    "create function f() returns int begin atomic select case when true then 1 end; end",
                    "select f()",
                ],
            ),
            ("begin; select 1; end", &["begin", "select 1", "end"]),
        ] {
            assert_eq!(split(sql), expected, "{sql}");
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
