//! The output formats of a query. The extension of the request's path selects one of them.

use onecopy_rows::Format;

/// The extensions that the path of a query may have, each with the output format that it selects
/// and the media type of this format.
pub(crate) const FORMATS: [(&str, Format, &str); 3] = [
    ("json", Format::Json, "application/json"),
    ("ndjson", Format::Ndjson, "application/x-ndjson"),
    (
        "csv",
        Format::Csv,
        "text/csv; charset=utf-8; header=present",
    ),
];
