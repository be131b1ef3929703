//! [`RowCounter`]: counts the rows of a text format while its bytes are read; [`count_columns`]
//! counts the rows of Arrow and Parquet.

use std::fs::File;
use std::io::BufReader;

use arrow_ipc::reader::FileReader;
use parquet::file::reader::{FileReader as _, SerializedFileReader};

use crate::format::Format;

/// The rows in a text format, counted byte by byte. The input is an output of this crate: other
/// inputs may have any count.
#[derive(Debug)]
pub(crate) struct RowCounter {
    format: Format,
    n_rows: u64,
    /// The number of open brackets of JSON.
    depth: u32,
    /// `true` inside a string of JSON, or a quoted field of CSV.
    is_quoted: bool,
    /// `true` after a backslash in a string of JSON.
    is_escaped: bool,
    /// The number of bytes of the current BSON document that follow; `None` in its length.
    missing: Option<u64>,
    /// The bytes of the length of a BSON document that were read.
    length: Vec<u8>,
}

impl RowCounter {
    pub(crate) fn new(format: Format) -> RowCounter {
        RowCounter {
            format,
            n_rows: 0,
            depth: 0,
            is_quoted: false,
            is_escaped: false,
            missing: None,
            length: Vec::new(),
        }
    }

    /// Counts the rows that end in the next bytes.
    pub(crate) fn count(&mut self, bytes: &[u8]) {
        match self.format {
            Format::Ndjson => {
                self.n_rows += bytes.iter().filter(|b| **b == b'\n').count() as u64;
            }
            Format::Csv | Format::Tsv => self.count_records(bytes),
            Format::Json => self.count_objects(bytes),
            Format::Bson => self.count_documents(bytes),
            Format::Arrow | Format::Parquet => {}
        }
    }

    /// Returns the number of rows after the last byte; `None` if the bytes end in a row.
    pub(crate) fn finish(self) -> Option<u64> {
        match self.format {
            // The first record has the names of the columns.
            Format::Csv | Format::Tsv if !self.is_quoted => self.n_rows.checked_sub(1),
            Format::Csv | Format::Tsv => None,
            _ if self.depth > 0 || self.missing.is_some() || !self.length.is_empty() => None,
            _ => Some(self.n_rows),
        }
    }

    /// A quote inside a quoted field is doubled, so the two cancel each other out.
    fn count_records(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'"' => self.is_quoted = !self.is_quoted,
                b'\n' if !self.is_quoted => self.n_rows += 1,
                _ => {}
            }
        }
    }

    fn count_objects(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.is_quoted {
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    b'"' => self.is_quoted = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.is_quoted = true,
                b'[' | b'{' => {
                    if *byte == b'{' && self.depth == 1 {
                        self.n_rows += 1;
                    }
                    self.depth += 1;
                }
                b']' | b'}' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    fn count_documents(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let Some(missing) = self.missing else {
                let n = (4 - self.length.len()).min(bytes.len());
                self.length.extend(&bytes[..n]);
                bytes = &bytes[n..];
                if let Ok(length) = <[u8; 4]>::try_from(self.length.as_slice()) {
                    self.length.clear();
                    // A length that is too short would not end; the count is then wrong, and
                    // differs from the manifest.
                    self.missing = Some(
                        u64::from(u32::from_le_bytes(length))
                            .saturating_sub(4)
                            .max(1),
                    );
                }
                continue;
            };
            let n = missing.min(bytes.len() as u64);
            bytes = &bytes[n as usize..];
            self.missing = (missing > n).then_some(missing - n);
            if self.missing.is_none() {
                self.n_rows += 1;
            }
        }
    }
}

/// Counts the rows of an Arrow file, by the heads of its batches, or of a Parquet file, by its
/// footer.
///
/// # Errors
/// The file is not valid; the message names the problem.
pub(crate) fn count_columns(format: Format, file: File) -> Result<u64, String> {
    match format {
        Format::Parquet => {
            let reader = SerializedFileReader::new(file).map_err(|error| error.to_string())?;
            let n_rows = reader.metadata().file_metadata().num_rows();
            u64::try_from(n_rows).map_err(|error| error.to_string())
        }
        _ => {
            let reader = FileReader::try_new(BufReader::new(file), Some(Vec::new()));
            let mut n_rows = 0;
            for batch in reader.map_err(|error| error.to_string())? {
                n_rows += batch.map_err(|error| error.to_string())?.num_rows() as u64;
            }
            Ok(n_rows)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(format: Format, bytes: &[u8]) -> Option<u64> {
        let counts: Vec<_> = [1, 2, 3, bytes.len().max(1)]
            .map(|size| {
                let mut counter = RowCounter::new(format);
                bytes.chunks(size).for_each(|part| counter.count(part));
                counter.finish()
            })
            .into();
        assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
        counts[0]
    }

    #[test]
    fn rows_are_counted_in_each_text_format() {
        for (format, bytes, n_rows) in [
            (Format::Ndjson, &b""[..], Some(0)),
            (Format::Ndjson, b"{\"a\":\"\\n\"}\n{}\n", Some(2)),
            (Format::Json, b"[]\n", Some(0)),
            (Format::Json, b"[{\"a{\\\"\":[{\"x\":\"]\"}]},{}]", Some(2)),
            (Format::Json, b"[{}", None),
            (Format::Csv, b"a,b\n", Some(0)),
            (Format::Csv, b"a\n\n\"x\n\"\"y\n\"\n1\n", Some(3)),
            (Format::Tsv, b"a\tb\n1\t\"\t\"\n", Some(1)),
            (Format::Csv, b"a\n\"x\n", None),
            (Format::Csv, b"", None),
            (Format::Bson, b"", Some(0)),
            (Format::Bson, b"\x05\0\0\0\0\x08\0\0\0\x0aa\0\0", Some(2)),
            (Format::Bson, b"\x05\0\0\0", None),
            (Format::Bson, b"\x05\0\0", None),
        ] {
            let text = String::from_utf8_lossy(bytes);
            assert_eq!(counted(format, bytes), n_rows, "{format:?} {text}");
        }
    }
}
