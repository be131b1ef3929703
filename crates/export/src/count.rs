//! [`RowCounter`]: counts the rows of a text format while its bytes are read; [`count_columns`]
//! counts the rows of Arrow and Parquet.

use std::fs::File;
use std::os::unix::fs::FileExt;

use arrow_ipc::reader::read_footer_length;
use arrow_ipc::{root_as_footer, root_as_message};
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::format::Format;

/// Counts the rows in a text format byte by byte, without parsing the values. The count is correct
/// only for output that this crate has written.
#[derive(Debug)]
pub(crate) struct RowCounter {
    format: Format,
    n_rows: u64,
    /// The number of JSON arrays and objects that are open at the current byte.
    depth: u32,
    /// `true` inside a JSON string or a quoted CSV field.
    is_quoted: bool,
    /// `true` after a backslash in a JSON string.
    is_escaped: bool,
    /// The number of bytes of the current BSON document that have not been read yet. `None` before
    /// a document, and while its length field is being read.
    missing: Option<u64>,
    /// The bytes of the current BSON document's 4-byte length field that were read so far.
    length: Vec<u8>,
    /// The last byte that was read.
    last: Option<u8>,
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
            last: None,
        }
    }

    /// Counts the rows that end within `bytes`, which are the next bytes of the output.
    pub(crate) fn count(&mut self, bytes: &[u8]) {
        self.last = bytes.last().copied().or(self.last);
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

    /// Returns the number of rows. Returns `None` if the bytes end inside a line, a JSON array, or a
    /// BSON document.
    pub(crate) fn finish(self) -> Option<u64> {
        let is_cut = self.last.is_some_and(|byte| byte != b'\n');
        match self.format {
            Format::Ndjson | Format::Csv | Format::Tsv if is_cut => None,
            Format::Json if self.last.is_none() => None,
            // The first record has the names of the columns.
            Format::Csv | Format::Tsv if !self.is_quoted => self.n_rows.checked_sub(1),
            Format::Csv | Format::Tsv => None,
            _ if self.depth > 0 || self.missing.is_some() || !self.length.is_empty() => None,
            _ => Some(self.n_rows),
        }
    }

    /// Counts the lines outside of quoted fields. A quote inside a quoted field is doubled: the
    /// first one ends the quoted state, and the second one begins it again.
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
                    // A corrupted length below 5 is counted as 5, so that the loop ends. The number
                    // of rows is then wrong, and differs from that of the manifest.
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

/// Counts the rows of an Arrow file from the headers of its batches, or those of a Parquet file
/// from its footer. The values are not read.
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
        _ => count_batches(&file),
    }
}

/// Counts the rows of an Arrow file. The reader of `arrow_ipc` is not used: it panics if the footer
/// contains a negative length, and it allocates any length that the footer contains.
fn count_batches(file: &File) -> Result<u64, String> {
    const TRAILER_BYTES: u64 = 10;
    let len_bytes = file.metadata().map_err(|error| error.to_string())?.len();
    let part = |at: u64, n: u64| -> Result<Vec<u8>, String> {
        let is_inside = at.checked_add(n).is_some_and(|end| end <= len_bytes);
        if !is_inside {
            return Err("a part is not inside the file".to_owned());
        }
        let n = usize::try_from(n).map_err(|error| error.to_string())?;
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(n)
            .map_err(|error| error.to_string())?;
        bytes.resize(n, 0);
        let read = file.read_exact_at(&mut bytes, at);
        read.map_err(|error| error.to_string())?;
        Ok(bytes)
    };
    let trailer_at = len_bytes
        .checked_sub(TRAILER_BYTES)
        .ok_or("it is shorter than the trailer of an Arrow file")?;
    let trailer = part(trailer_at, TRAILER_BYTES)?.try_into();
    let trailer: [u8; 10] = trailer.map_err(|_| "a part of another length")?;
    let footer_bytes = read_footer_length(trailer).map_err(|error| error.to_string())? as u64;
    let footer_at = trailer_at.checked_sub(footer_bytes);
    let footer = part(footer_at.ok_or("its footer is too long")?, footer_bytes)?;
    let footer = root_as_footer(&footer).map_err(|error| error.to_string())?;
    let mut n_rows: u64 = 0;
    for block in footer.recordBatches().into_iter().flatten() {
        let sizes = (
            u64::try_from(block.offset()),
            u64::try_from(block.metaDataLength()),
        );
        let (Ok(at), Ok(n)) = sizes else {
            return Err("a batch has a negative position".to_owned());
        };
        let message = part(at, n)?;
        // The length of a message is preceded by the marker `FF FF FF FF`, except in files of old
        // versions.
        let begin = if message.starts_with(&[0xFF; 4]) {
            8
        } else {
            4
        };
        let message = message.get(begin..).ok_or("a batch has no header")?;
        let message = root_as_message(message).map_err(|error| error.to_string())?;
        let batch = message.header_as_record_batch();
        let rows = u64::try_from(batch.ok_or("a batch has another header")?.length());
        let rows = rows.map_err(|_| "a batch has a negative number of rows")?;
        n_rows = n_rows
            .checked_add(rows)
            .ok_or("it has more rows than 64 bits")?;
    }
    Ok(n_rows)
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    use arrow_ipc::writer::FileWriter;
    use parquet::arrow::ArrowWriter;

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
            (Format::Ndjson, b"{\"a\":1}\n{\"a\":", None),
            (Format::Json, b"", None),
            (Format::Json, b"[]\n", Some(0)),
            (Format::Json, b"[{\"a{\\\"\":[{\"x\":\"]\"}]},{}]", Some(2)),
            (Format::Json, b"[{}", None),
            (Format::Csv, b"a,b\n", Some(0)),
            (Format::Csv, b"a\n\n\"x\n\"\"y\n\"\n1\n", Some(3)),
            (Format::Tsv, b"a\tb\n1\t\"\t\"\n", Some(1)),
            (Format::Csv, b"a\n\"x\n", None),
            (Format::Csv, b"a\n1\n2", None),
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

    /// Returns the bytes of a file with 1,000 rows of two columns.
    fn columnar(format: Format) -> Vec<u8> {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter(0..1000));
        let texts = (0..1000).map(|n| (n % 3 > 0).then(|| format!("text {n}")));
        let texts: ArrayRef = Arc::new(StringArray::from_iter(texts));
        let batch = RecordBatch::try_from_iter([("n", numbers), ("t", texts)]).unwrap();
        let mut out = Vec::new();
        if format == Format::Parquet {
            let mut writer = ArrowWriter::try_new(&mut out, batch.schema(), None).unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
        } else {
            let mut writer = FileWriter::try_new(&mut out, &batch.schema()).unwrap();
            writer.write(&batch).unwrap();
            writer.finish().unwrap();
        }
        out
    }

    fn rows_of(format: Format, bytes: &[u8]) -> Result<u64, String> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.rewind().unwrap();
        count_columns(format, file)
    }

    #[test]
    fn a_damaged_columnar_file_is_an_error_or_counted() {
        for format in [Format::Arrow, Format::Parquet] {
            let bytes = columnar(format);
            assert_eq!(rows_of(format, &bytes), Ok(1000));
            for n in 0..bytes.len() {
                // Each byte is changed in its own way, and each length is a cut.
                let mut changed = bytes.clone();
                changed[n] ^= 1 << (n % 8) | 0x40;
                let _ = rows_of(format, &changed);
                assert!(
                    rows_of(format, &bytes[..n]).is_err(),
                    "{format:?}, {n} bytes"
                );
            }
        }
    }
}
