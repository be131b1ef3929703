//! `onecopy export`: writes the rows of one statement to a file, a folder or stdout.

use std::io::{self, IsTerminal};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use onecopy_export::file::manifest_path;
use onecopy_export::folder::MANIFEST;
use onecopy_export::{
    FileFormat, FileTarget, FolderTarget, IfExists, Manifest, RowOptions, write_rows,
};
use onecopy_rows::connect::Statement;
use onecopy_text::Ledger;

use crate::args::Export;
use crate::console::notice;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::row_progress::{RowProgress, json_text};
use crate::statement::{Source, arrow_types};
use crate::{export_parts, input};

/// Runs the command `onecopy export`; returns the exit code of the process.
pub(crate) fn run(args: &Export) -> i32 {
    args.rows
        .reporting()
        .run(args.rows.time_limit, |interrupt| export(args, interrupt))
}

/// The destination to which `onecopy export` writes the rows.
pub(crate) enum ExportTarget {
    Stdout(Output),
    File(Box<FileTarget>),
    Folder(FolderTarget),
}

/// The result of an export that succeeded.
pub(crate) struct Done {
    pub(crate) n_rows: u64,
    pub(crate) n_bytes: u64,
    /// The manifest that was written. `None` for an export to stdout, which has no manifest. Also
    /// `None` if this command exported some parts while other parts are still missing.
    pub(crate) manifest: Option<Manifest>,
}

impl Done {
    /// Creates the result of an export from its manifest, which lists the rows and bytes of all
    /// files.
    pub(crate) fn of(manifest: Manifest) -> Done {
        Done {
            n_rows: manifest.n_rows(),
            n_bytes: manifest.n_bytes(),
            manifest: Some(manifest),
        }
    }
}

fn export(args: &Export, interrupt: &Interrupt) -> Result<(), Failure> {
    if args.plan.is_some() || args.parts.is_some() || args.resume {
        return export_parts::run(args, interrupt);
    }
    let sql = args.sql.as_deref().unwrap_or_default();
    let source = Source::read(&args.database, sql, &args.params)?;
    let options = row_options(args)?;
    // The target is opened before the query is executed, because the query may take long and an
    // error of the target should be reported at once.
    let target = open_target(args, options.file)?;
    let started = Instant::now();
    let connection = source.connect(true, args.rows.errors, args.rows.time_limit)?;
    if args.rows.reporting().shows_notices() {
        connection.notices().iter().for_each(|n| notice(n));
    }
    let n_estimated = match args.rows.reporting().shows_progress() {
        true => source.estimated_rows(&connection),
        false => None,
    };
    let statement = source.execute(&connection, interrupt)?;
    if !statement.schema().has_rows() {
        let message = "the statement returns no rows\nexport a SELECT";
        return Err(Failure::Usage(message.to_owned()));
    }
    let rows = Rows {
        statement,
        sql: &source.given_sql,
        n_estimated,
    };
    write_to(target, rows, args, &options, interrupt, started)
}

/// An executed statement whose rows are exported, with its SQL and the estimated number of rows.
pub(crate) struct Rows<'a> {
    pub(crate) statement: Statement,
    /// The SQL text that the manifest records.
    pub(crate) sql: &'a str,
    /// The estimated number of rows, for the progress display; `None` if it is unknown.
    pub(crate) n_estimated: Option<u64>,
}

/// Writes rows to the target, shows the progress, and prints the result.
pub(crate) fn write_to(
    target: ExportTarget,
    rows: Rows<'_>,
    args: &Export,
    options: &RowOptions,
    interrupt: &Interrupt,
    started: Instant,
) -> Result<(), Failure> {
    let mut progress = args.rows.reporting().progress(interrupt, rows.n_estimated);
    let to_stdout = matches!(target, ExportTarget::Stdout(_));
    let done = write(target, rows.statement, rows.sql, options, &mut progress);
    progress.end();
    let done = done.map_err(|error| Failure::of_export(error, to_stdout))?;
    report(args, &done, started);
    Ok(())
}

/// Returns the row options that the command line requests: the format and the Arrow types. The
/// ledger is disabled.
pub(crate) fn row_options(args: &Export) -> Result<RowOptions, Failure> {
    Ok(RowOptions {
        file: file_format(args)?,
        types: arrow_types(&args.types)?,
        ledger: Ledger::off(),
    })
}

fn write(
    target: ExportTarget,
    statement: Statement,
    sql: &str,
    options: &RowOptions,
    progress: &mut RowProgress<'_>,
) -> Result<Done, onecopy_export::Error> {
    let manifest = match target {
        ExportTarget::Stdout(mut out) => {
            let written = write_rows(statement, options, out.as_write(), false, progress)?;
            return Ok(Done {
                n_rows: written.n_rows,
                n_bytes: written.n_bytes,
                manifest: None,
            });
        }
        ExportTarget::File(target) => target.write(statement, sql, options, progress)?,
        ExportTarget::Folder(target) => target.write(statement, sql, options, progress)?,
    };
    Ok(Done::of(manifest))
}

/// Reports the numbers of rows and bytes and the duration: as one line for people, or as a JSON
/// event that also lists the files.
pub(crate) fn report(args: &Export, done: &Done, started: Instant) {
    let mut members = Vec::new();
    if let Some(manifest) = &done.manifest {
        let names = manifest.files.iter().map(|file| json_text(&file.name));
        let names = names.collect::<Vec<_>>().join(",");
        members.push(("files", format!("[{names}]")));
        if let Some(path) = path_of_manifest(args) {
            members.push(("manifest", json_text(&path)));
        }
    }
    args.rows
        .reporting()
        .done(done.n_rows, done.n_bytes, started, members);
}

fn path_of_manifest(args: &Export) -> Option<String> {
    let path = match is_folder(&args.output) {
        true => args.output.join(MANIFEST),
        false if args.no_manifest => return None,
        false => manifest_path(&args.output),
    };
    Some(path.display().to_string())
}

/// Returns `true` if the rows are exported to a folder: `output` is an existing folder, or its name
/// ends with a slash.
pub(crate) fn is_folder(output: &Path) -> bool {
    output.as_os_str().as_bytes().ends_with(b"/") || output.is_dir()
}

/// Returns the file format that `--format`, `--compression` and the ending of the file name
/// determine. Returns an error if the options contradict the ending.
fn file_format(args: &Export) -> Result<FileFormat, Failure> {
    let compression = args.compression.map(Into::into);
    let failed = |error| Failure::of_export(error, false);
    let is_named = !input::is_dash(&args.output) && !is_folder(&args.output);
    let by_name = is_named.then(|| FileFormat::of_path(&args.output));
    let (format, named) = match (args.format, by_name) {
        (None, None) => {
            let message = "the format of a folder or of stdout is not known\n\
                           give `--format parquet`, `csv` or another format";
            return Err(Failure::Usage(message.to_owned()));
        }
        (None, Some(Err(error @ onecopy_export::Error::UnknownEnding(_)))) => {
            return Err(Failure::Usage(format!("{error}; or give `--format`")));
        }
        (None, Some(Err(error))) => return Err(failed(error)),
        (None, Some(Ok(named))) => (named.format(), Some(named)),
        (Some(form), Some(Ok(named))) => (form.into(), Some(named)),
        // `--format` determines the format, because the ending of the file name is unknown or there
        // is no file name.
        (Some(form), _) => (form.into(), None),
    };
    let Some(named) = named else {
        return FileFormat::new(format, compression).map_err(failed);
    };
    let is_same = named.format() == format
        && (format.compresses_itself() || compression.is_none_or(|c| c == named.compression()));
    if !is_same {
        let message = format!(
            "the name `{}` is that of a {} file with the compression `{}`, and the options are others\n\
             leave them out, or use another name",
            args.output.display(),
            named.format().name(),
            named.compression().name()
        );
        return Err(Failure::Usage(message));
    }
    FileFormat::new(format, Some(compression.unwrap_or(named.compression()))).map_err(failed)
}

/// Opens stdout, or creates the file or folder in which the rows are written.
pub(crate) fn open_target(args: &Export, file: FileFormat) -> Result<ExportTarget, Failure> {
    if input::is_dash(&args.output) {
        if file.format().is_binary() && io::stdout().is_terminal() {
            let name = file.format().title();
            let message = format!("{name} is not for a terminal\ngive a file, or write to a pipe");
            return Err(Failure::Usage(message));
        }
        return Output::stdout().map(ExportTarget::Stdout);
    }
    let if_exists = match args.overwrite {
        true => IfExists::Replace,
        false => IfExists::Refuse,
    };
    let opened = match is_folder(&args.output) {
        true if args.no_manifest => {
            let message = "a folder always has a manifest\nleave `--no-manifest` out";
            return Err(Failure::Usage(message.to_owned()));
        }
        true => FolderTarget::open(&args.output, if_exists).map(ExportTarget::Folder),
        false => FileTarget::create(&args.output, if_exists, !args.no_manifest)
            .map(|file| ExportTarget::File(Box::new(file))),
    };
    opened.map_err(|error| Failure::of_export(error, false))
}
