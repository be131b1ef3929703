//! The configuration: a TOML file that names databases and queries. Format: `docs/reference/gateway-config.md`.

mod interpolate;
mod query;
mod walk;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use onecopy_rows::Dialect;
use onecopy_rows::connect::Connection;
use onecopy_serve::Address;
use onecopy_text::Policy;
use toml::de::{DeTable, DeValue};

use crate::parameters::Parameter;
use walk::{Problems, Table};

pub use walk::Problem;

/// Everything a gateway serves, and how.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file it was read from, for messages.
    pub file: PathBuf,
    /// How it listens and presents itself.
    pub server: Server,
    /// The databases, in the file's order.
    pub databases: Vec<Database>,
    /// The queries, in the file's order.
    pub queries: Vec<Query>,
}

/// How the gateway listens and presents itself.
#[derive(Clone, Debug)]
pub struct Server {
    /// Address and port, as written: `127.0.0.1:8000`.
    pub bind: String,
    /// Heading of the page.
    pub title: String,
    /// A text under the heading: what this is, where the data come from.
    pub description: String,
    /// Names besides the loopback ones that a request to a loopback address may have in `Host`: those under which a
    /// reverse proxy of this machine is reached.
    pub hosts: Vec<String>,
    /// Whether problems tell the SQL and the database's whole message.
    pub debug: bool,
}

/// A database.
#[derive(Clone, Debug)]
pub struct Database {
    /// Its name in this file.
    pub name: String,
    /// What [`onecopy_rows::connect::Connection::open`] is given.
    pub target: Target,
    /// How it writes literals.
    pub dialect: Dialect,
    /// Most queries that run on it at a time, each on a connection of its own.
    pub max_concurrent: usize,
    /// How long to try to connect, in seconds.
    pub connect_timeout_s: u32,
    /// What is done with malformed text in a cell.
    pub text_policy: Policy,
}

/// A connection string. It may hold a password, so it is never shown.
#[derive(Clone)]
pub struct Target(String);

impl Target {
    /// A connection string or URL.
    #[must_use]
    pub fn new(target: impl Into<String>) -> Target {
        Target(target.into())
    }

    /// The string itself, to connect with.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Target(…)")
    }
}

/// A named query.
#[derive(Clone, Debug)]
pub struct Query {
    /// Its name in the path: letters, digits, `_` and `-`.
    pub name: String,
    /// For people.
    pub description: String,
    /// Index into [`Config::databases`].
    pub database: usize,
    /// The SQL as written.
    pub sql: String,
    /// The SQL with `?` for each parameter.
    pub positional_sql: String,
    /// For each `?`, the index into `parameters`.
    pub bindings: Vec<usize>,
    /// The parameters, in the file's order.
    pub parameters: Vec<Parameter>,
    /// How long one request may take, from its start to its last byte from the database.
    pub time_limit: Duration,
}

/// Why a configuration cannot be used: every problem found, not the first alone.
#[derive(Clone, Debug)]
pub struct ConfigError {
    /// The file as the user named it.
    pub file: PathBuf,
    /// The problems, in the file's order.
    pub problems: Vec<Problem>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            let file = self.file.display();
            let message = problem.message.replace('\n', "\n  ");
            match problem.line {
                0 => write!(f, "{file}: {message}")?,
                line => write!(f, "{file}:{line}:{}: {message}", problem.column)?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// Reads `file`. Paths in it are relative to its folder, variables are those of the environment.
    ///
    /// # Errors
    /// Every problem found, with its line.
    pub fn load(file: &Path) -> Result<Config, ConfigError> {
        let text = Config::read(file)?;
        Config::parse(&text, file, &|name| std::env::var(name).ok())
    }

    /// The text of `file`, for [`Config::parse`].
    ///
    /// # Errors
    /// A problem without a line: it cannot be read.
    pub fn read(file: &Path) -> Result<String, ConfigError> {
        std::fs::read_to_string(file).map_err(|error| ConfigError {
            file: file.to_owned(),
            problems: vec![Problem {
                line: 0,
                column: 0,
                message: format!("cannot be read: {error}"),
            }],
        })
    }

    /// As [`Config::load`], of a text that stands in `file` and with variables from `env`.
    ///
    /// # Errors
    /// Every problem found, with its line.
    pub fn parse(
        text: &str,
        file: &Path,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Config, ConfigError> {
        let mut problems = Problems::new(text);
        let (root, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            // Not its Display, which shows the line at fault: a password may stand in it.
            problems.add(error.span().unwrap_or(0..0), error.message());
        }
        let mut config = Config {
            file: file.to_owned(),
            server: Server {
                bind: "127.0.0.1:8000".to_owned(),
                title: "onecopy".to_owned(),
                description: String::new(),
                hosts: Vec::new(),
                debug: false,
            },
            databases: Vec::new(),
            queries: Vec::new(),
        };
        if errors.is_empty() {
            let folder = file.parent().unwrap_or(Path::new(""));
            let mut root = Table::new(root.get_ref(), "the file".to_owned(), 0..0);
            read(&mut root, &mut config, folder, env, &mut problems);
            root.finish(&mut problems);
        }
        if problems.list.is_empty() {
            return Ok(config);
        }
        problems.list.sort();
        problems.list.dedup();
        Err(ConfigError {
            file: file.to_owned(),
            problems: problems.list,
        })
    }

    /// The query of this name.
    #[must_use]
    pub fn query(&self, name: &str) -> Option<(usize, &Query)> {
        self.queries
            .iter()
            .enumerate()
            .find(|(_, q)| q.name == name)
    }
}

/// Defaults of `[limits]`.
struct Limits {
    time_limit_s: u64,
    max_concurrent: u64,
}

fn read(
    root: &mut Table<'_, '_>,
    config: &mut Config,
    folder: &Path,
    env: &dyn Fn(&str) -> Option<String>,
    problems: &mut Problems<'_>,
) {
    if let Some(mut server) = sub_table(root, "server", problems) {
        read_server(&mut server, &mut config.server, env, problems);
        server.finish(problems);
    }
    let mut limits = Limits {
        time_limit_s: 30,
        max_concurrent: 8,
    };
    if let Some(mut table) = sub_table(root, "limits", problems) {
        if let Some(n) = table.number("time_limit_s", 1..=86_400, problems) {
            limits.time_limit_s = n;
        }
        if let Some(n) = table.number("max_concurrent", 1..=1000, problems) {
            limits.max_concurrent = n;
        }
        table.finish(problems);
    }
    for (name, span, value) in root.tables("databases", problems) {
        let Some(table) = value.get_ref().as_table() else {
            problems.add(
                span,
                format!("`databases.{name}` must be a table with a `url`"),
            );
            continue;
        };
        let mut table = Table::new(table, format!("[databases.{name}]"), span);
        let database = read_database(name, &mut table, &limits, folder, env, problems);
        config.databases.push(database);
        table.finish(problems);
    }
    if config.databases.is_empty() {
        problems.add(
            0..0,
            "no database is named\nadd one: [databases.NAME] with url = \"sqlite:…\"",
        );
    }
    for (name, span, value) in root.tables("queries", problems) {
        let Some(table) = value.get_ref().as_table() else {
            problems.add(
                span,
                format!("`queries.{name}` must be a table with `sql` or `file`"),
            );
            continue;
        };
        let mut table = Table::new(table, format!("[queries.{name}]"), span);
        let query = query::read(
            name,
            &mut table,
            &config.databases,
            &limits,
            folder,
            problems,
        );
        config.queries.extend(query);
        table.finish(problems);
    }
}

fn sub_table<'t, 'i>(
    root: &mut Table<'t, 'i>,
    key: &'static str,
    problems: &mut Problems<'_>,
) -> Option<Table<'t, 'i>> {
    let value = root.get(key)?;
    match value.get_ref() {
        DeValue::Table(table) => Some(Table::new(table, format!("[{key}]"), value.span())),
        _ => {
            problems.add(value.span(), format!("`{key}` must be a table: [{key}]"));
            None
        }
    }
}

fn read_server(
    table: &mut Table<'_, '_>,
    server: &mut Server,
    env: &dyn Fn(&str) -> Option<String>,
    problems: &mut Problems<'_>,
) {
    if let Some((bind, span)) = table.text("bind", problems) {
        match interpolate::interpolate(bind, env) {
            Ok(bind) if resolve(&bind).is_some() => server.bind = bind,
            Ok(_) => problems.add(
                span,
                "`bind` must be an address and a port, such as \"127.0.0.1:8000\", or \"unix:\" and a path",
            ),
            Err(message) => problems.add(span, message),
        }
    }
    if let Some((title, _)) = table.text("title", problems) {
        title.clone_into(&mut server.title);
    }
    if let Some((description, _)) = table.text("description", problems) {
        description.trim().clone_into(&mut server.description);
    }
    if let Some(value) = table.get("hosts") {
        let names = value.get_ref().as_array().map(|array| {
            let name = |v: &toml::Spanned<DeValue<'_>>| v.get_ref().as_str().map(str::to_owned);
            array.iter().map(name).collect::<Option<Vec<_>>>()
        });
        match names.flatten() {
            Some(names) => server.hosts = names,
            None => problems.add(
                value.span(),
                "`hosts` must be a list of names: [\"api.example.org\"]",
            ),
        }
    }
    if let Some((debug, _)) = table.boolean("debug", problems) {
        server.debug = debug;
    }
}

/// The path of `unix:path`, or the first socket address of `host:port`.
#[must_use]
pub fn resolve(bind: &str) -> Option<Address> {
    Address::resolve(bind).ok()
}

fn read_database(
    name: String,
    table: &mut Table<'_, '_>,
    limits: &Limits,
    folder: &Path,
    env: &dyn Fn(&str) -> Option<String>,
    problems: &mut Problems<'_>,
) -> Database {
    let url = table.text("url", problems);
    let url_file = table.text("url_file", problems);
    let mut target = None;
    match (url, url_file) {
        (Some((url, span)), None) => match interpolate::interpolate(url, env) {
            Ok(url) => target = Some(url),
            Err(message) => problems.add(span, format!("`url`: {message}")),
        },
        (None, Some((path, span))) => match interpolate::interpolate(path, env) {
            Ok(path) => match std::fs::read_to_string(folder.join(&path)) {
                Ok(url) => target = Some(url.trim().to_owned()),
                Err(error) => {
                    problems.add(
                        span,
                        format!("`url_file` \"{path}\" cannot be read: {error}"),
                    );
                }
            },
            Err(message) => problems.add(span, format!("`url_file`: {message}")),
        },
        (None, None) => {
            // A `url` of the wrong type was told already; then this adds what is wanted.
            problems.add(
                table.span(),
                format!("database `{name}` needs `url` or `url_file`"),
            );
        }
        (Some(_), Some((_, span))) => problems.add(
            span,
            format!("database `{name}` has both `url` and `url_file`\nkeep one of them"),
        ),
    }
    let target = relative_to(target.unwrap_or_default(), folder);
    Database {
        dialect: Connection::dialect_of(&target),
        target: Target(target),
        max_concurrent: table
            .number("max_concurrent", 1..=1000, problems)
            .unwrap_or(limits.max_concurrent) as usize,
        connect_timeout_s: table
            .number("connect_timeout_s", 1..=600, problems)
            .unwrap_or(10) as u32,
        text_policy: match table.text("text_errors", problems) {
            None | Some(("strict", _)) => Policy::Strict,
            Some(("replace", _)) => Policy::Replace,
            Some((_, span)) => {
                problems.add(span, "`text_errors` must be \"strict\" or \"replace\"");
                Policy::Strict
            }
        },
        name,
    }
}

/// A `sqlite:` URL of a relative path, made relative to the configuration's folder instead of the current one.
fn relative_to(target: String, folder: &Path) -> String {
    let Some(rest) = target.strip_prefix("sqlite:") else {
        return target;
    };
    // `sqlite://path` is relative too; three slashes are SQLAlchemy's form, which `rows` tells apart.
    let path = rest
        .strip_prefix("//")
        .filter(|p| !p.starts_with('/'))
        .unwrap_or(rest);
    if path.is_empty() || path.starts_with(['/', ':', '?']) || folder.as_os_str().is_empty() {
        return target;
    }
    // What follows `sqlite:` is percent-decoded and its options start at a `?`.
    let folder = folder.display().to_string();
    let folder = folder.replace('%', "%25").replace('?', "%3F");
    format!("sqlite:{}/{path}", folder.trim_end_matches('/'))
}

#[cfg(test)]
mod tests;
