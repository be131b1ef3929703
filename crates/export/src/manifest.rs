//! [`Manifest`]: the description of exported files, which is written after the files.
//! `docs/reference/command.md` documents its JSON.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::error::Error;
use crate::format::{Compression, FileFormat, Format};
use crate::json::JsonWriter;
use crate::writer::WrittenColumn;

/// The version of the manifest's JSON.
const FORM: u64 = 1;

/// The description of the files of one export, with which they can be verified.
///
/// It contains the text of the query, without the values of its parameters, and nothing about the
/// connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The version of onecopy that wrote the files.
    pub version: String,
    /// The SQL of the query.
    pub query: String,
    /// The name of the database snapshot from which all files were read; `None` if no snapshot was
    /// used.
    pub snapshot: Option<String>,
    /// The hash of the plan that divided the export into parts; `None` if one statement read all
    /// rows.
    pub plan: Option<String>,
    /// The format of the files.
    pub format: FileFormat,
    /// The columns of the rows.
    pub columns: Vec<WrittenColumn>,
    /// The exported files, in the order in which their rows were read.
    pub files: Vec<FileEntry>,
}

/// One exported file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// The name of the file, without a folder: it is in the same folder as the manifest.
    pub name: String,
    /// The number of rows.
    pub n_rows: u64,
    /// The length of the file in bytes.
    pub n_bytes: u64,
    /// The BLAKE3 hash of the file, as 64 hexadecimal digits.
    pub blake3: String,
}

impl Manifest {
    /// Returns the number of rows in all files.
    #[must_use]
    pub fn n_rows(&self) -> u64 {
        self.files.iter().map(|file| file.n_rows).sum()
    }

    /// Returns the number of bytes of all files.
    #[must_use]
    pub fn n_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.n_bytes).sum()
    }

    /// Returns the manifest as JSON, with a line for each column and each file.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = JsonWriter::default();
        out.open('{');
        out.key("manifest");
        out.raw(&FORM.to_string());
        for (key, text) in [
            ("onecopy", Some(self.version.as_str())),
            ("query", Some(&self.query)),
            ("snapshot", self.snapshot.as_deref()),
            ("plan", self.plan.as_deref()),
            ("format", Some(self.format.format().name())),
            ("compression", Some(self.format.compression().name())),
        ] {
            out.key(key);
            out.optional_string(text);
        }
        for (key, total) in [("rows", self.n_rows()), ("bytes", self.n_bytes())] {
            out.key(key);
            out.raw(&total.to_string());
        }
        out.key("columns");
        out.open('[');
        for column in &self.columns {
            out.open('{');
            out.key("name");
            out.string(&column.name);
            out.key("type");
            out.optional_string(column.data_type.as_deref());
            out.key("database_type");
            out.string(&column.database_type);
            out.close('}');
        }
        out.close(']');
        out.key("files");
        out.open('[');
        for file in &self.files {
            out.open('{');
            out.key("name");
            out.string(&file.name);
            for (key, n) in [("rows", file.n_rows), ("bytes", file.n_bytes)] {
                out.key(key);
                out.raw(&n.to_string());
            }
            out.key("blake3");
            out.string(&file.blake3);
            out.close('}');
        }
        out.close(']');
        out.close('}');
        out.finish() + "\n"
    }

    /// Reads a manifest.
    ///
    /// # Errors
    /// [`Error::Path`] if the file cannot be read. [`Error::Manifest`] if it is not a manifest, if
    /// a later version of onecopy wrote it in a different format, or if its totals differ from
    /// those of its files.
    pub fn read(path: &Path) -> Result<Manifest, Error> {
        let text = fs::read(path).map_err(Error::path("read the manifest", path))?;
        Manifest::from_json(&text).map_err(|message| Error::Manifest {
            path: path.to_owned(),
            message,
        })
    }

    /// Reads a manifest from the JSON of [`Manifest::to_json`].
    ///
    /// # Errors
    /// An error message if the text is not a manifest, if a later version of onecopy wrote it in a
    /// different format, or if its totals differ from those of its files. The message names the
    /// wrong member.
    pub fn from_json(text: &[u8]) -> Result<Manifest, String> {
        let value: Value = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        let form = number(&value, "manifest")?;
        if form != FORM {
            return Err(format!(
                "its form is {form}, and this version reads form {FORM}\nuse a newer onecopy"
            ));
        }
        let format = word(&value, "format")?;
        let format =
            Format::by_name(&format).ok_or_else(|| format!("the format `{format}` is unknown"))?;
        let compression = word(&value, "compression")?;
        let compression = Compression::by_name(&compression)
            .ok_or_else(|| format!("the compression `{compression}` is unknown"))?;
        let columns = list(&value, "columns")?.iter().map(|column| {
            Ok(WrittenColumn {
                name: word(column, "name")?,
                data_type: optional_word(column, "type")?,
                database_type: word(column, "database_type")?,
            })
        });
        let files = list(&value, "files")?.iter().map(file_entry);
        let manifest = Manifest {
            version: word(&value, "onecopy")?,
            query: word(&value, "query")?,
            snapshot: optional_word(&value, "snapshot")?,
            plan: optional_word(&value, "plan")?,
            format: FileFormat::new(format, Some(compression)).map_err(|e| e.to_string())?,
            columns: columns.collect::<Result<_, String>>()?,
            files: files.collect::<Result<_, String>>()?,
        };
        for (key, total) in [("rows", manifest.n_rows()), ("bytes", manifest.n_bytes())] {
            let stated = number(&value, key)?;
            if stated != total {
                return Err(format!("`{key}` is {stated}, but the files have {total}"));
            }
        }
        Ok(manifest)
    }
}

fn file_entry(value: &Value) -> Result<FileEntry, String> {
    let name = word(value, "name")?;
    // A name that contains a folder could denote any file of this machine.
    if name.is_empty() || name.contains(['/', '\0']) || name == "." || name == ".." {
        return Err(format!("`{name}` is not the name of a file"));
    }
    let blake3 = word(value, "blake3")?;
    if blake3.len() != 64 || !blake3.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(format!(
            "the BLAKE3 hash of `{name}` does not have 64 digits"
        ));
    }
    Ok(FileEntry {
        name,
        n_rows: number(value, "rows")?,
        n_bytes: number(value, "bytes")?,
        blake3: blake3.to_ascii_lowercase(),
    })
}

fn number(value: &Value, key: &str) -> Result<u64, String> {
    let found = value.get(key).and_then(Value::as_u64);
    // With this limit, the sum over all files cannot overflow.
    let found = found.filter(|n| *n < 1 << 48);
    found.ok_or_else(|| format!("`{key}` is not a number of rows or bytes"))
}

fn word(value: &Value, key: &str) -> Result<String, String> {
    let found = value.get(key).and_then(Value::as_str);
    found
        .map(str::to_owned)
        .ok_or_else(|| format!("`{key}` is not a text"))
}

fn optional_word(value: &Value, key: &str) -> Result<Option<String>, String> {
    match value.get(key) {
        Some(Value::Null) => Ok(None),
        _ => word(value, key).map(Some),
    }
}

fn list<'v>(value: &'v Value, key: &str) -> Result<&'v [Value], String> {
    let found = value.get(key).and_then(Value::as_array);
    found
        .map(Vec::as_slice)
        .filter(|items| items.len() < 1 << 15)
        .ok_or_else(|| format!("`{key}` is not a list"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let file = |n: u64| FileEntry {
            name: format!("part-0000{n}.csv.gz"),
            n_rows: n,
            n_bytes: 10 * n,
            blake3: "0123456789abcdef".repeat(4),
        };
        Manifest {
            version: "0.1.0".to_owned(),
            query: "select \"a\",\n'\u{1}é' from t".to_owned(),
            snapshot: None,
            plan: None,
            format: FileFormat::new(Format::Csv, Some(Compression::Gzip)).unwrap(),
            columns: vec![
                WrittenColumn {
                    name: "a".to_owned(),
                    data_type: Some("int64".to_owned()),
                    database_type: "int8".to_owned(),
                },
                WrittenColumn {
                    name: String::new(),
                    data_type: None,
                    database_type: String::new(),
                },
            ],
            files: vec![file(1), file(2)],
        }
    }

    #[test]
    fn a_manifest_is_read_as_it_was_written() {
        let mut made = manifest();
        assert_eq!(
            Manifest::from_json(made.to_json().as_bytes()),
            Ok(made.clone())
        );
        assert_eq!((made.n_rows(), made.n_bytes()), (3, 30));
        made.files.clear();
        made.columns.clear();
        made.snapshot = Some("00000003-1".to_owned());
        made.plan = Some("ab".to_owned());
        assert_eq!(Manifest::from_json(made.to_json().as_bytes()), Ok(made));
    }

    #[test]
    fn each_change_that_makes_a_manifest_invalid_is_an_error() {
        let text = manifest().to_json();
        for (old, new, message) in [
            ("\"manifest\": 1", "\"manifest\": 2", "its form is 2"),
            (
                "\"rows\": 3",
                "\"rows\": 4",
                "`rows` is 4, but the files have 3",
            ),
            ("\"bytes\": 30", "\"bytes\": -1", "`bytes` is not"),
            ("part-00001", "../part-00001", "is not the name of a file"),
            ("\"csv\"", "\"xls\"", "the format `xls` is unknown"),
            ("\"gzip\"", "\"lzw\"", "the compression `lzw` is unknown"),
            (
                "0123456789abcdef",
                "0123456789abcdeg",
                "does not have 64 digits",
            ),
            ("\"query\"", "\"question\"", "`query` is not a text"),
            (
                "\"rows\": 1,",
                "\"rows\": 18446744073709551615,",
                "`rows` is not",
            ),
        ] {
            let changed = text.replace(old, new);
            assert_ne!(changed, text, "{old}");
            let error = Manifest::from_json(changed.as_bytes()).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
        for n in 0..text.len() - 2 {
            assert!(Manifest::from_json(&text.as_bytes()[..n]).is_err());
        }
    }
}
