//! Tests of named parameters in every dialect, and of SQL that is refused with an error.

use super::*;
use proptest::prelude::*;

fn names(sql: &str, dialect: Dialect) -> (String, Vec<String>) {
    let named = positional(sql, dialect).unwrap();
    (named.sql, named.names)
}

#[test]
fn names_become_question_marks_in_the_order_they_stand() {
    let (sql, names) = names(
        "select * from t where a = :a and (b>:b_2 or c=:a) limit :größe",
        Dialect::Generic,
    );
    assert_eq!(sql, "select * from t where a = ? and (b>? or c=?) limit ?");
    assert_eq!(names, ["a", "b_2", "a", "größe"]);
}

#[test]
fn colons_that_are_operators_stay() {
    for sql in [
        "select a::text, b :: int, c::varchar(3)::text",
        "set @a := 1",
        "select x[1:n], x[lo:hi], x[1:2:3]",
        "select geography::Point(1, 2, 3)",
        "select x[lo:hi$$], y[a::b$q$:c]",
        "select x[lo:$1], $$ :b $$",
        ":",
        "a :1",
    ] {
        assert_eq!(
            names(sql, Dialect::Postgres),
            (sql.to_owned(), Vec::new()),
            "{sql}"
        );
    }
    assert_eq!(
        names("select :a::text", Dialect::Postgres).0,
        "select ?::text"
    );
}

#[test]
fn each_dialect_reads_its_own_literals() {
    use Dialect::{Generic, MySql, Postgres, SqlServer, Sqlite};
    for (dialect, sql) in [
        (Generic, r"select 'a\', x ':b'"),
        (MySql, r"select 'it\'s :b', '\\', ':c' # :d"),
        (MySql, "select \"it\\\":b\", `:c`"),
        (Postgres, r"select E'it\'s :b', e'\\', 'a\', ':c'"),
        (Postgres, "select $$ :b ' $$, $x$ :c $$ $x$, $1"),
        (Postgres, "select $é˩$ :b ; $$ $é˩$, $²$ :c $²$, x€$$"),
        (Postgres, "select 1 /* /* :a */ :b */ -- :c"),
        (SqlServer, "select [a]]:b], [:c] /* /* :a */ :b */"),
        (
            Sqlite,
            "select [:b], `:c`, \":d\", 'it''s :e' /* /* :f */ -- :g",
        ),
    ] {
        assert_eq!(names(sql, dialect), (sql.to_owned(), Vec::new()), "{sql}");
    }
    assert_eq!(names("select array[:a]", Postgres).1, ["a"]);
    assert_eq!(names("select 5--:a", MySql).1, ["a"]);
    assert_eq!(
        names("select /*!80000 :a */* :b /* :c */", MySql).1,
        ["a", "b"]
    );
    assert_eq!(names("select 1 ` :a", Postgres).1, ["a"]);
    assert_eq!(names("/* /* */ :a", Sqlite).1, ["a"]);
}

#[test]
fn what_does_not_end_is_named_with_its_place() {
    for (sql, part) in [
        (
            "select 1,\n 'abc",
            "line 2, column 2 of the SQL: this string",
        ),
        ("/* abc", "line 1, column 1 of the SQL: this comment"),
        ("select \"abc", "this quoted name"),
        ("select $a$ b", "this dollar-quoted string"),
    ] {
        let error = positional(sql, Dialect::Generic).unwrap_err();
        assert!(error.message.contains(part), "{}", error.message);
        assert_eq!(error.kind, ErrorKind::Programming);
    }
}

#[test]
fn a_question_mark_beside_names_is_refused_and_alone_is_left() {
    let error = positional("select data ? :key", Dialect::Postgres).unwrap_err();
    assert!(error.message.contains("column 13"), "{}", error.message);
    assert_eq!(names("select ?", Dialect::Generic).0, "select ?");
    assert_eq!(names("select '?', :a", Dialect::Generic).1, ["a"]);
}

#[test]
fn both_named_styles_are_one_text() {
    for (sql, expected, wanted) in [
        ("a = %(a)s and b = :b", "a = ? and b = ?", vec!["a", "b"]),
        ("like '%%x' and %(größe)s", "like '%x' and ?", vec!["größe"]),
        ("like '%%x' and :a", "like '%%x' and ?", vec!["a"]),
        (
            "%(a)d, %()s, %(a b)s, %(a",
            "%(a)d, %()s, %(a b)s, %(a",
            vec![],
        ),
        ("'%(a)s' -- %(b)s", "'%(a)s' -- %(b)s", vec![]),
    ] {
        let named = by_name(sql, Dialect::Postgres).unwrap();
        assert_eq!(
            (named.sql.as_str(), named.names),
            (expected, wanted.iter().map(ToString::to_string).collect()),
            "{sql}"
        );
    }
}

#[test]
fn statements_are_counted_without_literals_and_empty_ones() {
    for (sql, n) in [
        ("", 0),
        (" -- nothing\n;", 0),
        ("select ';'", 1),
        ("select 1; -- and\n ;; /* ; */", 1),
        ("select 1; drop table t", 2),
        ("select 1; /*! drop table t */", 1),
        (";select 1;select 2;", 2),
    ] {
        let named = positional(sql, Dialect::Generic).unwrap();
        assert_eq!(named.n_statements, n, "{sql}");
    }
    let run = "select 1; /*! drop table t */";
    assert_eq!(positional(run, Dialect::MySql).unwrap().n_statements, 2);
}

/// Generates a part of a SQL string. If the part is a named parameter, the second value is its
/// name; if it is a literal, a comment or other text, the second value is `None`. Literals contain
/// arbitrary characters within the quoting rules of the dialect.
fn piece(dialect: Dialect) -> BoxedStrategy<(String, Option<String>)> {
    let any = "[a-z:?;'\"`\\[\\]$/*é漢 #\\n-]{0,12}";
    let copied = |s: String| (s, None);
    let quoted = move |open: &'static str, close: char| {
        any.prop_map(move |s| {
            let s = s.replace(close, &format!("{close}{close}"));
            (format!("{open}{s}{close}"), None)
        })
    };
    let mut all = vec![
        "[a-z_][a-z_0-9]{0,5}"
            .prop_map(|n| (format!(":{n}"), Some(n)))
            .boxed(),
        "[a-z]{1,6}|[0-9]{1,3}|[(),=<>+.]".prop_map(copied).boxed(),
        "::[a-z]{1,4}|:=|;".prop_map(copied).boxed(),
        quoted("'", '\'').boxed(),
        quoted("\"", '"').boxed(),
        any.prop_map(|s| (format!("-- {}\n", s.replace('\n', " ")), None))
            .boxed(),
        any.prop_map(|s| (format!("/*{}*/", s.replace(['*', '/'], "")), None))
            .boxed(),
    ];
    if !matches!(dialect, Dialect::Postgres | Dialect::SqlServer) {
        all.push(quoted("`", '`').boxed());
    }
    if !matches!(dialect, Dialect::Postgres | Dialect::MySql) {
        all.push(quoted("[", ']').boxed());
    }
    if matches!(dialect, Dialect::Generic | Dialect::Postgres) {
        all.push(
            any.prop_map(|s| (format!("$q${}$q$", s.replace('$', "")), None))
                .boxed(),
        );
    }
    if dialect == Dialect::Postgres {
        all.push(
            any.prop_map(|s| {
                (
                    format!("E'{}'", s.replace('\\', r"\\").replace('\'', r"\'")),
                    None,
                )
            })
            .boxed(),
        );
    }
    proptest::strategy::Union::new(all).boxed()
}

fn statement() -> impl Strategy<Value = (Dialect, Vec<(String, Option<String>)>)> {
    prop_oneof![
        Just(Dialect::Generic),
        Just(Dialect::Sqlite),
        Just(Dialect::Postgres),
        Just(Dialect::SqlServer)
    ]
    .prop_flat_map(|d| (Just(d), proptest::collection::vec(piece(d), 0..12)))
}

proptest! {
    #[test]
    fn literals_are_never_touched_and_names_always_found((dialect, pieces) in statement()) {
        let sql: Vec<&str> = pieces.iter().map(|(s, _)| s.as_str()).collect();
        let expected: Vec<&str> =
            pieces.iter().map(|(s, name)| if name.is_some() { "?" } else { s }).collect();
        let wanted: Vec<String> = pieces.iter().filter_map(|(_, n)| n.clone()).collect();
        let named = positional(&sql.join(" "), dialect).unwrap();
        prop_assert_eq!(named.sql, expected.join(" "));
        prop_assert_eq!(named.names, wanted);
    }

    #[test]
    fn what_has_no_percent_sign_is_translated_alike((dialect, pieces) in statement()) {
        let sql: String = pieces.iter().map(|(s, _)| s.as_str()).collect::<Vec<_>>().join(" ");
        prop_assert_eq!(by_name(&sql, dialect).ok(), positional(&sql, dialect).ok());
    }

    #[test]
    fn any_text_is_translated_or_refused_without_a_panic(sql in "\\PC{0,60}", which in 0..5_usize) {
        use Dialect::{Generic, MySql, Postgres, SqlServer, Sqlite};
        let _ = positional(&sql, [Generic, Sqlite, Postgres, MySql, SqlServer][which]);
    }
}
