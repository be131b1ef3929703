//! Tests that the table, clauses and placeholder of a query are found.

use super::*;

fn of(sql: &str) -> QueryShape {
    QueryShape::of(sql, Dialect::Postgres).unwrap()
}

fn error(sql: &str) -> String {
    QueryShape::of(sql, Dialect::Postgres).unwrap_err().message
}

#[test]
fn a_query_ends_before_its_semicolons_and_comments() {
    for sql in [
        "select 1",
        "select 1;",
        "select 1 -- x",
        "select 1 ; -- x;\n/* y */ ;",
    ] {
        assert_eq!(&sql[of(sql).text], "select 1", "{sql}");
    }
}

#[test]
fn a_placeholder_is_found_only_outside_of_literals_and_comments() {
    let sql = "select '{part}', ? from t -- {part}\n where {part} and \"{part}\" = ?";
    let shape = of(sql);
    let at = shape.placeholder.clone().unwrap();
    assert_eq!(
        (&sql[at.clone()], at.start),
        (PLACEHOLDER, sql.find("where").unwrap() + 6)
    );
    assert_eq!((shape.n_parameters, shape.n_parameters_before), (2, 1));
    for sql in [
        "select '{part}'",
        "select $${part}$$ /* {part} */",
        "select 1 { part }",
    ] {
        assert_eq!(of(sql).placeholder, None, "{sql}");
    }
    assert!(error("select 1 where {part} or {part}").contains("twice"));
}

#[test]
fn only_one_query_that_writes_nothing_has_a_shape() {
    for (sql, words) in [
        ("", "is empty"),
        ("-- x", "is empty"),
        ("select 1; select 2", "more than one statement"),
        ("select 'x", "string in the SQL does not end"),
        ("insert into t values (1)", "begins with `insert`"),
        ("call p()", "begins with `call`"),
        ("explain select 1", "begins with `explain`"),
        (
            "with x as (delete from t returning a) select * from x",
            "contains `delete`",
        ),
        ("select a into t from u", "contains `into`"),
        ("select * from t for update", "contains `update`"),
    ] {
        assert!(error(sql).contains(words), "{sql}: {}", error(sql));
    }
    for sql in [
        "(select 1) union (select 2)",
        "with x as (select 1) select * from x",
        "values (1)",
    ] {
        assert_eq!(of(sql).table, None, "{sql}");
    }
}

#[test]
fn the_table_of_a_plain_query_is_found() {
    for (sql, names, alias, rest) in [
        ("select * from t", &["t"][..], "t", ""),
        (
            "select a, b c from s.\"T \"\"x\" ;",
            &["s", "T \"x"],
            "\"T \"\"x\"",
            "",
        ),
        (
            "select o.*, 1 from orders as o where a = (select 1 limit 1)",
            &["orders"],
            "o",
            " a = (select 1 limit 1)",
        ),
        ("select a from t x where {part}", &["t"], "x", " {part}"),
        (
            "SELECT a FROM t WHERE b IN (1, 2) -- c",
            &["t"],
            "t",
            " b IN (1, 2)",
        ),
    ] {
        let shape = of(sql);
        let table = shape.table.expect(sql);
        assert_eq!(table.names, names, "{sql}");
        assert_eq!(&sql[table.alias], alias, "{sql}");
        let condition = table.condition.map_or("", |at| &sql[at..shape.text.end]);
        assert_eq!(condition, rest, "{sql}");
        assert!(sql[table.from..].to_lowercase().starts_with("from"));
    }
}

#[test]
fn a_query_whose_rows_are_not_those_of_a_table_has_no_table() {
    for sql in [
        "select count(*) from t",
        "select upper(a) from t",
        "select distinct a from t",
        "select ?, a from t",
        "select * from t, u",
        "select * from t join u on true",
        "select * from t x y",
        "select * from (select 1) t",
        "select * from f(1)",
        "select * from t order by a",
        "select * from t where a > 1 order by a limit 3",
        "select * from t where a > 1 group by a",
        "select a from t union select a from u",
        "select a from t where a = 1 union select a from u",
        "select * from t tablesample system (1)",
        "select * from only t x",
        "select 1",
    ] {
        assert_eq!(of(sql).table, None, "{sql}");
    }
}

#[test]
fn clauses_are_those_of_the_query_itself_and_of_the_placeholder() {
    let limited = "select * from (select 1 limit 1) x";
    assert!(!of(limited).is_limited && of("select 1 limit 1").is_limited);
    assert!(of("select a from t order by a").is_ordered);
    assert!(!of("select row_number() over (order by a) from t").is_ordered);
    assert!(!of("select offset from t").is_limited && of("select a from t offset 3").is_limited);
    for (sql, limits, combines) in [
        ("select * from t where {part} limit 3", true, false),
        (
            "select * from (select * from t where {part}) x limit 3",
            true,
            false,
        ),
        (
            "select * from t where {part} and a in (select 1 limit 3)",
            false,
            false,
        ),
        (
            "select a, count(*) from t where {part} group by a",
            false,
            true,
        ),
        (
            "with x as (select distinct a from u) select * from t where {part}",
            false,
            false,
        ),
        (
            "select a from t where {part} union select a from u",
            false,
            true,
        ),
    ] {
        let shape = of(sql);
        assert_eq!(
            (shape.limits_part, shape.combines_part),
            (limits, combines),
            "{sql}"
        );
    }
}

#[test]
fn only_names_of_columns_are_column_names() {
    for (text, names) in [
        ("id", Some(&["id"][..])),
        ("o.\"Order Id\"", Some(&["o", "Order Id"])),
        ("s.t.id", Some(&["s", "t", "id"])),
        ("lower(a)", None),
        ("a + b", None),
        ("1", None),
        ("'a'", None),
        ("a.", None),
        ("", None),
    ] {
        let expected = names.map(|names| names.iter().map(|&n| n.to_owned()).collect());
        assert_eq!(column_names(text, Dialect::Postgres), expected, "{text}");
    }
}
