//! Compares the output of the command with snapshots. `UPDATE_SNAPSHOTS=1 cargo test -p
//! onecopy-cli` rewrites the snapshot files; review the changes before you commit them.
#![allow(clippy::unwrap_used)] // Helper functions are tests too.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A temporary folder with a small database, in which the command is run.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        for sql in [
            "create table item (id integer primary key, name text, price real, note text)",
            "insert into item values (1, 'čaj', 2.5, null), (2, '茶', 3, 'a \"b\", c'), (3, 'tea', 1.75, '')",
        ] {
            let output = folder.run(&["query", "sqlite:shop.db", sql]);
            assert!(output.status.success(), "{output:?}");
        }
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onecopy"));
        for name in ["NO_COLOR", "CLICOLOR_FORCE", "COLUMNS"] {
            command.env_remove(name);
        }
        for name in ["FORMAT", "TIMEOUT", "BIND", "PORT", "CODE", "RECEIVE_BIND"] {
            command.env_remove(format!("ONECOPY_{name}"));
        }
        command
            .args(args)
            .current_dir(self.0.path())
            .output()
            .unwrap()
    }

    /// Runs the command and compares its stdout, stderr and exit code with `snapshots/<name>.txt`.
    fn snapshot(&self, name: &str, args: &[&str]) {
        let output = self.run(args);
        let line: Vec<String> = args
            .iter()
            .map(|a| {
                if a.contains([' ', '*', '\'']) {
                    format!("{a:?}")
                } else {
                    (*a).to_owned()
                }
            })
            .collect();
        let text = format!(
            "$ onecopy {}\n--- stdout\n{}--- stderr\n{}--- exit code {}\n",
            line.join(" "),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
            output.status.code().unwrap()
        );
        let folder = self.0.path().to_str().unwrap();
        let text = text
            .replace(folder, "[FOLDER]")
            .replace(env!("CARGO_PKG_VERSION"), "[VERSION]");
        let text = without_sqlite_version(&text);
        let file = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/snapshots")
            .join(format!("{name}.txt"));
        if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
            std::fs::write(&file, &text).unwrap();
        }
        let expected = std::fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(text, expected, "{} differs", file.display());
    }
}

/// Replaces version numbers of SQLite, so that a new version of SQLite does not change snapshots.
fn without_sqlite_version(text: &str) -> String {
    let mut parts = text.split("SQLite 3.");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("SQLite [VERSION]");
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.'));
    }
    out
}

#[test]
fn rows_in_each_form() {
    let f = Folder::new();
    for form in ["table", "csv", "json", "ndjson"] {
        let args = [
            "query",
            "sqlite:shop.db",
            "select * from item",
            "--format",
            form,
        ];
        f.snapshot(&format!("query_{form}"), &args);
    }
    f.snapshot(
        "query_without_format",
        &["query", "sqlite:shop.db", "select id from item"],
    );
    f.snapshot(
        "query_empty_table",
        &[
            "query",
            "sqlite:shop.db",
            "select id, name from item where 0",
            "-f",
            "table",
        ],
    );
}

#[test]
fn parameters_by_place_and_by_name() {
    let f = Folder::new();
    let db = "sqlite:shop.db";
    let named = "select typeof(:a) a, typeof(:b) b, :a = id as same from item where id = :a";
    f.snapshot(
        "query_named_parameters",
        &[
            "query", db, named, "-p", "a=2", "-p", "b=text:2", "-f", "table",
        ],
    );
    f.snapshot(
        "query_positional_parameters",
        &[
            "query",
            db,
            "select ? as a, ? as b",
            "-p",
            "x y",
            "-p",
            "null:",
            "-f",
            "table",
        ],
    );
    f.snapshot(
        "query_parameter_missing",
        &["query", db, named, "-p", "a=2"],
    );
    f.snapshot(
        "query_parameter_unknown",
        &["query", db, named, "-p", "c=2"],
    );
    f.snapshot(
        "query_parameter_type",
        &["query", db, named, "-p", "a=date:2024-02-30"],
    );
}

#[test]
fn statements_without_rows_tell_what_changed() {
    let f = Folder::new();
    f.snapshot(
        "query_update",
        &["query", "sqlite:shop.db", "update item set price = 1"],
    );
    let returning = "insert into item (name) values ('té') returning id, name";
    f.snapshot(
        "query_returning",
        &["query", "sqlite:shop.db", returning, "-f", "table"],
    );
    f.snapshot(
        "query_after_returning",
        &["query", "sqlite:shop.db", "select count(*) n from item"],
    );
}

#[test]
fn errors_of_query() {
    let f = Folder::new();
    let db = "sqlite:shop.db";
    for (name, args) in [
        ("wrong_table", vec![db, "select * from nix"]),
        ("wrong_syntax", vec![db, "selec 1"]),
        ("two_statements", vec![db, "select 1; select 2"]),
        ("unclosed_string", vec![db, "select 'a, :b"]),
        (
            "duplicate_names",
            vec![db, "select 1 a, 2 a", "--format", "json"],
        ),
        ("read_only", vec![db, "delete from item", "--read-only"]),
        ("no_scheme", vec!["shop.db", "select 1"]),
        ("no_folder", vec!["sqlite:none/shop.db", "select 1"]),
        ("no_file", vec!["@none.url", "select 1"]),
        ("no_database", vec!["sqlite:shop2.db", "select 1"]),
        ("no_arguments", vec![]),
        ("unknown_option", vec![db, "select 1", "--fromat", "csv"]),
        (
            "output_folder",
            vec![db, "select 1", "--output", "none/a.csv"],
        ),
        ("output_xlsx", vec![db, "select 1", "-o", "a.xlsx"]),
        (
            "output_parquet_gz",
            vec![db, "select 1", "-o", "a.parquet.gz"],
        ),
        ("output_no_ending", vec![db, "select 1", "-o", "a"]),
        ("time_limit", vec![db, "select 1", "--time-limit", "0"]),
    ] {
        let all: Vec<&str> = ["query"].into_iter().chain(args).collect();
        f.snapshot(&format!("query_error_{name}"), &all);
    }
}

#[test]
fn errors_of_serve() {
    let f = Folder::new();
    f.write(
        "wrong.toml",
        "[server]\nbnd = \"x\"\n[databases.shop]\nurl = \"sqlite:${NOT_SET_ANYWHERE}\"\n\
         [queries.'a b']\nsql = 'select :id; select 2'\nparameters.n = { type = 'integer' }\n",
    );
    f.snapshot("serve_wrong_file", &["serve", "wrong.toml"]);
    f.write("broken.toml", "[databases.shop]\nurl = \"sqlite:shop.db\n");
    f.snapshot("serve_broken_file", &["serve", "broken.toml"]);
    f.snapshot("serve_no_file", &["serve", "none.toml"]);
    f.write(
        "good.toml",
        "[databases.shop]\nurl = \"sqlite:shop.db\"\n[queries.items]\nsql = \"select * from item where price <= :most\"\n\
         parameters.most = { type = \"float\", default = 100 }\n",
    );
    f.snapshot("serve_check_good", &["serve", "good.toml", "--check"]);
    f.snapshot(
        "serve_not_public",
        &["serve", "good.toml", "--bind", "0.0.0.0:8000"],
    );
    f.snapshot(
        "serve_no_address",
        &["serve", "good.toml", "--bind", "here"],
    );
    f.write(
        "bad.toml",
        "[databases.shop]\nurl = \"sqlite:shop.db\"\n[databases.gone]\nurl = \"sqlite:none/gone.db\"\n\
         [queries.wrong]\ndatabase = \"shop\"\nsql = \"select * from nix\"\n\
         [queries.writes]\ndatabase = \"shop\"\nsql = \"delete from item\"\n\
         [queries.twice]\ndatabase = \"shop\"\nsql = \"select 1 a, 2 a\"\n\
         [queries.gone]\ndatabase = \"gone\"\nsql = \"select 1\"\n",
    );
    f.snapshot("serve_check_bad", &["serve", "bad.toml", "--check"]);
}

#[test]
fn what_transcode_says() {
    let f = Folder::new();
    std::fs::write(f.path("old.txt"), b"caf\xe9, na\xefve, d\xe9j\xe0 vu\n").unwrap();
    f.write("new.txt", "10 €\n5 ₽\n");
    let snapshot = |name: &str, args: &[&str]| {
        let args: Vec<&str> = ["transcode"].iter().chain(args).copied().collect();
        f.snapshot(&format!("transcode_{name}"), &args);
    };
    snapshot("list", &["-l"]);
    snapshot("auto", &["old.txt", "new.txt"]);
    snapshot("malformed", &["-f", "utf-8", "old.txt"]);
    snapshot("unencodable", &["-f", "utf-8", "-t", "latin1", "new.txt"]);
    snapshot("strict", &["--strict", "old.txt"]);
    snapshot("no_file", &["none.txt"]);
    snapshot("no_folder", &["new.txt", "-o", "none/a.txt"]);
    snapshot("no_encoding", &["-f", "ebcdic", "old.txt"]);
    snapshot("transliterate", &["-t", "ascii//TRANSLIT", "new.txt"]);
    snapshot("in_place_stdin", &["-i"]);
}

#[test]
fn what_bson_and_json_say() {
    let f = Folder::new();
    let text = "{\"_id\": {\"$oid\": \"56e1fc72e0c917e9c4714161\"}, \"price\": 2.50, \"n\": 3000000000}\n\
                {\"at\": {\"$date\": \"2012-12-24T12:15:30.501Z\"}, \"tags\": [\"čaj\", null]}\n";
    f.write("item.ndjson", text);
    f.write(
        "wrong.ndjson",
        "{\"a\": 1}\n{\"b\": \"é\", \"c\": {\"$oid\": \"x\"}}\n",
    );
    f.write("cut.json", "[{\"a\": 1},\n {\"a\": 2}");
    f.write("big.json", "{\"a\": 18446744073709551616}");
    f.snapshot(
        "json2bson_to_file",
        &["json2bson", "item.ndjson", "-o", "item.bson"],
    );
    f.snapshot("bson2json", &["bson2json", "item.bson"]);
    f.snapshot(
        "bson2json_canonical",
        &["bson2json", "item.bson", "--canonical"],
    );
    f.snapshot("bson2json_array", &["bson2json", "item.bson", "--array"]);
    f.snapshot(
        "bson2json_size",
        &["bson2json", "item.bson", "--max-bytes", "40"],
    );
    f.snapshot("bson2json_text", &["bson2json", "item.ndjson"]);
    f.snapshot("bson2json_no_file", &["bson2json", "none.bson"]);
    f.snapshot(
        "bson2json_no_folder",
        &["bson2json", "item.bson", "-o", "none/a.json"],
    );
    f.snapshot(
        "json2bson_wrong",
        &["json2bson", "wrong.ndjson", "-o", "wrong.bson"],
    );
    f.snapshot(
        "json2bson_cut",
        &["json2bson", "cut.json", "-o", "cut.bson"],
    );
    f.snapshot(
        "json2bson_size",
        &[
            "json2bson",
            "item.ndjson",
            "--max-bytes",
            "9",
            "-o",
            "a.bson",
        ],
    );
    f.snapshot(
        "json2bson_big",
        &[
            "json2bson",
            "big.json",
            "--big-ints",
            "error",
            "-o",
            "a.bson",
        ],
    );
    f.snapshot(
        "json2bson_size_usage",
        &["json2bson", "--max-bytes", "3000000000"],
    );
    let cut = std::fs::read(f.path("item.bson")).unwrap();
    std::fs::write(f.path("cut.bson"), &cut[..cut.len() - 1]).unwrap();
    f.snapshot("bson2json_cut", &["bson2json", "cut.bson", "--array"]);
}

#[test]
fn commands_of_the_python_package_are_reported_as_missing() {
    let f = Folder::new();
    f.snapshot(
        "run_without_python",
        &[
            "run",
            "hello:app",
            "--bind",
            "127.0.0.1:8000",
            "--workers=2",
        ],
    );
    f.snapshot("run_without_python_help", &["run", "--help"]);
    f.snapshot("bench_without_python", &["bench", "sqlite:shop.db"]);
}

#[test]
fn errors_of_serve_files() {
    let f = Folder::new();
    let (no_type, wrong) = ("a.txt", "a\r\nX: y");
    f.write(no_type, "a");
    f.snapshot("serve_files_no_folder", &["serve-files", "nothing"]);
    f.snapshot("serve_files_a_file", &["serve-files", no_type]);
    f.snapshot(
        "serve_files_cache_control",
        &["serve-files", ".", "--cache-control", wrong],
    );
    f.snapshot(
        "serve_files_no_address",
        &["serve-files", ".", "--bind", "here"],
    );
    f.snapshot(
        "serve_files_no_certificate",
        &["serve-files", ".", "--certfile", "none.pem"],
    );
    f.snapshot(
        "serve_files_key_alone",
        &["serve-files", ".", "--keyfile", "key.pem"],
    );
    f.snapshot(
        "serve_files_log",
        &["serve-files", ".", "--access-log", "no/folder/log"],
    );
}

#[test]
fn help_of_each_command() {
    let f = Folder::new();
    f.snapshot("help", &["--help"]);
    for command in [
        "query",
        "export",
        "copy",
        "verify",
        "plan",
        "serve",
        "serve-files",
        "transcode",
        "bson2json",
        "json2bson",
        "send",
        "receive",
        "doctor",
    ] {
        let name = format!("help_{}", command.replace('-', "_"));
        f.snapshot(&name, &[command, "--help"]);
    }
}
