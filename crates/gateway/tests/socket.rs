//! Tests of a gateway that serves a SQLite database on a real socket: streams, failures before and
//! after the first byte, slots (the limit of concurrent queries), and time limits.
#![allow(clippy::unwrap_used)] // Helper functions are tests too.

mod served;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use onecopy_gateway::config::Target;
use onecopy_gateway::{Config, Log, Options, serve};
use onecopy_rows::ConnectOptions;
use onecopy_rows::connect::Connection;
use served::{answer, served, served_with, served_with_limits};

const ENDLESS: &str = "with recursive c(x) as (select 1 union all select x + 1 from c) select";

const ITEMS: &str = "[queries.items]\nsql = \"select id, name from item where id >= :from order by id\"\n\
                     parameters.from = { type = \"int\", default = 1 }\n";

#[test]
fn rows_come_in_each_format_with_the_trailer_of_success() {
    let s = served(ITEMS);
    for (end, body, media_type) in [
        (
            "json",
            "[{\"id\":2,\"name\":\"茶\"},\n{\"id\":3,\"name\":\"tea\"}]",
            "application/json",
        ),
        (
            "ndjson",
            "{\"id\":2,\"name\":\"茶\"}\n{\"id\":3,\"name\":\"tea\"}\n",
            "application/x-ndjson",
        ),
        (
            "csv",
            "id,name\r\n2,茶\r\n3,tea\r\n",
            "text/csv; charset=utf-8; header=present",
        ),
    ] {
        let answer = s.get(&format!("/items.{end}?from=2"));
        assert_eq!(answer.status, 200);
        assert_eq!(answer.field("content-type"), media_type);
        assert_eq!(
            answer.text().replace("\r\n", "\n"),
            body.replace("\r\n", "\n")
        );
        assert!(answer.complete);
        assert!(
            answer.trailer.contains("onecopy-status: ok; rows=2"),
            "{answer:?}"
        );
        s.lines
            .wait_for(&[&format!("GET /items.{end} 200 done rows=2 ")]);
    }
    // The log contains neither query strings nor parameters.
    assert!(!s.lines.all().contains("from"));
}

#[test]
fn head_runs_nothing() {
    let s = served("[queries.q]\nsql = \"select * from nix\"\n");
    let answer = s.ask("HEAD", "/q.json");
    assert_eq!((answer.status, answer.body.len()), (200, 0));
    assert_eq!(answer.field("content-type"), "application/json");
    assert_eq!(answer.field("transfer-encoding"), "chunked");
    assert_eq!(answer.field("content-length"), "");
    assert_eq!(s.get("/q.json").status, 500);
}

#[test]
fn values_are_bound_and_never_pasted() {
    let s = served(
        "[queries.q]\nsql = \"select :t as t, typeof(:n) as n from item where id = 1 and name <> :t\"\n\
         parameters.t = \"text\"\nparameters.n = \"decimal\"\n",
    );
    let answer = s.get("/q.json?t=%27%3B+drop+table+item%3B+--&n=1.50");
    assert_eq!(
        answer.text(),
        "[{\"t\":\"'; drop table item; --\",\"n\":\"real\"}]"
    );
    // No number of SQLite is exactly 0.1. The parameter becomes the number that SQLite would parse
    // from `0.1` in SQL.
    assert_eq!(s.get("/q.json?t=x&n=0.1").status, 200);
    assert_eq!(s.get("/q.json?t=x&n=1").status, 200);
}

#[test]
fn wrong_sql_is_a_problem_without_the_sql() {
    let s = served("[queries.q]\nsql = \"select hush_7f3a from nix\"\n");
    let problem = s.get("/q.csv").problem(500);
    assert_eq!(problem["query"], "q");
    assert!(!problem.to_string().contains("nix"), "{problem}");
    s.lines.wait_for(&[
        "error query=q database=d: Programming",
        "no such table: nix",
    ]);
    let s = served_with("[queries.q]\nsql = \"select * from nix\"\n", |c| {
        c.server.debug = true
    });
    let problem = s.get("/q.csv").problem(500);
    assert_eq!(problem["sql"], "select * from nix");
}

#[test]
fn statements_that_write_are_refused() {
    let s = served(
        "[queries.insert]\nsql = \"insert into item values (9, 'x')\"\n\
         [queries.returning]\nsql = \"delete from item returning id\"\n\
         [queries.create]\nsql = \"create table t (a)\"\n",
    );
    for query in ["insert", "returning", "create"] {
        s.get(&format!("/{query}.json")).problem(500);
        s.lines
            .wait_for(&[&format!("error query={query}"), "the statement writes"]);
    }
    let url = format!("sqlite:{}/d.db", s.folder.path().display());
    let connection = Connection::open(&url, &ConnectOptions::default()).unwrap();
    let statement = connection
        .execute("select 1 from item where id <> 9", &[])
        .unwrap();
    let chunks = statement.into_chunks(onecopy_rows::Format::Csv, &onecopy_text::Ledger::off());
    let mut chunk = onecopy_text::Chunk::with_capacity(100);
    chunks.unwrap().fill(&mut chunk).unwrap();
    assert_eq!(chunk.iter().filter(|b| **b == b'\n').count(), 4);
}

#[test]
fn a_database_that_is_away_is_503_and_found_again() {
    let s = served(ITEMS);
    let (here, there) = (s.folder.path().join("d.db"), s.folder.path().join("e.db"));
    std::fs::rename(&here, &there).unwrap();
    let answer = s.get("/items.json");
    assert_eq!(answer.field("retry-after"), "5");
    let problem = answer.problem(503);
    assert!(!problem.to_string().contains("d.db"), "{problem}");
    std::fs::rename(&there, &here).unwrap();
    assert_eq!(s.get("/items.json").status, 200);
}

#[test]
fn a_statement_that_fails_each_time_it_runs_is_500_without_retry_after() {
    let s = served(
        "[queries.overflow]\nsql = \"select abs(-9223372036854775808) as a\"\n\
         [queries.json]\nsql = \"select json_extract('{bad', '$.a') as a\"\n\
         [queries.escape]\nsql = \"select 1 as a from item where name like :p escape 'ab'\"\n\
         parameters.p = \"text\"\n",
    );
    for target in ["/overflow.json", "/json.ndjson", "/escape.csv?p=t"] {
        let answer = s.get(target);
        assert_eq!(answer.field("retry-after"), "", "{target}");
        let problem = answer.problem(500);
        assert_eq!(problem["detail"], "the database refuses this query");
    }
}

#[test]
fn a_table_that_is_locked_is_503_and_a_file_that_is_no_database_500() {
    let s = served_with(ITEMS, |config| {
        let target = &mut config.databases[0].target;
        *target = Target::new(format!("{}?busy_timeout_ms=1", target.expose()));
    });
    let file = s.folder.path().join("d.db");
    let writer = Connection::open(
        &format!("sqlite:{}", file.display()),
        &ConnectOptions::default(),
    )
    .unwrap();
    drop(
        writer
            .execute("pragma locking_mode = exclusive", &[])
            .unwrap(),
    );
    drop(
        writer
            .execute("insert into item values (4, 'x')", &[])
            .unwrap(),
    );
    writer.commit().unwrap();
    let answer = s.get("/items.json");
    assert_eq!(answer.field("retry-after"), "5");
    answer.problem(503);
    drop(writer);
    assert_eq!(s.get("/items.json").status, 200);
    let s = served(ITEMS);
    std::fs::write(s.folder.path().join("d.db"), [b'x'; 4096]).unwrap();
    let answer = s.get("/items.json");
    assert_eq!(answer.field("retry-after"), "");
    let problem = answer.problem(500);
    let refused = "the database refuses the gateway's connection; the log has the reason";
    assert_eq!(problem["detail"], refused);
}

#[test]
fn a_value_that_cannot_be_given_breaks_the_answer() {
    // The rows before the malformed text exceed the first chunk, so some bytes are sent before the
    // failure.
    let s = served(
        "[queries.late]\nsql = \"with recursive c(x) as (select 1 union all select x + 1 from c where x < 200000) \
         select case when x < 200000 then 'some text to fill chunks' else cast(x'ff' as text) end as t from c\"\n\
         [queries.early]\nsql = \"select cast(x'ff' as text) as t\"\n",
    );
    for end in ["json", "ndjson", "csv"] {
        let answer = s.get(&format!("/late.{end}"));
        assert_eq!(answer.status, 200);
        assert!(!answer.complete, "{end}");
        assert!(answer.body.len() > 100_000);
        assert!(answer.trailer.is_empty());
        assert!(!answer.text().ends_with(']'));
        s.lines.wait_for(&[&format!("GET /late.{end} 200 failed")]);
        let problem = s.get(&format!("/early.{end}")).problem(500);
        assert!(
            problem["detail"].as_str().unwrap().contains("column 0 `t`"),
            "{problem}"
        );
    }
    s.lines.wait_for(&[
        "error query=early",
        "fix it in the database, or set `errors = \"replace\"` for this database",
    ]);
}

#[test]
fn the_time_limit_is_504_before_the_first_byte_and_a_broken_close_after() {
    let s = served_with(
        &format!(
            "[queries.silent]\nsql = \"{ENDLESS} max(x) as m from c\"\n[queries.rows]\nsql = \"{ENDLESS} x from c\"\n"
        ),
        |config| {
            for query in &mut config.queries {
                query.time_limit = Duration::from_millis(100);
            }
        },
    );
    let problem = s.get("/silent.json").problem(504);
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("limit of 0.1 s"),
        "{problem}"
    );
    let answer = s.get("/rows.ndjson");
    assert_eq!((answer.status, answer.complete), (200, false));
    s.lines
        .wait_for(&["error query=rows", "took longer than its limit"]);
    // The runs that exceeded the limit have released both slots.
    for _ in 0..3 {
        s.get("/silent.json").problem(504);
    }
}

#[test]
fn a_client_that_takes_nothing_loses_its_slot_at_the_time_limit() {
    let s = served_with(
        &format!("[queries.rows]\nsql = \"{ENDLESS} x from c\"\n"),
        |config| {
            config.databases[0].max_concurrent = 1;
            config.queries[0].time_limit = Duration::from_millis(300);
        },
    );
    let mut slow = s.send("GET", "/rows.ndjson");
    let mut first = [0; 20];
    slow.read_exact(&mut first).unwrap();
    // The slow client reads nothing more. Its run is stopped at the time limit, and releases the
    // slot.
    s.wait_for_slot("/rows.ndjson");
}

#[test]
fn more_queries_than_allowed_are_503_with_retry_after() {
    let s = served(&format!(
        "[queries.rows]\nsql = \"{ENDLESS} x from c\"\n{ITEMS}"
    ));
    let mut held: Vec<TcpStream> = (0..2).map(|_| s.send("GET", "/rows.ndjson")).collect();
    let mut first = [0; 20];
    for stream in &mut held {
        stream.read_exact(&mut first).unwrap();
    }
    let answer = s.get("/items.json");
    assert_eq!(answer.field("retry-after"), "1");
    assert_eq!(answer.problem(503)["query"], "items");
    // Requests with HEAD or wrong parameters, and requests that run no query, need no slot.
    assert_eq!(s.ask("HEAD", "/items.json").status, 200);
    s.get("/items.json?from=x").problem(400);
    assert_eq!(s.get("/-/live").status, 200);
    // If a client disconnects, the slot of its run is released.
    drop(held.pop());
    s.lines.wait_for(&["GET /rows.ndjson 200 client_gone"]);
    s.wait_for_slot("/items.json");
}

#[test]
fn a_client_that_leaves_before_the_first_row_frees_its_slot() {
    let s = served_with(
        &format!("[queries.silent]\nsql = \"{ENDLESS} max(x) as m from c\"\n{ITEMS}"),
        |config| config.databases[0].max_concurrent = 1,
    );
    let silent = s.send("GET", "/silent.json");
    // A run reserves its slot before it connects, so after this log line the slot is taken.
    // (Repeated requests for another query could take the slot before this run.)
    s.lines.wait_for(&["connected database=d"]);
    s.get("/items.json").problem(503);
    drop(silent);
    s.wait_for_slot("/items.json");
}

#[test]
fn connections_serve_again_after_a_stream_in_order() {
    let s = served(ITEMS);
    for _ in 0..5 {
        assert_eq!(s.get("/items.json").status, 200);
    }
    let connected = s.lines.all().matches("connected database=d").count();
    assert_eq!(connected, 1, "{}", s.lines.all());
}

#[test]
fn other_methods_are_405_with_or_without_a_body() {
    let s = served(ITEMS);
    for body in [
        "",
        "Content-Length: 3\r\n\r\na=1",
        "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ] {
        let mut stream = s.connect();
        let end = if body.is_empty() { "\r\n" } else { "" };
        let request = format!(
            "POST /items.json HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{body}{end}",
            s.address
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let answer = answer(&bytes);
        assert_eq!(answer.field("allow"), "GET, HEAD");
        answer.problem(405);
    }
}

#[test]
fn a_foreign_host_is_421_and_that_of_a_whole_url_goes_before_the_field() {
    let s = served(ITEMS);
    let ask = |target: &str, host: &str| {
        let mut stream = s.connect();
        let head = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        answer(&bytes)
    };
    let own = s.address.to_string();
    ask("/items.json", "evil.example").problem(421);
    ask("http://evil.example/items.json?from=1", &own).problem(421);
    let answer = ask(&format!("http://{own}/items.json?from=3"), "evil.example");
    assert_eq!(answer.text(), "[{\"id\":3,\"name\":\"tea\"}]");
    // The log line has the path of the request's absolute URL, without the host.
    s.lines.wait_for(&["Z GET /items.json 200 done rows=1 "]);
}

#[test]
fn a_path_that_encodes_letters_is_the_same_path() {
    let s = served(ITEMS);
    assert_eq!(s.get("/%69tems%2Ejson?from=3").status, 200);
    assert_eq!(s.ask("HEAD", "/%69t%65ms.csv").status, 200);
    s.get("/%69tems%2Fitems.json").problem(404);
    s.get("/%2569tems.json").problem(404);
}

#[test]
fn passwords_and_parameters_are_told_nowhere() {
    let secret = "hush-7f3a";
    let s = served_with(
        "[queries.q]\nsql = \"select :t as t\"\nparameters.t = { type = \"text\", max_length = 20 }\n\
         [queries.f]\nsql = \"select nosuch(:t) as t\"\nparameters.t = \"text\"\n",
        |config| {
            let target = format!("Driver=no-such-driver;Server=h;Uid=u;Pwd={secret}");
            config.databases[0].target = Target::new(target);
        },
    );
    for target in [
        format!("/q.json?t={secret}"),
        format!("/q.json?t={secret}{secret}{secret}"),
        format!("/f.json?t={secret}"),
        format!("/q.json?{secret}=1&t=1"),
        format!("/none.json?t={secret}"),
    ] {
        let answer = s.get(&target);
        assert!(answer.status >= 400);
        let response = format!("{}{}", answer.head, String::from_utf8_lossy(&answer.body));
        // The response may contain the name of an unknown parameter, because it comes from the
        // request.
        if !target.contains(&format!("{secret}=1")) {
            assert!(!response.contains(secret), "{target}: {response}");
        }
    }
    s.lines.wait_for(&["GET /none.json 404"]);
    assert!(!s.lines.all().contains(secret), "{}", s.lines.all());
}

#[test]
fn a_busy_port_is_named() {
    let s = served(ITEMS);
    let text = format!(
        "[server]\nbind = \"{}\"\n[databases.d]\nurl = \"sqlite:d.db\"\n",
        s.address
    );
    let config = Config::parse(&text, Path::new("c.toml"), &|_| None).unwrap();
    let error = serve(config, Options::new(Log::new(|_| ())), |_, _| ()).unwrap_err();
    assert!(
        error
            .to_string()
            .contains(&format!("port `{}`", s.address.port())),
        "{error}"
    );
}

#[test]
fn what_the_server_refuses_by_itself_is_a_problem_with_the_fields_of_all_answers() {
    let s = served_with_limits("", |limits| {
        limits.head = Duration::from_millis(200);
        limits.head_bytes = 2000;
    });
    let host = s.address;
    let long = "x".repeat(3000);
    for (status, request) in [
        (400, "GET / HTTP/1.1\nHost: x\r\n\r\n".to_owned()),
        (408, "GET / HTTP/1.1\r\nHo".to_owned()),
        (
            413,
            format!("GET / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1\r\n\r\nx"),
        ),
        (
            413,
            format!("POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9999999\r\n\r\n"),
        ),
        (414, format!("GET /{long} HTTP/1.1\r\nHost: {host}\r\n\r\n")),
        (
            431,
            format!("GET / HTTP/1.1\r\nHost: {host}\r\nA: {long}\r\n\r\n"),
        ),
        (
            405,
            format!("PUT / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"),
        ),
        (
            421,
            "GET / HTTP/1.1\r\nHost: elsewhere\r\nConnection: close\r\n\r\n".to_owned(),
        ),
        (
            404,
            format!("GET /nix HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"),
        ),
    ] {
        let mut stream = s.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let answer = answer(&bytes);
        answer.problem(status);
        assert_eq!(answer.field("Cache-Control"), "no-store", "{status}");
        assert_eq!(
            answer.field("X-Content-Type-Options"),
            "nosniff",
            "{status}"
        );
    }
}
