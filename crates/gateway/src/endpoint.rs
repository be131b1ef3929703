//! [`Gateway`]: the HTTP request handler, which selects the response by path and method.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use onecopy_rows::Dialect;
use onecopy_rows::Value;
use onecopy_serve::{
    Access, Address, BodyPolicy, Chunks, Handler, Request, Response, StreamEnd, host_is_loopback,
};
use onecopy_text::{Chunk, Ledger};
use onecopy_wire::http::reason_phrase;
use onecopy_wire::{CancelHandle, ChunkError, ChunkSource, Filled};

use crate::config::{Config, Query};
use crate::deadlines::Watch;
use crate::formats::FORMATS;
use crate::log::{self, Log};
use crate::page;
use crate::pool::Pool;
use crate::problem::{self, Problem, with_common_headers};
use crate::query_source::{QuerySource, Sql};
use crate::query_string;
use crate::supervision::Supervision;

/// The request handler of the server: it executes the query that a request names, and returns the
/// rows.
pub struct Gateway(Arc<Inner>);

struct Inner {
    config: Config,
    bound: Address,
    pools: Vec<Arc<Pool>>,
    /// The SQL of each query, in the order of [`Config::queries`].
    sql: Vec<Arc<Sql>>,
    watch: Watch,
    log: Log,
    /// Counts the bytes of text that are converted and copied for all responses.
    ledger: Ledger,
}

impl Gateway {
    /// Creates a gateway for `config`, for a server that listens at `bound`. `ledger` counts the
    /// bytes of text that are converted and copied for the responses. `supervision` is the state
    /// that is shared with a supervisor. Each database is opened only at the first request that
    /// needs it.
    ///
    /// # Errors
    /// The error of the system if the thread of the time limits cannot be started.
    pub fn new(
        config: Config,
        bound: Address,
        log: Log,
        ledger: &Ledger,
        supervision: &Supervision,
    ) -> std::io::Result<Gateway> {
        let pools = config
            .databases
            .iter()
            .enumerate()
            .map(|(i, d)| Arc::new(Pool::new(d.clone(), i, log.clone(), supervision)))
            .collect();
        let sql = config
            .queries
            .iter()
            .map(|q| {
                Arc::new(Sql {
                    name: q.name.clone(),
                    text: q.positional_sql.clone(),
                    can_describe: config.databases[q.database].dialect == Dialect::Sqlite,
                    reads: AtomicBool::new(false),
                })
            })
            .collect();
        Ok(Gateway(Arc::new(Inner {
            config,
            bound,
            pools,
            sql,
            watch: Watch::start()?,
            log,
            ledger: ledger.clone(),
        })))
    }

    /// Writes a line for a request to the log of the gateway. The caller passes a closure that
    /// calls this method to [`onecopy_serve::Config::on_access`].
    pub fn log_access(&self, access: &Access<'_>) {
        self.0.log.access(access);
    }

    fn answer(&self, request: Request<'_>) -> Response {
        if let Some(refused) = self.0.check_host(&request) {
            return refused;
        }
        if !matches!(request.method(), "GET" | "HEAD") {
            return problem::method_not_allowed();
        }
        let path = unreserved_decoded(request.path());
        match &*path {
            "/" => self.front(&request),
            "/-/live" => with_common_headers(
                Response::new(200)
                    .content_type("application/json")
                    .body("{\"status\":\"live\"}\n"),
            ),
            page::STYLE_PATH => page::style(),
            path => self.query(&request, path),
        }
    }

    fn front(&self, request: &Request<'_>) -> Response {
        let config = &self.0.config;
        if page::wants_json(request.header("Accept")) {
            page::list(config)
        } else {
            let host = request.host().and_then(|h| std::str::from_utf8(h).ok());
            let bound = || match &self.0.bound {
                Address::Ip(address) => address.to_string(),
                Address::Unix(_) => "localhost".to_owned(),
            };
            let host = host.map_or_else(bound, str::to_owned);
            page::html(config, &host)
        }
    }

    fn query(&self, request: &Request<'_>, path: &str) -> Response {
        let inner = &self.0;
        let name = path.strip_prefix('/').unwrap_or(path);
        let parts = name.rsplit_once('.').and_then(|(stem, end)| {
            let format = FORMATS.iter().find(|(ext, ..)| *ext == end)?;
            Some((stem, format))
        });
        let Some((stem, &(_, format, media_type))) = parts else {
            return not_found(match inner.config.query(name) {
                Some(_) => "add the format to the path: `.json`, `.ndjson` or `.csv`",
                None => "there is nothing at this path; `/` lists the queries",
            });
        };
        let Some((index, query)) = inner.config.query(stem) else {
            return not_found("no query has this name; `/` lists the queries");
        };
        let mut values = match query_string::bind(query, request.query()) {
            Ok(values) => values,
            Err(problems) => return problem::wrong_parameters(query, &problems),
        };
        if inner.config.databases[query.database].dialect == Dialect::Sqlite {
            values.iter_mut().for_each(Value::round_for_sqlite);
        }
        let values: Arc<[Value]> = values.into();
        let head = with_common_headers(Response::new(200).content_type(media_type));
        // The response to HEAD has the header fields with which the response to GET would begin.
        // The query is not executed, which RFC 9110, section 9.3.2, permits.
        if request.method() == "HEAD" {
            return head.body(Chunks::new(Unfilled));
        }
        let pool = &inner.pools[query.database];
        if let Some(left) = pool.set_aside() {
            return problem::set_aside(query, left);
        }
        let Some(slot) = pool.slot() else {
            return problem::too_many_queries(query);
        };
        let source = QuerySource::new(
            slot,
            &inner.watch,
            Arc::clone(&inner.sql[index]),
            Arc::clone(&values),
            format,
            query.time_limit,
            &inner.ledger,
        );
        let (at_error, at_end) = (Arc::clone(inner), Arc::clone(inner));
        let breaker = source.breaker().clone();
        let chunks = Chunks::new(source)
            .ledger(&inner.ledger)
            .breaker(&breaker)
            .on_error(move |error| {
                problem::failed(&at_error.config, &at_error.config.queries[index], error)
            })
            .on_end(move |end| at_end.log_end(&at_end.config.queries[index], &values, end));
        head.body(chunks)
    }
}

impl Handler for Gateway {
    fn handle(&self, request: Request<'_>) -> Response {
        self.answer(request)
    }

    fn body_policy(&self, head: Request<'_>) -> BodyPolicy {
        match head.method() {
            "GET" | "HEAD" => BodyPolicy::Refuse,
            // The body is read although it is not used. Otherwise the response could report the
            // body as the error instead of the method.
            _ => BodyPolicy::Read,
        }
    }

    fn refuse(&self, status: u16, detail: &str) -> Response {
        with_common_headers(Response::problem(status, reason_phrase(status), detail))
    }
}

impl Inner {
    /// Returns an error response if the `Host` field of a request is not permitted. The check is
    /// made only if the gateway listens on a loopback address. The loopback names and the names in
    /// the configuration are permitted. Without this check, a web page of another site could reach
    /// the gateway by DNS rebinding. A unix socket needs no check, because web pages cannot reach
    /// it.
    fn check_host(&self, request: &Request<'_>) -> Option<Response> {
        let bound = self.bound.ip().filter(|bound| bound.ip().is_loopback())?;
        let host = match request.host() {
            Some(host) => host,
            // A client that uses HTTP/1.0 without `Host` is not a browser.
            None if request.is_http_1_0() => return None,
            None => b"",
        };
        let named = |name: &String| name.as_bytes().eq_ignore_ascii_case(host);
        if host_is_loopback(host, bound.port()) || self.config.server.hosts.iter().any(named) {
            return None;
        }
        Some(
            Problem::new(
                421,
                "Misdirected Request",
                "this server listens on loopback and does not answer to this `Host`; \
                 name it in `hosts` of the configuration if it is right",
            )
            .response(),
        )
    }

    /// If the row stream of a response has failed, writes the reason to the log, as a separate
    /// line. The log line of the request does not contain the reason.
    fn log_end(&self, query: &Query, values: &[Value], end: StreamEnd) {
        let StreamEnd::Failed(error) = end else {
            return;
        };
        let why = match error.source.downcast_ref::<onecopy_rows::Error>() {
            Some(rows) => log::error_text(rows, values, self.config.server.debug),
            None => error.to_string(),
        };
        let (query, database) = (&query.name, &self.config.databases[query.database].name);
        self.log
            .line(&format!("error query={query} database={database}: {why}"));
    }
}

/// The body of a response to HEAD: a stream without bytes. Because the body is a stream, the
/// response has the same header fields as a response to GET.
struct Unfilled;

impl ChunkSource for Unfilled {
    fn fill(&mut self, _: &mut Chunk) -> Result<Filled, ChunkError> {
        Ok(Filled::Done)
    }

    fn cancel_handle(&self) -> CancelHandle {
        CancelHandle::new(|| ())
    }
}

fn not_found(detail: &str) -> Response {
    Problem::new(404, "Not Found", detail).response()
}

/// Decodes percent-encoded letters, digits, `-`, `.`, `_` and `~` in a path (RFC 3986, section
/// 2.3). Other percent-encoded characters stay encoded: `%2F`, for example, must not become a
/// separator.
fn unreserved_decoded(path: &str) -> Cow<'_, str> {
    if !path.contains('%') {
        return path.into();
    }
    let mut parts = path.split('%');
    let mut decoded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part
            .get(..2)
            .filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte.filter(|b| b.is_ascii_alphanumeric() || b"-._~".contains(b)) {
            Some(byte) => {
                decoded.push(char::from(byte));
                decoded.push_str(&part[2..]);
            }
            None => {
                decoded.push('%');
                decoded.push_str(part);
            }
        }
    }
    decoded.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreserved_characters_are_decoded_and_all_others_stay_encoded() {
        for (path, decoded) in [
            ("/items.json", "/items.json"),
            ("/%69tems%2Ejson", "/items.json"),
            ("/%2D/l%69ve", "/-/live"),
            ("/a%2Fb", "/a%2Fb"),
            ("/a%2fb%41", "/a%2fbA"),
            ("/%2569tems", "/%2569tems"),
            ("/%C3%A4%00", "/%C3%A4%00"),
            ("/%", "/%"),
            ("/%4", "/%4"),
            ("/%+1%4x%", "/%+1%4x%"),
            ("/%4é", "/%4é"),
        ] {
            assert_eq!(unreserved_decoded(path), decoded, "{path}");
        }
    }
}
