//! The parts of a plan over SQLite: each row of the statement is in exactly one part, for any table,
//! key and statement; the parts are balanced; what cannot be divided is refused with a remedy.
#![allow(clippy::unwrap_used)] // Helper functions are tests too.

mod refused;
mod support;

use onecopy_export::plan::{Plan, PlanOptions, Position, plan};
use onecopy_rows::Value;
use onecopy_rows::connect::Connection;
use proptest::prelude::*;

use support::{check, database, execute, options};

/// The declarations of the key columns, and the values that they have.
const KINDS: [(&str, Kind); 10] = [
    ("integer", Kind::Int),
    ("integer not null", Kind::Int),
    ("text", Kind::Text),
    ("text collate nocase", Kind::Text),
    ("text collate rtrim", Kind::Text),
    ("text collate reversed", Kind::Text),
    ("text", Kind::Uuid),
    ("date", Kind::Date),
    ("real", Kind::Real),
    ("", Kind::Any),
];

#[derive(Clone, Copy, Debug)]
enum Kind {
    Int,
    Text,
    Uuid,
    Date,
    Real,
    Any,
}

fn value(kind: Kind, seed: u32, is_null: bool) -> Value {
    const TEXTS: [&str; 13] = [
        "",
        " ",
        "a",
        "A",
        "a ",
        "a  ",
        "b",
        "B",
        "ab",
        "Ab",
        "é",
        "ß",
        "\u{10FFFF}",
    ];
    let small = i64::from(seed % 11) - 5;
    match kind {
        _ if is_null => Value::Null,
        Kind::Int => Value::I64(small * 1_000_000_007),
        Kind::Text => Value::Text(format!(
            "{}{}",
            TEXTS[seed as usize % 13],
            TEXTS[seed as usize / 13 % 13]
        )),
        Kind::Uuid => Value::Text(format!("{seed:08x}-0000-4000-8000-000000000000")),
        Kind::Date => Value::Text(format!("2024-{:02}-{:02}", 1 + seed % 12, 1 + seed % 28)),
        Kind::Real => Value::F64(f64::from(seed) / 7.0),
        Kind::Any => match seed % 4 {
            0 => Value::I64(small),
            1 => Value::F64(small as f64 / 2.0),
            2 => Value::Text(small.to_string()),
            _ => Value::Bytes(vec![seed as u8, 255]),
        },
    }
}

/// Creates the table `t` with the keys `k` and `l`, and the table `u`.
fn create(connection: &Connection, kind: usize, rows: &[(u32, u32, bool)], is_keyed: bool) {
    let (declaration, kind) = KINDS[kind];
    let key = if is_keyed { " primary key" } else { "" };
    execute(
        connection,
        &format!("create table t (id integer{key}, k {declaration}, l integer)"),
    );
    for (id, &(seed, second, is_null)) in rows.iter().enumerate() {
        let is_null = is_null && !declaration.contains("not null");
        let values = [
            Value::I64(id as i64),
            value(kind, seed, is_null),
            value(Kind::Int, second, second % 3 == 0),
        ];
        connection
            .execute("insert into t values (?, ?, ?)", &values)
            .unwrap();
    }
    execute(connection, "create index i on t (k)");
    execute(connection, "create table u (x integer)");
    execute(connection, "insert into u values (1)");
}

const STATEMENTS: [&str; 7] = [
    "select * from t",
    "select id from t x where id % 5 <> ? or l is null -- c",
    "select id, k, l, abs(id) from t;",
    "with c as (select id, k, l from t where id <> ?) select * from c",
    "select t.id, k, l, '{part}' from t, u where {part} and t.id >= ?",
    "select id, k, l from (select ?, * from t where {part}) where ? in (select 3 from u limit ?)",
    "select id, max(k) k, l from t group by id, l",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn each_row_is_in_exactly_one_part(
        kind in 0..KINDS.len(),
        statement in 0..STATEMENTS.len(),
        keys in 0..4_usize,
        is_keyed: bool,
        n_parts in 1..14_usize,
        n_values in 1..200_u32,
        rows in proptest::collection::vec(
            (any::<u32>(), any::<u32>(), proptest::bool::weighted(0.1)),
            0..150,
        ),
    ) {
        let connection = database();
        let rows: Vec<_> = rows.into_iter().map(|(a, b, c)| (a % n_values, b, c)).collect();
        create(&connection, kind, &rows, is_keyed);
        let sql = STATEMENTS[statement];
        // Only a statement of one table has a key of its own.
        let keys = if statement < 2 { keys } else { keys.max(1) };
        let key = [&[][..], &["k"], &["k", "l"], &["id"]][keys];
        let key: Vec<&str> = match (statement, key) {
            (4, ["id"]) => vec!["t.id"],
            (_, key) => key.to_vec(),
        };
        let values = vec![Value::I64(3); sql.matches('?').count()];
        let plan = plan(&connection, sql, &values, &options(n_parts, &key)).unwrap();
        prop_assert!(plan.parts.len() <= n_parts + 1);
        prop_assert_eq!(&Plan::from_json(&plan.to_json()).unwrap(), &plan);
        check(&connection, sql, &values, &plan);
    }
}

/// Creates a table whose column `k` has fewer rows for each further value.
fn create_zipf(connection: &Connection, exponent: f64, table: &str) {
    execute(connection, table);
    let mut id = 0_i64;
    for rank in 1..400_i32 {
        for _ in 0..(4000.0 / f64::from(rank).powf(exponent)) as i64 {
            id += 1;
            // The rows of one value are spread over the table.
            let values = [
                Value::I64(id * 7919 % 1_000_003),
                Value::I64(i64::from(rank)),
            ];
            connection
                .execute("insert into t (id, k) values (?, ?)", &values)
                .unwrap();
        }
    }
}

fn imbalance(sizes: &[usize]) -> f64 {
    let largest = *sizes.iter().max().unwrap() as f64;
    largest * sizes.len() as f64 / sizes.iter().sum::<usize>() as f64
}

#[test]
fn sixteen_parts_of_zipf_keys_are_balanced() {
    for exponent in [0.7, 1.0, 1.3] {
        for table in [
            "create table t (id integer primary key, k integer)",
            "create table t (id integer, k integer)",
            "create table t (id integer primary key, k integer not null) without rowid",
        ] {
            let connection = database();
            create_zipf(&connection, exponent, table);
            let sql = "select * from t";
            let plan = plan(&connection, sql, &[], &options(16, &["k"])).unwrap();
            let mut sizes = check(&connection, sql, &[], &plan);
            // The part of the rows with NULL, of which there are none.
            if plan.parts.last().unwrap().condition.contains("is null") {
                assert_eq!(sizes.pop(), Some(0));
            }
            assert_eq!(sizes.len(), 16);
            let imbalance = imbalance(&sizes);
            assert!(imbalance < 1.3, "{exponent}: {imbalance} {sizes:?}");
            let mean = sizes.iter().sum::<usize>() / 16;
            for (part, size) in plan.parts.iter().zip(sizes) {
                let estimated = part.rows.unwrap() as usize;
                assert!(estimated.abs_diff(size) < mean / 5, "{estimated} {size}");
            }
        }
    }
}

#[test]
fn a_heavy_value_that_cannot_be_divided_is_noted_and_the_others_stay_equal() {
    let connection = database();
    create_zipf(&connection, 1.3, "create table t (id integer, k integer)");
    let sql = "select id, k, abs(id) from t";
    let plan = plan(&connection, sql, &[], &options(16, &["k"])).unwrap();
    let mut sizes = check(&connection, sql, &[], &plan);
    let note = &plan.notes[0];
    assert!(
        note.contains("% of the rows and cannot be divided"),
        "{note}"
    );
    assert_eq!(sizes.len(), 17);
    sizes.sort_unstable();
    // The last sizes are those of the heavy values, the first is that of NULL.
    assert!(imbalance(&sizes[1..13]) < 1.5, "{sizes:?}");
}

#[test]
fn a_sample_of_a_large_table_gives_balanced_parts_of_all_rows() {
    let connection = database();
    execute(
        &connection,
        "create table t (id integer primary key, k integer)",
    );
    execute(
        &connection,
        "insert into t with recursive c(n) as \
         (select 1 union all select n + 1 from c where n < 40000) \
         select n, n * n % 100003 from c",
    );
    for key in [&[][..], &["k"]] {
        let options = PlanOptions {
            sample_rows: Some(4000),
            ..options(8, key)
        };
        let plan = plan(&connection, "select * from t", &[], &options).unwrap();
        let mut sizes = check(&connection, "select * from t", &[], &plan);
        sizes.truncate(8);
        assert!(imbalance(&sizes) < 1.3, "{sizes:?}");
        let estimated: u64 = plan.parts.iter().map(|part| part.rows.unwrap()).sum();
        assert!(estimated.abs_diff(40000) < 4000, "{estimated}");
    }
}

#[test]
fn rows_that_are_added_after_the_plan_are_in_a_part() {
    let connection = database();
    execute(&connection, "create table t (id integer, k integer)");
    execute(
        &connection,
        "insert into t values (1, 10), (2, 20), (3, 30), (4, 40)",
    );
    let sql = "select * from t";
    let plan = plan(&connection, sql, &[], &options(3, &["k"])).unwrap();
    execute(
        &connection,
        "insert into t values (5, -1000), (6, 1000), (7, null), (8, 25)",
    );
    check(&connection, sql, &[], &plan);
}

#[test]
fn the_best_key_of_a_table_is_chosen() {
    for (table, key, kind) in [
        (
            "create table t (id integer primary key, k int)",
            "id",
            "primary key",
        ),
        (
            "create table t (id int, k int, primary key (k, id)) without rowid",
            "k",
            "primary key",
        ),
        (
            "create table t (id int not null unique, k int)",
            "id",
            "unique index without NULL",
        ),
        (
            "create table t (id int unique, k int)",
            "rowid",
            "physical address",
        ),
        (
            "create table t (id int, rowid int)",
            "_rowid_",
            "physical address",
        ),
    ] {
        let connection = database();
        execute(&connection, table);
        for id in 0..20 {
            execute(&connection, &format!("insert into t values ({id}, {id})"));
        }
        let plan = plan(&connection, "select * from t", &[], &options(4, &[])).unwrap();
        assert_eq!(plan.parts[0].key, [key], "{table}");
        assert_eq!(plan.key_kind, kind);
        assert_eq!(plan.position, Position::Condition);
        assert!(
            plan.index.starts_with("the predicate reaches"),
            "{}",
            plan.index
        );
        assert_eq!(
            check(&connection, "select * from t", &[], &plan),
            [5, 5, 5, 5]
        );
    }
}

#[test]
fn the_sentence_about_the_index_is_that_of_the_database() {
    let connection = database();
    execute(
        &connection,
        "create table t (id integer primary key, k int, l int)",
    );
    execute(&connection, "create index i on t (k)");
    for id in 0..50 {
        execute(
            &connection,
            &format!("insert into t values ({id}, {id}, {id})"),
        );
    }
    for (sql, key, words) in [
        ("select * from t", "k", "the index `i`"),
        ("select * from t", "l", "reaches no index"),
        ("select id, abs(id), k from t", "k", "the index `i`"),
        ("select id, abs(k) k from t", "k", "reaches no index"),
        (
            "select a.id from t a join t b using (id) where {part}",
            "a.id",
            "row ids",
        ),
    ] {
        let plan = plan(&connection, sql, &[], &options(4, &[key])).unwrap();
        assert!(plan.index.contains(words), "{sql} {key}: {}", plan.index);
        check(&connection, sql, &[], &plan);
    }
}
