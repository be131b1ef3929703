//! An export of parts by several processes: a part that is replaced while another process finishes
//! the export.
#![allow(clippy::unwrap_used)] // Helper functions are tests too.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::thread;

use onecopy_export::plan::{PartSpec, Plan, PlanOptions, plan};
use onecopy_export::{Begin, FileFormat, Format, IfExists, RowOptions, Settings, Staging, verify};
use onecopy_rows::ConnectOptions;
use onecopy_rows::connect::Connection;
use onecopy_text::Policy;

fn open(folder: &Path, plan: &Plan, begin: Begin) -> Staging {
    let settings = Settings::new(&row_options(), Policy::Strict);
    Staging::open(folder, plan.clone(), settings, begin, IfExists::Refuse).unwrap()
}

fn row_options() -> RowOptions {
    RowOptions::new(FileFormat::new(Format::Csv, None).unwrap())
}

fn write(staging: &Staging, connection: &Connection, part: &PartSpec, sql: &str) {
    let statement = connection.execute(sql, &part.values).unwrap();
    let staged = staging.begin_part(part).unwrap();
    staged
        .write(statement, part, &row_options(), &mut ())
        .unwrap();
}

#[test]
fn the_manifest_has_the_hash_of_a_part_that_was_replaced_before_the_lock() {
    let connection = Connection::open("sqlite::memory:", &ConnectOptions::default()).unwrap();
    for sql in [
        "create table t (id integer primary key)",
        "with recursive n(i) as (values (1) union all select i + 1 from n where i < 100)
         insert into t select i from n",
    ] {
        connection.execute(sql, &[]).unwrap();
    }
    let options = PlanOptions {
        n_parts: 2,
        ..PlanOptions::default()
    };
    let plan = plan(&connection, "select id from t", &[], &options).unwrap();
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("out");
    let staging = open(&folder, &plan, Begin::New);
    for part in &plan.parts {
        write(&staging, &connection, part, &part.sql);
    }
    drop(staging);

    // The process that finishes reads the manifest of the first part, then waits for that of the
    // last one, which is a pipe.
    let last = format!("part-{:05}.csv.manifest.json", plan.parts.len() - 1);
    let last = folder.join(".onecopy-export").join(last);
    let manifest = fs::read(&last).unwrap();
    fs::remove_file(&last).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(&last)
            .status()
            .unwrap()
            .success()
    );
    let other = open(&folder, &plan, Begin::Join);
    let finishing = thread::spawn(move || other.finish(&mut |_| Ok(())));
    let mut pipe = OpenOptions::new().write(true).open(&last).unwrap();

    // Another process replaces the first part: the same rows in another order.
    let staging = open(&folder, &plan, Begin::Join);
    let first = &plan.parts[0];
    let sql = format!("select id from ({}) order by id desc", first.sql);
    write(&staging, &connection, first, &sql);
    drop(staging);
    let regular = home.path().join("manifest");
    fs::write(&regular, &manifest).unwrap();
    fs::rename(&regular, &last).unwrap();
    pipe.write_all(&manifest).unwrap();
    drop(pipe);

    let whole = finishing.join().unwrap().unwrap().unwrap();
    assert_eq!(whole.n_rows(), 100);
    let report = verify(&folder, &mut ()).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
}
