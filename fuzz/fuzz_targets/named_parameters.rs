//! Named parameters (`:name`) in SQL.
//!
//! The translated text differs from the original only in its parameters. Two concatenated texts are
//! translated like each of them. No name is found inside a literal. SQLite finds the same
//! parameters and statements. The second parser of statements in this project finds each second
//! statement that this one finds. A COPY of PostgreSQL is recognised after any comment, and only if
//! the text has no second statement.
#![no_main]

use std::collections::HashSet;

use libfuzzer_sys::fuzz_target;
use onecopy_fuzz::parts;
use onecopy_rows::connect::Connection;
use onecopy_rows::ConnectOptions;
use onecopy_rows::Dialect;
use onecopy_rows::named::{Named, by_name, count_marks, positional};
use onecopy_rows::odbc::fuzzing::has_second;
use onecopy_rows::postgres::fuzzing::{begins_with_copy, is_copy};

const DIALECTS: [Dialect; 5] = [
    Dialect::Generic,
    Dialect::Sqlite,
    Dialect::Postgres,
    Dialect::MySql,
    Dialect::SqlServer,
];

thread_local! {
    static SQLITE: Connection =
        Connection::open("sqlite::memory:", &ConnectOptions::default()).expect("in memory");
}

fuzz_target!(|text: &str| {
    let [first, second] = parts(text);
    for dialect in DIALECTS {
        literals(first, dialect);
        both_styles(first, dialect);
        let Ok(named) = positional(first, dialect) else {
            continue;
        };
        only_parameters_differ(first, &named);
        let again = positional(&named.sql, dialect).expect("translated already");
        assert_eq!((&again.sql, again.names.len()), (&named.sql, 0));
        assert_eq!(again.n_statements, named.n_statements);
        if !named.names.is_empty() {
            // The text had no `?` in addition to the names.
            assert_eq!(count_marks(&named.sql, dialect), Some(named.names.len()));
        }
        if named.n_statements > 1 && dialect != Dialect::Generic {
            // The second parser gets the translated text: `$q$` after a `?` opens a string,
            // which it does not after a name.
            assert!(has_second(&named.sql, dialect), "{dialect:?} {first:?}");
        }
        if let Ok(other) = positional(second, dialect) {
            one_after_the_other(first, &named, second, &other, dialect);
        }
    }
    copies(first, second);
    sqlite(first);
});

/// Checks the parser that decides if a SQL text of PostgreSQL is exactly one COPY between a table
/// and the client.
fn copies(text: &str, other: &str) {
    let is_one = is_copy(text);
    if !text.contains(';') {
        assert_eq!(is_one, Some(begins_with_copy(text)), "{text:?}");
    }
    // Without a literal, comment or block of which the end may be missing.
    let opens = text.contains(['\'', '"', '$', '(']) || text.contains("/*");
    if is_one == Some(true) && !opens && !text.to_ascii_lowercase().contains("atomic") {
        let comment = comment(other);
        let commented = format!("/* {comment} */ ;\n{text}\n; -- {comment}");
        assert_eq!(is_copy(&commented), Some(true), "{commented:?}");
        assert_eq!(is_copy(&format!("{text}\n; select 1")), None, "{text:?}");
        assert_eq!(is_copy(&format!("select 1;\n{text}")), None, "{text:?}");
    }
    let copy = format!("copy (select '{}') to stdout", other.replace('\'', "''"));
    assert_eq!(is_copy(&copy), Some(true), "{copy:?}");
}

/// Returns a text without characters that would end a comment.
fn comment(text: &str) -> String {
    text.replace(['*', '/', '\n', '\r'], " ")
}

/// Asserts that the texts differ only where the original has a name and the translated text a `?`.
fn only_parameters_differ(sql: &str, named: &Named) {
    let (mut rest, mut names) = (sql, named.names.iter());
    for c in named.sql.chars() {
        if let Some(after) = rest.strip_prefix(c) {
            rest = after;
            continue;
        }
        assert_eq!(c, '?');
        let name = names.next().expect("a name for each `?`");
        rest = rest
            .strip_prefix(':')
            .and_then(|r| r.strip_prefix(name.as_str()))
            .expect("its name is there");
    }
    assert_eq!((rest, names.next()), ("", None));
}

fn one_after_the_other(a: &str, first: &Named, b: &str, second: &Named, dialect: Dialect) {
    let both = match positional(&format!("{a}\n;\n{b}"), dialect) {
        Ok(both) => both,
        Err(error) => {
            assert!(error.message.contains("a `?` is mixed with named parameters"), "{error}");
            return;
        }
    };
    assert_eq!(both.sql, format!("{}\n;\n{}", first.sql, second.sql));
    assert_eq!(both.names, [&first.names[..], &second.names[..]].concat());
    assert_eq!(both.n_statements, first.n_statements + second.n_statements);
}

/// Checks the style `%(name)s`, which has no effect on a text without a percent sign. After any
/// complete text, a parameter in this style is found.
fn both_styles(text: &str, dialect: Dialect) {
    let (one, both) = (positional(text, dialect), by_name(text, dialect));
    if !text.contains('%') {
        assert_eq!(one.ok(), both.ok(), "{dialect:?} {text:?}");
        return;
    }
    let Ok(both) = both else { return };
    let Ok(more) = by_name(&format!("{text}\n;%(onecopy)s"), dialect) else {
        return; // The text contains a `?`.
    };
    assert_eq!(more.names.len(), both.names.len() + 1, "{dialect:?} {text:?}");
    assert_eq!(more.names.last().map(String::as_str), Some("onecopy"));
}

/// Asserts that any text inside a literal or a comment is unchanged.
fn literals(text: &str, dialect: Dialect) {
    let mut all = vec![
        format!("-- {} \n", text.replace('\n', " ")),
        // The space prevents `/*!`, which begins a comment that MySQL executes.
        format!("/* {}*/", text.replace(['*', '/'], " ")),
    ];
    if matches!(dialect, Dialect::Generic | Dialect::MySql | Dialect::Sqlite) {
        all.push(format!("`{}`", text.replace('`', "``")));
    }
    let plain = match dialect {
        Dialect::MySql => text.replace('\\', "\\\\"),
        _ => text.to_owned(),
    };
    all.push(format!("'{}'", plain.replace('\'', "''")));
    all.push(format!("\"{}\"", plain.replace('"', "\"\"")));
    match dialect {
        Dialect::Postgres => {
            all.push(format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "\\'")));
            all.push(format!("$q${}$q$", text.replace('$', "S")));
        }
        Dialect::SqlServer | Dialect::Sqlite => {
            all.push(format!("[{}]", text.replace(']', "]]")));
        }
        _ => {}
    }
    for literal in all {
        let named = positional(&format!("{literal}:x"), dialect).expect("it ends");
        // The name after the literal is the only parameter.
        assert_eq!(named.names, ["x"], "{dialect:?} {literal:?}");
        assert_eq!(named.sql, format!("{literal}?"));
        if !matches!(dialect, Dialect::Generic) {
            assert!(!has_second(&format!("select {literal}"), dialect), "{dialect:?} {literal:?}");
            assert!(has_second(&format!("select {literal} ;x"), dialect), "{dialect:?} {literal:?}");
        }
    }
}

/// If SQLite accepts the text, asserts that it finds one statement and the same number of names.
fn sqlite(sql: &str) {
    let lower = sql.to_ascii_lowercase();
    // SQLite has more kinds of parameters, accepts any byte above ASCII in a name, `;` in a
    // trigger and a comment without an end, and executes some pragmas when they are prepared. For
    // onecopy a colon directly after a word (`limit:a`) does not begin a parameter.
    let behind_word = sql
        .as_bytes()
        .windows(2)
        .any(|w| w[1] == b':' && (w[0].is_ascii_alphanumeric() || w[0] == b'_' || w[0] == b'$'));
    if !sql.is_ascii()
        || sql.contains(['@', '$', '#', '?', '\0'])
        || behind_word
        || ["trigger", "pragma", "attach"].iter().any(|word| lower.contains(word))
    {
        return;
    }
    let Ok(named) = positional(sql, Dialect::Sqlite) else {
        return;
    };
    SQLITE.with(|sqlite| {
        let Ok(prepared) = sqlite.prepare_check(sql) else {
            return;
        };
        assert!(named.n_statements <= 1, "{sql:?}");
        let names: HashSet<&String> = named.names.iter().collect();
        // SQLite accepts `:1` as a name, onecopy does not.
        if !sql.as_bytes().windows(2).any(|w| w[0] == b':' && !w[1].is_ascii_alphabetic() && w[1] != b'_') {
            assert_eq!(prepared.n_parameters, Some(names.len()), "{sql:?}");
            let translated = sqlite.prepare_check(&named.sql).expect("as before");
            assert_eq!(translated.n_parameters, Some(named.names.len()), "{sql:?}");
            assert_eq!(translated.n_parameters, count_marks(&named.sql, Dialect::Sqlite), "{sql:?}");
        }
    });
}
