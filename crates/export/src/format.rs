//! [`FileFormat`]: the format and the compression of a file, which are derived from the ending of
//! its name. [`ENDINGS`] is the only table of endings.

use std::path::Path;

use crate::error::Error;

/// A file format in which rows can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// One JSON array of objects.
    Json,
    /// One JSON object per line.
    Ndjson,
    /// RFC 4180 with a header line.
    Csv,
    /// The format of CSV, with tabs instead of commas between the fields.
    Tsv,
    /// One BSON document per row, concatenated.
    Bson,
    /// Arrow's IPC file format.
    Arrow,
    /// Apache Parquet.
    Parquet,
}

/// A compression of a file. For a format that compresses the blocks inside a file, it is the
/// compression of these blocks; for all other formats, of the whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// No compression.
    None,
    /// gzip (RFC 1952).
    Gzip,
    /// Zstandard (RFC 8878).
    Zstd,
}

/// The endings of file names, in lower case, each with its format. Files that this crate names get
/// the first ending of their format.
pub const ENDINGS: [(&str, Format); 8] = [
    ("json", Format::Json),
    ("ndjson", Format::Ndjson),
    ("jsonl", Format::Ndjson),
    ("csv", Format::Csv),
    ("tsv", Format::Tsv),
    ("bson", Format::Bson),
    ("arrow", Format::Arrow),
    ("parquet", Format::Parquet),
];

/// The endings of compressed files. They follow the ending of a text format, as in `csv.gz`.
const COMPRESSED: [(&str, Compression); 2] =
    [("gz", Compression::Gzip), ("zst", Compression::Zstd)];

impl Format {
    /// Returns the format with this name; `None` if there is no such format.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Format> {
        ENDINGS
            .iter()
            .map(|(_, format)| *format)
            .find(|format| format.name() == name)
    }

    /// Returns the name of the format in options, manifests and endings of files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Format::Json => "json",
            Format::Ndjson => "ndjson",
            Format::Csv => "csv",
            Format::Tsv => "tsv",
            Format::Bson => "bson",
            Format::Arrow => "arrow",
            Format::Parquet => "parquet",
        }
    }

    /// Returns the name of the format for messages to people, such as `Parquet`.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Format::Json => "JSON",
            Format::Ndjson => "NDJSON",
            Format::Csv => "CSV",
            Format::Tsv => "TSV",
            Format::Bson => "BSON",
            Format::Arrow => "Arrow",
            Format::Parquet => "Parquet",
        }
    }

    /// Returns `true` if the format is binary, not text.
    #[must_use]
    pub fn is_binary(self) -> bool {
        matches!(self, Format::Bson | Format::Arrow | Format::Parquet)
    }

    /// Returns `true` if the format compresses the blocks of a file separately, so that a reader
    /// can skip blocks. Such a file is not compressed as a whole.
    #[must_use]
    pub fn compresses_itself(self) -> bool {
        matches!(self, Format::Arrow | Format::Parquet)
    }
}

impl Compression {
    /// Returns the compression with this name; `None` if there is no such compression.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Compression> {
        [Compression::None, Compression::Gzip, Compression::Zstd]
            .into_iter()
            .find(|compression| compression.name() == name)
    }

    /// Returns the name of the compression in options and manifests.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
        }
    }
}

/// A file format and a compression. The compression is one that the format supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFormat {
    format: Format,
    compression: Compression,
}

impl FileFormat {
    /// Combines a format with a compression. Without a compression, Parquet is compressed with
    /// Zstandard, and each other format is not compressed.
    ///
    /// # Errors
    /// [`Error::Usage`] for Parquet and Arrow with gzip.
    pub fn new(format: Format, compression: Option<Compression>) -> Result<FileFormat, Error> {
        let compression = compression.unwrap_or(match format {
            Format::Parquet => Compression::Zstd,
            _ => Compression::None,
        });
        if format.compresses_itself() && compression == Compression::Gzip {
            return Err(Error::Usage(format!(
                "{} files are not compressed with gzip\nuse `zstd` or `none`, which its readers support",
                format.title()
            )));
        }
        Ok(FileFormat {
            format,
            compression,
        })
    }

    /// Returns the format that the ending of a file name determines. The case of the letters is
    /// ignored.
    ///
    /// # Errors
    /// [`Error::UnknownEnding`] if no format has this ending. [`Error::Usage`] for the ending of a
    /// compressed file after a format that compresses itself, such as `.parquet.gz`.
    pub fn of_path(path: &Path) -> Result<FileFormat, Error> {
        let unknown = || Error::UnknownEnding(path.to_owned());
        let ending = ending_of(path).ok_or_else(unknown)?;
        let Some((_, compression)) = COMPRESSED.iter().find(|(name, _)| *name == ending) else {
            return FileFormat::new(by_ending(&ending).ok_or_else(unknown)?, None);
        };
        let inner = path.file_stem().map(Path::new).and_then(ending_of);
        let format = inner.as_deref().and_then(by_ending).ok_or_else(unknown)?;
        if format.compresses_itself() {
            let (name, title) = (format.name(), format.title());
            return Err(Error::Usage(format!(
                "`{}`: {title} files are not compressed as a whole, because readers skip parts of them\n\
                 end the name in .{name}; the parts of the file are compressed",
                path.display()
            )));
        }
        FileFormat::new(format, Some(*compression))
    }

    /// Returns the format of the rows.
    #[must_use]
    pub fn format(self) -> Format {
        self.format
    }

    /// Returns the compression of files of this format: of the whole file or, for a format that
    /// compresses blocks inside the file, of these blocks.
    #[must_use]
    pub fn compression(self) -> Compression {
        self.compression
    }

    /// Returns the ending of a file of this format, such as `csv.gz`.
    #[must_use]
    pub fn ending(self) -> String {
        let name = self.format.name();
        match COMPRESSED.iter().find(|(_, c)| *c == self.compression) {
            Some((ending, _)) if !self.format.compresses_itself() => format!("{name}.{ending}"),
            _ => name.to_owned(),
        }
    }
}

/// Returns the list of all endings for messages: `.json, .ndjson, …`.
#[must_use]
pub fn all_endings() -> String {
    let endings: Vec<String> = ENDINGS.iter().map(|(e, _)| format!(".{e}")).collect();
    endings.join(", ")
}

fn ending_of(path: &Path) -> Option<String> {
    let ending = path.extension()?.to_str()?;
    Some(ending.to_ascii_lowercase())
}

fn by_ending(ending: &str) -> Option<Format> {
    ENDINGS
        .iter()
        .find(|(name, _)| *name == ending)
        .map(|(_, format)| *format)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> Option<(Format, Compression)> {
        let file = FileFormat::of_path(Path::new(name)).ok()?;
        Some((file.format(), file.compression()))
    }

    #[test]
    fn the_ending_of_a_name_determines_format_and_compression() {
        for (name, format, compression) in [
            ("a.json", Format::Json, Compression::None),
            ("a.ndjson", Format::Ndjson, Compression::None),
            ("a.jsonl", Format::Ndjson, Compression::None),
            ("x/a.b.csv", Format::Csv, Compression::None),
            ("A.CSV.GZ", Format::Csv, Compression::Gzip),
            ("a.tsv.zst", Format::Tsv, Compression::Zstd),
            ("a.bson.gz", Format::Bson, Compression::Gzip),
            ("a.arrow", Format::Arrow, Compression::None),
            ("a.parquet", Format::Parquet, Compression::Zstd),
        ] {
            assert_eq!(of(name), Some((format, compression)), "{name}");
        }
    }

    #[test]
    fn other_endings_are_errors() {
        for name in [
            "a",
            "a.gz",
            ".csv",
            ".csv.gz",
            "a.txt",
            "a.xlsx",
            "a.csv.bz2",
            "csv",
            "a.csv.gz.gz",
            "a.",
            "/",
            "..",
            "a.parquet.gz",
            "a.arrow.zst",
        ] {
            assert_eq!(of(name), None, "{name}");
        }
    }

    #[test]
    fn the_ending_of_a_format_is_read_as_the_format() {
        for (_, format) in ENDINGS {
            for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
                let Ok(file) = FileFormat::new(format, Some(compression)) else {
                    assert!(format.compresses_itself() && compression == Compression::Gzip);
                    continue;
                };
                let again = of(&format!("x.{}", file.ending())).map(|(format, _)| format);
                assert_eq!(again, Some(format));
                assert_eq!(Format::by_name(format.name()), Some(format));
                assert_eq!(Compression::by_name(compression.name()), Some(compression));
            }
        }
    }
}
