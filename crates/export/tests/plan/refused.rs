//! Statements that cannot be divided, notes about those that can, and parts that do not belong to a
//! statement.

use onecopy_export::Error;
use onecopy_export::plan::{PlanOptions, plan};
use onecopy_rows::{Declared, DeclaredKind, Value};

use crate::support::{check, database, execute, options};

#[test]
fn a_parameter_that_the_json_of_a_plan_cannot_represent_is_refused() {
    let connection = database();
    execute(&connection, "create table t (id integer primary key)");
    let sql = "select id from t where id > ?";
    let declared = Declared {
        kind: DeclaredKind::Integer,
        size: 0,
        digits: 0,
    };
    for value in [
        Value::Cast("1".to_owned(), "bigint"),
        Value::Declared(Box::new(Value::I64(1)), declared),
    ] {
        let error = plan(&connection, sql, &[value], &options(2, &[])).unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains("parameter 1 has a declared type"),
            "{message}"
        );
    }
}

#[test]
fn a_statement_or_option_that_is_wrong_is_refused_with_a_remedy() {
    let connection = database();
    execute(
        &connection,
        "create table t (id integer primary key, k int, \"update\" int)",
    );
    execute(&connection, "create table u (x int)");
    execute(&connection, "create view v as select * from t");
    for (sql, n_parts, key, words) in [
        ("select * from t", 0, &[][..], "must be 1 to"),
        ("select * from t", 1_000_000, &[], "must be 1 to"),
        (
            "select * from t",
            4,
            &["x"],
            "has no column `x`\nit has `id`, `k`",
        ),
        (
            "select * from v",
            4,
            &[],
            "has no key, and no physical addresses",
        ),
        ("select count(*) n from t", 4, &[], "--key NAME"),
        (
            "select t.k, id as k from t, u",
            4,
            &["k"],
            "two columns of the result have the name `k`",
        ),
        (
            "select K, abs(id) as k from t",
            4,
            &["k"],
            "have the name `k`",
        ),
        ("delete from t", 4, &[], "begins with `delete`"),
        ("select 1; select 2", 4, &[], "more than one statement"),
        ("select id from t where {part} or {part}", 4, &[], "twice"),
        ("select id from t limit 5", 4, &["id"], "without ORDER BY"),
        (
            "select id from t where {part} limit 5",
            4,
            &[],
            "its own limit",
        ),
        (
            "select id from t, u where {part}",
            4,
            &["id + 1"],
            "not the name of a column",
        ),
        (
            "select update from t",
            4,
            &["id"],
            "put a column of that name in quotes",
        ),
    ] {
        match plan(&connection, sql, &[], &options(n_parts, key)) {
            Err(Error::Usage(message)) => assert!(message.contains(words), "{sql}: {message}"),
            other => panic!("{sql}: {other:?}"),
        }
    }
    let hold = PlanOptions {
        hold: true,
        ..options(2, &[])
    };
    let error = plan(&connection, "select * from t", &[], &hold).unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("no snapshot for several connections"),
        "{message}"
    );
    let missing = plan(
        &connection,
        "select * from missing",
        &[],
        &options(2, &["a"]),
    );
    assert!(matches!(missing, Err(Error::Rows(_))), "{missing:?}");
}

#[test]
fn properties_of_a_division_are_noted() {
    let connection = database();
    execute(
        &connection,
        "create table t (id integer primary key, k int)",
    );
    for id in 0..9 {
        execute(
            &connection,
            &format!("insert into t values ({id}, {})", id % 2),
        );
    }
    for (sql, key, words) in [
        (
            "select id from t order by id limit 5",
            "id",
            "only if the columns of ORDER BY are unique",
        ),
        (
            "select id from t order by id",
            "id",
            "orders the rows of each part at most",
        ),
        (
            "select id, k from t where {part} group by id",
            "id",
            "apply to the rows of each part",
        ),
        ("select id, abs(k) k from t", "k", "cannot be divided"),
    ] {
        let plan = plan(&connection, sql, &[], &options(3, &[key])).unwrap();
        let notes = &plan.notes;
        assert!(
            notes.iter().any(|note| note.contains(words)),
            "{sql}: {notes:?}"
        );
        check(&connection, sql, &[], &plan);
    }
}

#[test]
fn a_part_is_bound_to_its_statement_and_its_columns() {
    let connection = database();
    execute(
        &connection,
        "create table t (id integer primary key, k int)",
    );
    execute(&connection, "insert into t values (1, 1), (2, 2)");
    let of = |sql: &str| plan(&connection, sql, &[], &options(2, &[])).unwrap();
    let (first, second) = (of("select * from t"), of("select id from t"));
    assert_ne!(first.parts[0].statement, second.parts[0].statement);
    assert_ne!(first.id(), second.id());
    assert_eq!(first.id(), of("select * from t").id());
    let part = &first.parts[0];
    part.execute(&connection).map(drop).unwrap();
    execute(&connection, "alter table t add column m int");
    let error = part.execute(&connection).map(drop).unwrap_err();
    assert!(error.to_string().contains("make a new plan"), "{error}");
}
