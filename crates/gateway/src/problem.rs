//! [`Problem`]: a response that reports a failure as a problem document (RFC 9457). The gateway
//! reports every failure with such a response.

use std::time::Duration;

use onecopy_rows::ErrorKind;
use onecopy_serve::Response;
use onecopy_wire::ChunkError;

use crate::config::{Config, Query};
use crate::json::Builder;
use crate::log;
use crate::query_string::FieldProblem;
use crate::run_error::RunError;

/// Adds the header fields that every response of the gateway has.
pub(crate) fn with_common_headers(response: Response) -> Response {
    header(
        header(response, "Cache-Control", "no-store"),
        "X-Content-Type-Options",
        "nosniff",
    )
}

/// Adds a header field. Its name and value must be constants or digits, so that they are valid.
pub(crate) fn header(response: Response, name: &str, value: &str) -> Response {
    response
        .header(name, value)
        .expect("the value holds neither control characters nor a reserved name")
}

/// A problem document of RFC 9457, with the additional members of the gateway.
pub(crate) struct Problem {
    status: u16,
    title: &'static str,
    json: Builder,
    retry_after_s: Option<u32>,
    allow: bool,
}

impl Problem {
    pub(crate) fn new(status: u16, title: &'static str, detail: &str) -> Problem {
        let mut json = Builder::new();
        json.open('{');
        for (key, value) in [("type", "about:blank"), ("title", title)] {
            json.key(key);
            json.string(value);
        }
        json.key("status");
        json.raw(&status.to_string());
        json.key("detail");
        json.string(detail);
        Problem {
            status,
            title,
            json,
            retry_after_s: None,
            allow: false,
        }
    }

    pub(crate) fn member(mut self, key: &str, value: &str) -> Problem {
        self.json.key(key);
        self.json.string(value);
        self
    }

    pub(crate) fn retry_after(mut self, seconds: u32) -> Problem {
        self.retry_after_s = Some(seconds);
        self
    }

    fn fields(mut self, problems: &[FieldProblem]) -> Problem {
        self.json.key("errors");
        self.json.open('[');
        for problem in problems {
            self.json.open('{');
            for (key, value) in [
                ("parameter", &problem.parameter),
                ("detail", &problem.detail),
            ] {
                self.json.key(key);
                self.json.string(value);
            }
            self.json.close('}');
        }
        self.json.close(']');
        self
    }

    pub(crate) fn response(mut self) -> Response {
        debug_assert!(!self.title.is_empty());
        self.json.close('}');
        let mut response = with_common_headers(
            Response::new(self.status)
                .content_type("application/problem+json")
                .body(self.json.finish()),
        );
        if let Some(seconds) = self.retry_after_s {
            response = header(response, "Retry-After", &seconds.to_string());
        }
        if self.allow {
            response = header(response, "Allow", "GET, HEAD");
        }
        response
    }
}

pub(crate) fn method_not_allowed() -> Response {
    let mut problem = Problem::new(
        405,
        "Method Not Allowed",
        "queries are read with GET or HEAD",
    );
    problem.allow = true;
    problem.response()
}

pub(crate) fn wrong_parameters(query: &Query, problems: &[FieldProblem]) -> Response {
    let detail = match problems {
        [one] => format!("`{}` {}", one.parameter, one.detail),
        many => format!("{} parameters are wrong", many.len()),
    };
    Problem::new(400, "Bad Request", &detail)
        .member("query", &query.name)
        .fields(problems)
        .response()
}

pub(crate) fn too_many_queries(query: &Query) -> Response {
    Problem::new(
        503,
        "Service Unavailable",
        "as many queries as allowed run on this database; try again",
    )
    .member("query", &query.name)
    .retry_after(1)
    .response()
}

/// Returns the response for a query whose database is disabled because its driver crashed the
/// serving process.
pub(crate) fn set_aside(query: &Query, left: Duration) -> Response {
    let seconds = u32::try_from(left.as_secs())
        .unwrap_or(u32::MAX)
        .saturating_add(1);
    Problem::new(
        503,
        "Service Unavailable",
        "the driver of this query's database crashed, and is not used for now; \
         other databases are served",
    )
    .member("query", &query.name)
    .retry_after(seconds)
    .response()
}

/// Returns the response for a stream that failed before its first byte.
pub(crate) fn failed(config: &Config, query: &Query, error: &ChunkError) -> Response {
    let source: &(dyn std::error::Error + 'static) = &*error.source;
    if let Some(run) = source.downcast_ref::<RunError>() {
        let problem = match run {
            RunError::TimeLimit { .. } => Problem::new(504, "Gateway Timeout", &run.to_string()),
            RunError::Stopped => Problem::new(503, "Service Unavailable", &run.to_string()),
            RunError::NoRows | RunError::Writes => {
                Problem::new(500, "Internal Server Error", &run.to_string())
            }
        };
        return problem.member("query", &query.name).response();
    }
    let Some(rows) = source.downcast_ref::<onecopy_rows::Error>() else {
        // The format cannot represent a value. The message is from onecopy itself, and includes the
        // remedy.
        return Problem::new(500, "Internal Server Error", &error.to_string())
            .member("query", &query.name)
            .response();
    };
    let mut problem = of_database(rows);
    problem = problem.member("query", &query.name);
    if !rows.sqlstate.is_empty() {
        problem = problem.member("sqlstate", &rows.sqlstate);
    }
    if config.server.debug {
        problem = problem
            .member(
                "message",
                &rows.clone().or_else_replace(log::REPLACE).to_string(),
            )
            .member("sql", &query.sql);
    }
    problem.response()
}

/// Returns the problem document for an error of the database. The status is 503 if the same request
/// may succeed later, 504 if the database's own time limit ran out, and 500 for all other errors.
fn of_database(error: &onecopy_rows::Error) -> Problem {
    let (status, title, detail) = match error.kind {
        ErrorKind::Cancelled => {
            return unavailable("the query was cancelled");
        }
        ErrorKind::Timeout => (
            504,
            "Gateway Timeout",
            "the database's own time limit ran out".to_owned(),
        ),
        _ if error.is_transient => {
            return unavailable("the database is away, busy or out of resources; try again later");
        }
        kind => (
            500,
            "Internal Server Error",
            match kind {
                // The database refused the statement because the connection is read-only.
                ErrorKind::ReadOnly => RunError::Writes.to_string(),
                ErrorKind::Connect => {
                    "the database refuses the gateway's connection; the log has the reason"
                        .to_owned()
                }
                ErrorKind::Data | ErrorKind::Malformed => match error.column.as_deref() {
                    Some((i, name)) => {
                        format!("a value of column {i} `{name}` cannot be read or written")
                    }
                    None => "a value of the result cannot be read or written".to_owned(),
                },
                _ => "the database refuses this query".to_owned(),
            },
        ),
    };
    Problem::new(status, title, &detail)
}

fn unavailable(detail: &str) -> Problem {
    Problem::new(503, "Service Unavailable", detail).retry_after(5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onecopy_rows::Error;

    #[test]
    fn every_kind_of_error_has_its_status_and_503_is_for_what_a_retry_can_clear() {
        for kind in ErrorKind::ALL {
            let status = |error: &Error| {
                let problem = of_database(error);
                assert_eq!(problem.retry_after_s.is_some(), problem.status == 503);
                problem.status
            };
            let permanent = Error::new(kind, "");
            let (once, later) = match kind {
                ErrorKind::Cancelled => (503, 503),
                ErrorKind::Timeout => (504, 504),
                _ => (500, 503),
            };
            assert_eq!(status(&permanent), once, "{kind:?}");
            assert_eq!(status(&permanent.transient()), later, "{kind:?}");
        }
    }
}
