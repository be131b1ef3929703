//! Tests that text is correct in every locale without configuration, although psqlodbc derives the
//! encoding of 8-bit text from the environment. A process has one locale, so each case runs in a
//! child process, which executes one test of this binary.

#![allow(clippy::unwrap_used)] // A failed unwrap is a failed test.

mod databases;

use std::process::Command;

use databases::{Kept, Profile, row, run, text};
use onecopy_rows::Value;

const SAMPLE: &str = "é ß 日本 😀 кот";
const PROFILES: [Profile; 7] = [
    Profile::Postgres,
    Profile::PostgresAnsi,
    Profile::MariaDb,
    Profile::SqliteOdbc,
    Profile::TdsMicrosoft,
    Profile::TdsRust,
    Profile::TdsFreeTds,
];

#[test]
fn text_is_right_in_every_locale() {
    let variables = ["LC_ALL", "LC_CTYPE", "LANG"];
    for (name, set) in [
        ("none", vec![]),
        ("LC_ALL=C", vec![("LC_ALL", "C")]),
        ("LC_ALL=POSIX", vec![("LC_ALL", "POSIX")]),
        ("LC_ALL=C.UTF-8", vec![("LC_ALL", "C.UTF-8")]),
        (
            "LC_ALL=de_DE.ISO-8859-1",
            vec![("LC_ALL", "de_DE.ISO-8859-1")],
        ),
    ] {
        for call_setlocale in ["0", "1"] {
            let mut child = Command::new(std::env::current_exe().unwrap());
            child.args([
                "--exact",
                "child_of_a_locale",
                "--nocapture",
                "--include-ignored",
            ]);
            for variable in variables {
                child.env_remove(variable);
            }
            child.env("ONECOPY_TEST_SETLOCALE", call_setlocale);
            child.envs(set.iter().copied());
            let output = child.output().unwrap();
            let shown = String::from_utf8_lossy(&output.stdout);
            assert!(
                output.status.success() && shown.contains("1 passed"),
                "{name}, setlocale {call_setlocale}:\n{shown}\n{}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
}

#[test]
#[ignore = "run by text_is_right_in_every_locale, in a child with a locale of its own"]
fn child_of_a_locale() {
    if std::env::var("ONECOPY_TEST_SETLOCALE").as_deref() == Ok("1") {
        // Python makes this call at its start; the command `onecopy` does not.
        // SAFETY: no other thread of this test uses the locale yet.
        unsafe { libc::setlocale(libc::LC_ALL, c"".as_ptr()) };
    }
    for profile in PROFILES {
        let Some((c, _own)) = profile.open_own() else {
            continue;
        };
        let tds = matches!(
            profile,
            Profile::TdsMicrosoft | Profile::TdsRust | Profile::TdsFreeTds
        );
        let literal = if tds {
            format!("select N'{SAMPLE}' as [größe]")
        } else {
            format!("select '{SAMPLE}' as \"größe\"")
        };
        let name = c.execute(&literal, &[]).unwrap().schema().columns[0]
            .name
            .clone();
        assert_eq!(name, "größe", "{profile:?}");
        assert_eq!(
            row(&c, &literal, &[]),
            [text(SAMPLE)],
            "{profile:?}: {}",
            c.describe()
        );
        let back = if profile == Profile::Postgres || profile == Profile::PostgresAnsi {
            "select ?::text"
        } else {
            "select ?"
        };
        assert_eq!(
            row(&c, back, &[Value::Text(SAMPLE.to_owned())]),
            [text(SAMPLE)],
            "{profile:?}"
        );
        if tds {
            continue;
        }
        // The server must have stored this text, with the correct number of characters. Reading the
        // text back is no proof: if the same wrong encoding were used in both directions, this
        // client would read the correct text.
        let table = format!("odbc_locale_{}", std::process::id());
        run(&c, &format!("create table {table} (t varchar(100))"));
        c.execute(
            &format!("insert into {table} values (?)"),
            &[Value::Text(SAMPLE.to_owned())],
        )
        .unwrap();
        let length = match profile {
            Profile::SqliteOdbc => "length(t)",
            _ => "char_length(t)",
        };
        let got = row(&c, &format!("select t, {length} from {table}"), &[]);
        assert_eq!(
            got,
            [text(SAMPLE), Kept::I64(SAMPLE.chars().count() as i64)],
            "{profile:?}"
        );
        run(&c, &format!("drop table {table}"));
        c.commit().unwrap();
    }
}
