//! `onecopy export` in parts: `--parts`, `--plan`, `--part` and `--resume`.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use onecopy_export::folder::{MANIFEST, remove_leftovers};
use onecopy_export::plan::{self, PartSpec, Plan, PlanOptions};
use onecopy_export::{Begin, Error, IfExists, Manifest, Observer, RowOptions, Settings, Staging};
use onecopy_rows::Dialect;
use onecopy_rows::connect::{Connection, Statement};
use onecopy_wire::CancelHandle;
use onecopy_wire::lock::lock;

use crate::args::{Export, ProgressForm};
use crate::console::notice;
use crate::export::{Done, Rows, is_folder, open_target, report, row_options, write_to};
use crate::failure::Failure;
use crate::input;
use crate::interrupt::Interrupt;
use crate::row_progress::{RowProgress, event};
use crate::statement::{Source, go_on};

/// Exports all parts of a plan, or only the part that `--part` selects.
pub(crate) fn run(args: &Export, interrupt: &Interrupt) -> Result<(), Failure> {
    refuse_without_effect(args)?;
    let options = row_options(args)?;
    let started = Instant::now();
    let given = args.plan.as_deref().map(read_plan).transpose()?;
    let Some(plan) = given else {
        return planned_here(args, interrupt, &options, started);
    };
    let source = Source::of_plan(&args.database, &plan)?;
    if let Some(sql) = &args.sql {
        let given = Source::read(&args.database, sql, &args.params)?;
        refuse_other_statement(&plan, &given)?;
    }
    let number = args.part.map(|part| part.of(&plan)).transpose()?;
    match number {
        Some(number) if !is_folder(&args.output) => {
            let part = &plan.parts[number - 1];
            // The target is opened before the query, which may take long.
            let target = open_target(args, options.file)?;
            let connection = source.connect(true, args.rows.errors, args.rows.time_limit)?;
            interrupt.cancels(connection.cancel_handle());
            let rows = Rows {
                statement: execute(&connection, part, interrupt)?,
                sql: &part.sql,
                n_estimated: part.rows,
            };
            write_to(target, rows, args, &options, interrupt, started)
        }
        number => PartsExport {
            args,
            interrupt,
            options,
            source,
            started,
        }
        .export(plan, number, None),
    }
}

/// Returns an error if the command line has an option that would have no effect.
fn refuse_without_effect(args: &Export) -> Result<(), Failure> {
    let message = match is_folder(&args.output) {
        true if args.no_manifest => "a folder always has a manifest\nleave `--no-manifest` out",
        false if args.part.is_none() => {
            "parts are written into a folder\nend the name with `/`, or select one part with `--part`"
        }
        false if args.resume || args.check || args.jobs.is_some() => {
            "`--resume`, `--check` and `--jobs` are for a folder\nend the name with `/`, or leave them out"
        }
        _ if args.sql.is_none() && !args.params.is_empty() => {
            "the plan has the values of its parameters\nleave `--param` out"
        }
        _ => return Ok(()),
    };
    Err(Failure::Usage(message.to_owned()))
}

/// Reads a plan from the file `path`, or from stdin if `path` is `-`.
fn read_plan(path: &std::path::Path) -> Result<Plan, Failure> {
    let failed = |error| Failure::Read(path.display().to_string(), error);
    let text = match input::is_dash(path) {
        true => io::read_to_string(io::stdin()).map_err(failed)?,
        false => std::fs::read_to_string(path).map_err(failed)?,
    };
    Plan::from_json(&text).map_err(|error| Failure::of_export(error, false))
}

/// Returns an error if the SQL or the parameters on the command line differ from those of the plan.
fn refuse_other_statement(plan: &Plan, given: &Source) -> Result<(), Failure> {
    if plan.sql == given.sql() && plan.values == given.values() {
        return Ok(());
    }
    Err(Failure::Usage(
        "the plan is that of another statement, or of other parameters\n\
         leave the SQL out, or make a new plan"
            .to_owned(),
    ))
}

/// Exports the result of a statement, if the option `--plan` is not given. With `--resume`, the
/// plan that an interrupted export has stored in the target folder determines the parts. Otherwise,
/// a new plan is made.
fn planned_here(
    args: &Export,
    interrupt: &Interrupt,
    options: &RowOptions,
    started: Instant,
) -> Result<(), Failure> {
    let sql = args.sql.as_deref().unwrap_or_default();
    let source = Source::read(&args.database, sql, &args.params)?;
    let failed = |error| Failure::of_export(error, false);
    let unfinished = match args.resume {
        true => Staging::plan_of(&args.output).map_err(failed)?,
        false => None,
    };
    let parts = PartsExport {
        args,
        interrupt,
        options: options.clone(),
        source,
        started,
    };
    if let Some(plan) = unfinished {
        refuse_other_statement(&plan, &parts.source)?;
        return parts.export(plan, None, None);
    }
    let found = Manifest::read(&args.output.join(MANIFEST));
    if let (true, Ok(manifest)) = (args.resume, found)
        && manifest.plan.is_some()
        && manifest.query == parts.source.sql()
    {
        return parts.already_complete(manifest);
    }
    let connection = parts.connect()?;
    parts.show_notices(&connection);
    interrupt.cancels(connection.cancel_handle());
    let plan_options = PlanOptions {
        n_parts: args.parts.unwrap_or(1),
        key: args.key.iter().map(|name| name.trim().to_owned()).collect(),
        sample_rows: None,
        hold: connection.dialect() == Dialect::Postgres && !args.no_snapshot,
    };
    let source = &parts.source;
    let plan =
        plan::plan(&connection, source.sql(), source.values(), &plan_options).map_err(failed)?;
    go_on(interrupt)?;
    if args.rows.reporting().shows_notices() {
        plan.notes.iter().for_each(|note| notice(note));
    }
    parts.export(plan, None, Some(connection))
}

/// Executes the SQL statement that reads one part of the table. Returns an error if a signal or the
/// time limit has stopped the export.
fn execute(
    connection: &Connection,
    part: &PartSpec,
    interrupt: &Interrupt,
) -> Result<Statement, Failure> {
    go_on(interrupt)?;
    let statement = part
        .execute(connection)
        .map_err(|error| Failure::of_export(error, false))?;
    go_on(interrupt)?;
    Ok(statement)
}

/// The state of an export of several parts into a folder.
struct PartsExport<'a> {
    args: &'a Export,
    interrupt: &'a Interrupt,
    options: RowOptions,
    source: Source,
    started: Instant,
}

impl PartsExport<'_> {
    fn connect(&self) -> Result<Connection, Failure> {
        self.source
            .connect(true, self.args.rows.errors, self.args.rows.time_limit)
    }

    fn show_notices(&self, connection: &Connection) {
        if self.args.rows.reporting().shows_notices() {
            connection.notices().iter().for_each(|n| notice(n));
        }
    }

    fn n_jobs(&self) -> usize {
        let by_default = || std::thread::available_parallelism().map_or(1, |n| n.get().min(8));
        self.args.jobs.map_or_else(by_default, usize::from)
    }

    fn already_complete(&self, manifest: Manifest) -> Result<(), Failure> {
        let cleaned = remove_leftovers(&self.args.output);
        cleaned.map_err(|error| Failure::of_export(error, false))?;
        if self.args.rows.progress == ProgressForm::Json {
            report(self.args, &Done::of(manifest), self.started);
        } else if !self.args.rows.quiet {
            notice("the export is complete already");
        }
        Ok(())
    }

    /// Exports the part `number` of the plan, or all parts if `number` is `None`. `holder` is the
    /// connection with which the plan was made. Its transaction is still open, so it can read the
    /// snapshot of the plan.
    fn export(
        self,
        plan: Plan,
        number: Option<usize>,
        holder: Option<Connection>,
    ) -> Result<(), Failure> {
        let args = self.args;
        let failed = |error| Failure::of_export(error, false);
        if args.resume
            && let Ok(manifest) = Manifest::read(&args.output.join(MANIFEST))
            && manifest.plan.as_deref() == Some(plan.id())
            && Staging::plan_of(&args.output).map_err(failed)?.is_none()
        {
            return self.already_complete(manifest);
        }
        let begin = match (number, args.resume, args.overwrite) {
            (Some(_), ..) => Begin::Join,
            (None, true, _) => Begin::Resume,
            (None, false, true) => Begin::Again,
            (None, false, false) => Begin::New,
        };
        let if_exists = match args.overwrite {
            true => IfExists::Replace,
            false => IfExists::Refuse,
        };
        let settings = Settings::new(&self.options, args.rows.errors);
        let staging =
            Staging::open(&args.output, plan, settings, begin, if_exists).map_err(failed)?;
        let (complete, open) = self.divide(&staging, number)?;
        if let (Some(number), true, false) = (number, open.is_empty(), args.resume) {
            return Err(Failure::Other(format!(
                "part {number} is complete\n`--resume` makes this no error"
            )));
        }
        let written = self.write(&staging, &open, &complete)?;
        let mut check = |manifest: &Manifest| match args.check {
            true => self.check(manifest, holder.as_ref()),
            false => Ok(()),
        };
        let n_parts = staging.plan().parts.len();
        let manifest = staging.finish(&mut check).map_err(failed)?;
        match (manifest, number) {
            (Some(manifest), None) => report(args, &Done::of(manifest), self.started),
            (manifest, _) => {
                let is_whole = manifest.is_some();
                report(args, &written, self.started);
                if is_whole && args.rows.reporting().shows_notices() {
                    notice(&format!(
                        "all {n_parts} parts are complete; the manifest is written"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Returns the manifests of the parts that an earlier run has exported, and the parts that must
    /// still be exported. If `number` is given, only the part with this number is considered.
    fn divide(
        &self,
        staging: &Staging,
        number: Option<usize>,
    ) -> Result<(Vec<Manifest>, Vec<PartSpec>), Failure> {
        let (mut complete, mut open) = (Vec::new(), Vec::new());
        let selected = staging.plan().parts.iter();
        for part in selected.filter(|part| number.is_none_or(|n| n == part.number)) {
            match staging.complete(part) {
                Ok(Some(manifest)) => complete.push(manifest),
                Ok(None) => open.push(part.clone()),
                Err(error) => return Err(Failure::of_export(error, false)),
            }
        }
        Ok((complete, open))
    }

    /// Writes the parts in `open` with several threads. The parts in `complete` were written by an
    /// earlier run; they are included in the displayed progress.
    fn write(
        &self,
        staging: &Staging,
        open: &[PartSpec],
        complete: &[Manifest],
    ) -> Result<Done, Failure> {
        let estimated = open.iter().map(|part| part.rows).sum::<Option<u64>>();
        let n_jobs = self.n_jobs().min(open.len());
        let n_complete = complete.iter().map(Manifest::n_rows).sum::<u64>();
        let shared = JobState {
            interrupt: self.interrupt,
            progress: Mutex::new(Totals {
                n_rows: n_complete,
                n_bytes: complete.iter().map(Manifest::n_bytes).sum(),
                display: self
                    .args
                    .rows
                    .reporting()
                    .progress(self.interrupt, estimated.map(|rows| rows + n_complete)),
            }),
            cancels: Arc::new(Mutex::new(vec![None; n_jobs])),
            next: AtomicUsize::new(0),
            failure: Mutex::new(None),
            has_failed: AtomicBool::new(false),
        };
        let cancels = Arc::clone(&shared.cancels);
        self.interrupt.cancels(CancelHandle::new(move || {
            cancel_all(&cancels);
        }));
        std::thread::scope(|scope| {
            for slot in 0..n_jobs {
                let job = std::thread::Builder::new().name("part".to_owned());
                let shared = &shared;
                let spawned = job.spawn_scoped(scope, move || {
                    if let Err(failure) = self.job(staging, open, shared, slot) {
                        shared.fail(failure);
                    }
                });
                if let Err(source) = spawned {
                    shared.fail(Failure::System(source));
                }
            }
        });
        let totals = shared.progress.into_inner();
        let totals = totals.unwrap_or_else(std::sync::PoisonError::into_inner);
        totals.display.end();
        let failure = shared.failure.into_inner();
        match failure.unwrap_or_else(std::sync::PoisonError::into_inner) {
            Some(failure) => Err(failure),
            None => Ok(Done {
                n_rows: totals.n_rows,
                n_bytes: totals.n_bytes,
                manifest: None,
            }),
        }
    }

    /// Runs in each of the threads: writes unfinished parts, one after the other, until none is
    /// left.
    fn job(
        &self,
        staging: &Staging,
        open: &[PartSpec],
        shared: &JobState<'_>,
        slot: usize,
    ) -> Result<(), Failure> {
        let connection = self.connect()?;
        let failed = |error| Failure::of_export(error, false);
        loop {
            let next = shared.next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = open.get(next) else {
                return Ok(());
            };
            if shared.has_failed.load(Ordering::Relaxed) {
                return Ok(());
            }
            // The file is created before the statement, which may take long.
            let target = staging.begin_part(part).map_err(failed)?;
            let mut observer = PartObserver {
                shared,
                slot,
                n_rows: 0,
                n_bytes: 0,
            };
            observer.cancels(connection.cancel_handle());
            let statement = execute(&connection, part, self.interrupt)?;
            let manifest = target
                .write(statement, part, &self.options, &mut observer)
                .map_err(failed)?;
            observer.progress(manifest.n_rows(), manifest.n_bytes());
            // Ends the transaction, because the next part begins a new one.
            if !connection.autocommit() {
                connection.rollback()?;
            }
            self.announce(part, &manifest);
        }
    }

    fn announce(&self, part: &PartSpec, manifest: &Manifest) {
        if self.args.rows.progress != ProgressForm::Json {
            return;
        }
        let members = [
            ("part", part.number.to_string()),
            ("parts", part.count.to_string()),
            ("rows", manifest.n_rows().to_string()),
            ("bytes", manifest.n_bytes().to_string()),
        ];
        event("part", &members);
    }

    /// Returns an error if the number of rows of the statement differs from the number of exported
    /// rows. If the plan has a snapshot, the rows are counted in this snapshot.
    fn check(&self, manifest: &Manifest, holder: Option<&Connection>) -> Result<(), Error> {
        let connection = match holder {
            Some(_) => None,
            None => Some(self.connect().map_err(|f| Error::Usage(f.to_string()))?),
        };
        let connection = holder.or(connection.as_ref());
        // The transaction of `holder` reads the snapshot already.
        let snapshot = manifest.snapshot.as_deref().filter(|_| holder.is_none());
        let (sql, values) = (self.source.sql(), self.source.values());
        let Some(connection) = connection else {
            return Ok(());
        };
        let found = plan::count(connection, sql, values, snapshot)?;
        let exported = manifest.n_rows();
        match found == exported {
            true => Ok(()),
            false => Err(Error::Format(format!(
                "the parts have {exported} rows, and the statement has {found}\n\
                 the tables have changed: export again with `--overwrite`"
            ))),
        }
    }
}

fn cancel_all(cancels: &Mutex<Vec<Option<CancelHandle>>>) {
    lock(cancels)
        .iter()
        .flatten()
        .for_each(CancelHandle::cancel);
}

/// The state of an export of several parts that all threads of the export share.
struct JobState<'a> {
    interrupt: &'a Interrupt,
    progress: Mutex<Totals<'a>>,
    /// For each thread, the cancel handle of the statement that it executes; `None` while it
    /// executes none.
    cancels: Arc<Mutex<Vec<Option<CancelHandle>>>>,
    /// The index of the next part to write, in the list of parts that were not written yet. The
    /// next idle thread takes this part.
    next: AtomicUsize,
    failure: Mutex<Option<Failure>>,
    has_failed: AtomicBool,
}

/// The numbers of rows and bytes written so far, over all parts.
struct Totals<'a> {
    n_rows: u64,
    n_bytes: u64,
    display: RowProgress<'a>,
}

impl JobState<'_> {
    /// Records the first failure, and cancels the statements of all threads.
    fn fail(&self, failure: Failure) {
        lock(&self.failure).get_or_insert(failure);
        self.has_failed.store(true, Ordering::Relaxed);
        cancel_all(&self.cancels);
    }
}

/// The progress observer of one part. It adds the part's rows and bytes to the totals of the
/// export.
struct PartObserver<'s, 'a> {
    shared: &'s JobState<'a>,
    /// The index of the thread that writes the part.
    slot: usize,
    n_rows: u64,
    n_bytes: u64,
}

impl Observer for PartObserver<'_, '_> {
    fn cancels(&mut self, cancel: CancelHandle) {
        lock(&self.shared.cancels)[self.slot] = Some(cancel);
    }

    fn progress(&mut self, n_rows: u64, n_bytes: u64) {
        let mut totals = lock(&self.shared.progress);
        totals.n_rows += n_rows - self.n_rows;
        totals.n_bytes += n_bytes - self.n_bytes;
        (self.n_rows, self.n_bytes) = (n_rows, n_bytes);
        let (n_rows, n_bytes) = (totals.n_rows, totals.n_bytes);
        totals.display.progress(n_rows, n_bytes);
    }

    fn stops(&self) -> bool {
        self.shared.has_failed.load(Ordering::Relaxed) || self.shared.interrupt.stopped().is_some()
    }
}
