//! [`Settings`]: the options that must be equal for all parts of an export.

use onecopy_text::Policy;

use crate::error::Error;
use crate::format::{Compression, FileFormat, Format};
use crate::json::{self, JsonWriter, items, member, text};
use crate::writer::RowOptions;

/// The version of the JSON format in which [`Settings`] are stored.
const VERSION: u64 = 1;

/// The options that must be equal for all parts of an export, even if several processes write the
/// parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The format and compression of the files.
    pub file: FileFormat,
    /// The Arrow types of columns, as `COLUMN=TYPE`.
    pub types: Vec<String>,
    /// The treatment of malformed text in a cell: an error, or replacement.
    pub text_policy: Policy,
}

impl Settings {
    /// Creates the settings from `text_policy` and from those `options` that must be equal for all
    /// parts of an export.
    #[must_use]
    pub fn new(options: &RowOptions, text_policy: Policy) -> Settings {
        let types = options.types.iter();
        Settings {
            file: options.file,
            types: types.map(|(name, made)| format!("{name}={made}")).collect(),
            text_policy,
        }
    }

    /// Returns the settings as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = JsonWriter::default();
        out.open('{');
        out.key("version");
        out.raw(&VERSION.to_string());
        for (key, text) in self.words() {
            out.key(key);
            out.string(text);
        }
        out.key("types");
        out.strings(&self.types);
        out.close('}');
        out.finish() + "\n"
    }

    /// Parses the JSON that [`Settings::to_json`] has written, and returns the settings.
    ///
    /// # Errors
    /// [`Error::Usage`] if the text is not the JSON of settings.
    pub fn from_json(given: &str) -> Result<Settings, Error> {
        let read = || {
            let json = json::parse(given)?;
            let word = |key| text(member(&json, key)?);
            (member(&json, "version")?.as_u64()? == VERSION).then_some(())?;
            let format = Format::by_name(&word("format")?)?;
            let compression = Compression::by_name(&word("compression")?)?;
            Some(Settings {
                file: FileFormat::new(format, Some(compression)).ok()?,
                types: items(member(&json, "types")?)?
                    .iter()
                    .map(text)
                    .collect::<Option<_>>()?,
                text_policy: Policy::of_name(&word("errors")?, &Policy::ALL).ok()?,
            })
        };
        read().ok_or_else(|| {
            Error::Usage(
                "the settings of the unfinished export are damaged, or of another version of onecopy\n\
                 use `--overwrite` to begin again"
                    .to_owned(),
            )
        })
    }

    fn words(&self) -> [(&'static str, &str); 3] {
        [
            ("format", self.file.format().name()),
            ("compression", self.file.compression().name()),
            ("errors", self.text_policy.name()),
        ]
    }

    /// Compares these settings with `other`. Returns the first option that differs, with its value
    /// in `self`, as on a command line. Returns `None` if all options are equal.
    #[must_use]
    pub fn difference(&self, other: &Settings) -> Option<String> {
        let mut pairs = self.words().into_iter().zip(other.words());
        match pairs.find(|(ours, theirs)| ours != theirs) {
            Some(((key, value), _)) => Some(format!("`--{key} {value}`")),
            None if self.types == other.types => None,
            None if self.types.is_empty() => Some("no `--types`".to_owned()),
            None => Some(format!("`--types {}`", self.types.join("` `--types "))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings {
            file: FileFormat::new(Format::Csv, Some(Compression::Zstd)).unwrap(),
            types: vec!["a=double".to_owned(), "b\"=int64".to_owned()],
            text_policy: Policy::Replace,
        }
    }

    #[test]
    fn settings_are_read_as_they_were_written() {
        let text = settings().to_json();
        assert_eq!(Settings::from_json(&text).unwrap(), settings());
        for (from, to) in [
            ("\"version\": 1", "\"version\": 2"),
            ("csv", "xls"),
            ("\"zstd\"", "\"lzw\""),
            ("\"replace\"", "\"discard\""),
            ("\"types\"", "\"kinds\""),
        ] {
            assert!(text.contains(from), "{from}");
            assert!(Settings::from_json(&text.replace(from, to)).is_err());
        }
    }

    #[test]
    fn the_difference_names_the_option() {
        let ours = settings();
        assert_eq!(ours.difference(&ours.clone()), None);
        let mut other = settings();
        other.types.clear();
        assert_eq!(
            ours.difference(&other).unwrap(),
            "`--types a=double` `--types b\"=int64`"
        );
        assert_eq!(other.difference(&ours).unwrap(), "no `--types`");
        other.file = FileFormat::new(Format::Csv, Some(Compression::Gzip)).unwrap();
        assert_eq!(other.difference(&ours).unwrap(), "`--compression gzip`");
    }
}
