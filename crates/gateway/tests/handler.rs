//! Tests of the gateway's responses that need neither a socket nor a database: checks of the `Host`
//! field, parameters, and the page at `/`.
#![allow(clippy::unwrap_used)] // Helper functions are tests too.

use std::path::Path;
use std::sync::{Arc, Mutex};

use onecopy_gateway::{Config, Gateway, Log, Supervision};
use onecopy_serve::{Address, Body, Handler, Request, Response};
use onecopy_text::Ledger;

const CONFIG: &str = r#"
[server]
title = "A <b>shop</b> & \"more\""
description = "First <script>alert(1)</script>.\n\nSecond."
hosts = ["shop.example"]
[databases.shop]
url = "sqlite:no-such.db?hush-7f3a"
[queries.orders]
description = "Orders <img src=x onerror=alert(2)>"
sql = "select '<i>hush-sql</i>', :customer, :state"
parameters.customer = { type = "int", min = 1, example = 7, description = "\"><u>Number</u>" }
parameters.state = { type = "text", values = ["<open>", "paid"], required = false }
[queries.all]
sql = "select 1"
"#;

struct Setup {
    gateway: Gateway,
    log: Arc<Mutex<Vec<String>>>,
}

fn setup_at(bound: &str) -> Setup {
    let config = Config::parse(CONFIG, Path::new("c.toml"), &|_| None).unwrap();
    let bound: Address = bound.parse().unwrap();
    let log = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&log);
    let write = Log::new(move |line| sink.lock().unwrap().push(line.to_owned()));
    Setup {
        gateway: Gateway::new(
            config,
            bound,
            write,
            &Ledger::off(),
            &Supervision::default(),
        )
        .unwrap(),
        log,
    }
}

fn setup() -> Setup {
    setup_at("127.0.0.1:8000")
}

impl Setup {
    fn ask(&self, method: &str, target: &str, fields: &[(&str, &[u8])]) -> Response {
        let mut all = vec![("Host", &b"127.0.0.1:8000"[..])];
        all.retain(|(name, _)| !fields.iter().any(|(n, _)| n == name));
        all.extend_from_slice(fields);
        self.gateway.handle(Request::new(method, target, &all))
    }

    fn get(&self, target: &str) -> Response {
        self.ask("GET", target, &[])
    }
}

fn field(response: &Response, name: &str) -> String {
    let value = response.headers().get(name).unwrap_or(b"(none)");
    String::from_utf8(value.to_vec()).unwrap()
}

fn body(response: Response) -> String {
    match response.into_parts().2 {
        Body::Bytes(bytes) => String::from_utf8(bytes).unwrap(),
        Body::Static(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn problem(response: Response, status: u16) -> serde_json::Value {
    assert_eq!(response.status(), status);
    assert_eq!(field(&response, "Content-Type"), "application/problem+json");
    assert_eq!(field(&response, "Cache-Control"), "no-store");
    let value: serde_json::Value = serde_json::from_str(&body(response)).unwrap();
    assert_eq!(value["status"], status);
    assert!(!value["detail"].as_str().unwrap().is_empty());
    value
}

#[test]
fn unknown_paths_are_404_and_tell_where_to_look() {
    let s = setup();
    for (path, part) in [
        ("/none.json", "`/` lists"),
        ("/none", "`/` lists"),
        ("/orders", "`.ndjson`"),
        ("/orders.xml", "`/` lists"),
        ("/orders.json/", "`/` lists"),
        ("/.json", "`/` lists"),
        ("/-/none", "`/` lists"),
        ("//orders.json?customer=1", "`/` lists"),
        ("*", "`/` lists"),
    ] {
        let problem = problem(s.get(path), 404);
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(part), "{path}: {detail}");
    }
}

#[test]
fn other_methods_are_405_with_allow() {
    let s = setup();
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "get"] {
        let response = s.ask(method, "/orders.json?customer=1", &[]);
        assert_eq!(field(&response, "Allow"), "GET, HEAD");
        problem(response, 405);
    }
}

#[test]
fn hosts_that_do_not_name_a_loopback_address_are_421() {
    let s = setup();
    for host in [
        "evil.example:8000",
        "evil.example",
        "127.0.0.1:8001",
        "shop.example:8000",
        "",
    ] {
        problem(s.ask("GET", "/", &[("Host", host.as_bytes())]), 421);
        problem(
            s.ask("POST", "/all.json", &[("Host", host.as_bytes())]),
            421,
        );
    }
    for host in [
        "localhost:8000",
        "[::1]:8000",
        "shop.example",
        "SHOP.example",
    ] {
        assert_eq!(
            s.ask("GET", "/", &[("Host", host.as_bytes())]).status(),
            200,
            "{host}"
        );
    }
    let public = setup_at("0.0.0.0:8000");
    assert_eq!(
        public.ask("GET", "/", &[("Host", b"any.example")]).status(),
        200
    );
    // At a unix socket any `Host` is permitted: a proxy sets it, and web pages cannot reach the
    // socket.
    let local = setup_at("unix:/run/rows.sock");
    assert_eq!(
        local.ask("GET", "/", &[("Host", b"any.example")]).status(),
        200
    );
}

#[test]
fn wrong_parameters_are_400_field_by_field_and_values_are_not_repeated() {
    let s = setup();
    let p = problem(
        s.get("/orders.json?customer=hush-value&state=x&extra=1"),
        400,
    );
    assert_eq!(p["query"], "orders");
    assert_eq!(p["detail"], "3 parameters are wrong");
    let errors = p["errors"].as_array().unwrap();
    let names: Vec<&str> = errors
        .iter()
        .map(|e| e["parameter"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["customer", "state", "extra"]);
    assert_eq!(errors[1]["detail"], "must be one of `<open>`, `paid`");
    assert!(!p.to_string().contains("hush"));
    let p = problem(s.ask("HEAD", "/orders.csv", &[]), 400);
    assert!(
        p["detail"]
            .as_str()
            .unwrap()
            .starts_with("`customer` is required")
    );
    assert!(s.log.lock().unwrap().is_empty());
}

#[test]
fn head_has_the_fields_of_get_and_asks_no_database() {
    let s = setup();
    for (end, media_type) in [
        ("json", "application/json"),
        ("ndjson", "application/x-ndjson"),
        ("csv", "text/csv; charset=utf-8; header=present"),
    ] {
        let target = format!("/orders.{end}?customer=7");
        let (head, get) = (s.ask("HEAD", &target, &[]), s.get(&target));
        for response in [&head, &get] {
            assert_eq!(response.status(), 200);
            assert_eq!(field(response, "Content-Type"), media_type);
            assert_eq!(field(response, "Cache-Control"), "no-store");
            assert_eq!(field(response, "X-Content-Type-Options"), "nosniff");
        }
        // Both bodies are streams, so the header fields of both responses are equal. The server
        // fills only the stream of GET.
        assert!(matches!(head.body_ref(), Body::Chunks(_)));
        assert!(matches!(get.body_ref(), Body::Chunks(_)));
    }
}

#[test]
fn the_page_escapes_every_text_and_allows_nothing_but_its_style() {
    let s = setup();
    let response = s.get("/");
    let policy = field(&response, "Content-Security-Policy");
    assert!(
        policy.starts_with("default-src 'none'; style-src 'self';"),
        "{policy}"
    );
    assert_eq!(field(&response, "Content-Type"), "text/html; charset=utf-8");
    let page = body(response);
    for raw in [
        "<b>", "<script", "<img", "<u>", "<i>", "<open>", "\"><u", "hush",
    ] {
        assert!(!page.contains(raw), "{raw}");
    }
    for shown in [
        "A &lt;b&gt;shop&lt;/b&gt; &amp; &quot;more&quot;",
        "Orders &lt;img src=x",
        "<option>&lt;open&gt;</option>",
        "http://127.0.0.1:8000/orders.json?customer=7",
        "formaction=\"/orders.ndjson\"",
    ] {
        assert!(page.contains(shown), "{shown}\nin\n{page}");
    }
    // At a public address the client can send any text as `Host`. The page must escape it.
    let public = setup_at("0.0.0.0:8000");
    let page = body(public.ask("GET", "/", &[("Host", b"a'\"><script>b")]));
    assert!(!page.contains("<script>"), "{page}");
    assert_eq!(s.get("/-/page.css").status(), 200);
}

#[test]
fn the_list_is_json_where_it_is_asked_for() {
    let s = setup();
    let response = s.ask("GET", "/", &[("Accept", b"application/json")]);
    assert_eq!(field(&response, "Content-Type"), "application/json");
    let list: serde_json::Value = serde_json::from_str(&body(response)).unwrap();
    assert_eq!(list["queries"][0]["name"], "orders");
    assert_eq!(list["queries"][0]["formats"]["csv"], "/orders.csv");
    let customer = &list["queries"][0]["parameters"][0];
    assert_eq!(customer["required"], true);
    assert_eq!(customer["min"], "1");
    assert!(!list.to_string().contains("hush"));
}

#[test]
fn live_answers_without_a_database() {
    assert_eq!(body(setup().get("/-/live")), "{\"status\":\"live\"}\n");
}
