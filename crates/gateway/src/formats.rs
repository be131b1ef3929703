//! The formats that a query is answered in.

use onecopy_rows::Format;

/// The formats by the end of the path, with their media types.
pub(crate) const FORMATS: [(&str, Format, &str); 3] = [
    ("json", Format::Json, "application/json"),
    ("ndjson", Format::Ndjson, "application/x-ndjson"),
    (
        "csv",
        Format::Csv,
        "text/csv; charset=utf-8; header=present",
    ),
];
