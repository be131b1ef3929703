//! [`Config`]: the configuration, a TOML file that defines databases and queries. Its format is
//! documented in `docs/reference/gateway-config.md`.

mod interpolate;
mod query;
mod toml_table;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use onecopy_rows::Dialect;
use onecopy_rows::connect::Connection;
use onecopy_serve::Address;
use onecopy_text::Policy;
use toml::de::{DeTable, DeValue};

use crate::parameters::Parameter;
use toml_table::{Problems, TomlTable};

pub use toml_table::Problem;

/// The configuration of a gateway.
#[derive(Clone, Debug)]
pub struct Config {
    /// The path of the file from which the configuration was read, for messages.
    pub file: PathBuf,
    /// The settings of the server.
    pub server: ServerSettings,
    /// The databases, in the order in which the file defines them.
    pub databases: Vec<Database>,
    /// The queries, in the order in which the file defines them.
    pub queries: Vec<Query>,
}

/// The settings of the server and of the page at `/`.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// The address and port of the listener as written in the configuration: `127.0.0.1:8000`.
    pub bind: String,
    /// The heading of the page at `/`.
    pub title: String,
    /// A text below the heading, for example about the origin of the data.
    pub description: String,
    /// The permitted values of a request's `Host` field, in addition to the loopback names. They
    /// are used only if the server listens on a loopback address. They are needed for a reverse
    /// proxy on this machine, which may forward requests with its public host name.
    pub hosts: Vec<String>,
    /// `true` if problem responses include the SQL and the whole message of the database.
    pub debug: bool,
}

/// A database that the configuration defines.
#[derive(Clone, Debug)]
pub struct Database {
    /// The name of the database in the configuration.
    pub name: String,
    /// The connection string with which the database is opened.
    pub target: Target,
    /// The SQL dialect, which determines the syntax of literals and comments.
    pub dialect: Dialect,
    /// The largest number of queries that run at the same time, each on its own connection.
    pub max_concurrent: usize,
    /// The time limit for connecting, in seconds.
    pub connect_timeout_s: u32,
    /// The treatment of malformed text in a cell: an error, or replacement.
    pub text_policy: Policy,
}

/// A connection string. Its `Debug` form does not contain the text, which may contain a password.
#[derive(Clone)]
pub struct Target(String);

impl Target {
    /// Creates a target from a connection string or URL.
    #[must_use]
    pub fn new(target: impl Into<String>) -> Target {
        Target(target.into())
    }

    /// Returns the connection string, for connecting.
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

/// A named query that the configuration defines.
#[derive(Clone, Debug)]
pub struct Query {
    /// The name of the query in the path of its URL: letters, digits, `_` and `-`.
    pub name: String,
    /// The description of the query, which the page at `/` displays.
    pub description: String,
    /// The index of the query's database in [`Config::databases`].
    pub database: usize,
    /// The SQL as written in the configuration.
    pub sql: String,
    /// The SQL with each parameter replaced by `?`.
    pub positional_sql: String,
    /// For each `?`, the index of its parameter in `parameters`.
    pub bindings: Vec<usize>,
    /// The parameters, in the order in which the file defines them.
    pub parameters: Vec<Parameter>,
    /// The time limit of a request, from its start to the last byte that the database returns.
    pub time_limit: Duration,
}

/// The error for an invalid configuration, with all problems that were found.
#[derive(Clone, Debug)]
pub struct ConfigError {
    /// The path of the file as the user specified it.
    pub file: PathBuf,
    /// The problems, in the order of their positions in the file.
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
    /// Reads the configuration in `file`. Relative paths in it are relative to the folder of the
    /// file; variables are read from the environment.
    ///
    /// # Errors
    /// [`ConfigError`] with every problem and its line.
    pub fn load(file: &Path) -> Result<Config, ConfigError> {
        let text = Config::read(file)?;
        Config::parse(&text, file, &|name| std::env::var(name).ok())
    }

    /// Reads the configuration file and returns its text, which [`Config::parse`] parses.
    ///
    /// # Errors
    /// [`ConfigError`] without a line if the file cannot be read.
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

    /// Parses `text`, which was read from `file`. Relative paths are relative to the folder of
    /// `file`. `env` returns the value of an environment variable, or `None` if the variable is not
    /// set.
    ///
    /// # Errors
    /// [`ConfigError`] with every problem and its line.
    pub fn parse(
        text: &str,
        file: &Path,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Config, ConfigError> {
        let mut problems = Problems::new(text);
        let (root, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            // The error's `Display` is not used, because it prints the invalid line, which may
            // contain a password.
            problems.add(error.span().unwrap_or(0..0), error.message());
        }
        let mut config = Config {
            file: file.to_owned(),
            server: ServerSettings {
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
            let mut root = TomlTable::new(root.get_ref(), "the file".to_owned(), 0..0);
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

    /// Returns the query with this name, and its index in [`Config::queries`]; `None` if no query
    /// has this name.
    #[must_use]
    pub fn query(&self, name: &str) -> Option<(usize, &Query)> {
        self.queries
            .iter()
            .enumerate()
            .find(|(_, q)| q.name == name)
    }
}

/// The limits in the table `[limits]`. Each of them applies to the queries or databases for which
/// the configuration sets no other limit.
struct DefaultLimits {
    time_limit_s: u64,
    max_concurrent: u64,
}

fn read(
    root: &mut TomlTable<'_, '_>,
    config: &mut Config,
    folder: &Path,
    env: &dyn Fn(&str) -> Option<String>,
    problems: &mut Problems<'_>,
) {
    if let Some(mut server) = sub_table(root, "server", problems) {
        read_server(&mut server, &mut config.server, env, problems);
        server.finish(problems);
    }
    let mut limits = DefaultLimits {
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
        let mut table = TomlTable::new(table, format!("[databases.{name}]"), span);
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
        let mut table = TomlTable::new(table, format!("[queries.{name}]"), span);
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
    root: &mut TomlTable<'t, 'i>,
    key: &'static str,
    problems: &mut Problems<'_>,
) -> Option<TomlTable<'t, 'i>> {
    let value = root.get(key)?;
    match value.get_ref() {
        DeValue::Table(table) => Some(TomlTable::new(table, format!("[{key}]"), value.span())),
        _ => {
            problems.add(value.span(), format!("`{key}` must be a table: [{key}]"));
            None
        }
    }
}

fn read_server(
    table: &mut TomlTable<'_, '_>,
    server: &mut ServerSettings,
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

/// Returns the path of `unix:path`, or the first socket address of `host:port`; `None` if `bind`
/// has neither form or the host is unknown.
#[must_use]
pub fn resolve(bind: &str) -> Option<Address> {
    Address::resolve(bind).ok()
}

fn read_database(
    name: String,
    table: &mut TomlTable<'_, '_>,
    limits: &DefaultLimits,
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
            // The wrong type of `url` was reported already; this message adds the expected form.
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
        text_policy: match table.text("errors", problems) {
            None => Policy::Strict,
            Some((name, span)) => Policy::of_name(name, &Policy::BASIC).unwrap_or_else(|e| {
                problems.add(span, e.to_string());
                Policy::Strict
            }),
        },
        name,
    }
}

/// Makes the path of a `sqlite:` URL relative to the folder of the configuration file. SQLite would
/// otherwise resolve it relative to the current folder.
fn relative_to(target: String, folder: &Path) -> String {
    let Some(rest) = target.strip_prefix("sqlite:") else {
        return target;
    };
    // `sqlite://path` is relative too. Three slashes are the form of SQLAlchemy, which `rows`
    // distinguishes.
    let path = rest
        .strip_prefix("//")
        .filter(|p| !p.starts_with('/'))
        .unwrap_or(rest);
    if path.is_empty() || path.starts_with(['/', ':', '?']) || folder.as_os_str().is_empty() {
        return target;
    }
    // The path in a URL is percent-decoded, and its options begin at a `?`, so these characters are
    // encoded.
    let folder = folder.display().to_string();
    let folder = folder.replace('%', "%25").replace('?', "%3F");
    format!("sqlite:{}/{path}", folder.trim_end_matches('/'))
}

#[cfg(test)]
mod tests;
