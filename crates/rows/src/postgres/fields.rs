//! `Fields`: the fields of an ErrorResponse or NoticeResponse, and their conversion to an [`Error`]
//! or [`Message`].
//!
//! Source: PostgreSQL's documentation, "Error and Notice Message Fields".

use super::message::FieldReader;
use crate::codes;
use crate::error::{Error, ErrorKind, Message};
use crate::sql::dialect::Dialect;

/// The fields of an error or notice. A field that the server omitted is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields {
    /// The severity in English: `ERROR`, `FATAL` or `PANIC`; in a notice `WARNING`, `NOTICE`,
    /// `DEBUG`, `INFO` or `LOG`.
    pub(super) severity: String,
    pub(super) sqlstate: String,
    pub(super) message: String,
    pub(super) detail: String,
    pub(super) hint: String,
    /// The position of the error in the statement, in characters from 1; `None` if the server
    /// reported none.
    pub(super) position: Option<u32>,
    /// The context of the error, such as the call stack of procedures.
    pub(super) context: String,
    pub(super) schema: String,
    pub(super) table: String,
    pub(super) column: String,
    pub(super) data_type: String,
    pub(super) constraint: String,
}

impl Fields {
    /// Parses the body of an ErrorResponse or NoticeResponse.
    ///
    /// # Errors
    /// The body is truncated, or has trailing data.
    pub(super) fn read(mut reader: FieldReader<'_>) -> Result<Fields, Error> {
        let mut fields = Fields::default();
        let mut localized = String::new();
        loop {
            let kind = reader.u8()?;
            if kind == 0 {
                break;
            }
            let value = reader.string_lossy()?;
            match kind {
                b'S' => localized = value,
                b'V' => fields.severity = value,
                b'C' => fields.sqlstate = value,
                b'M' => fields.message = value,
                b'D' => fields.detail = value,
                b'H' => fields.hint = value,
                b'P' => fields.position = value.parse().ok(),
                b'W' => fields.context = value,
                b's' => fields.schema = value,
                b't' => fields.table = value,
                b'c' => fields.column = value,
                b'd' => fields.data_type = value,
                b'n' => fields.constraint = value,
                // The other fields are internal positions, and the position in the server's source
                // code.
                _ => {}
            }
        }
        reader.end()?;
        // Servers before version 9.6 send the severity only in the language of the server.
        if fields.severity.is_empty() {
            fields.severity = localized;
        }
        Ok(fields)
    }

    /// Returns `true` if the server ends the session after this error.
    pub(super) fn is_fatal(&self) -> bool {
        matches!(self.severity.as_str(), "FATAL" | "PANIC")
    }

    /// Returns the text of the whole error: the message of the server, and then separate lines for
    /// the position in `sql`, the detail, the hint and the context. A line is omitted if the server
    /// did not send its field.
    fn text(&self, sql: &str) -> String {
        let mut text = self.message.clone();
        if let Some(place) = self.position.and_then(|at| place(sql, at)) {
            text.push('\n');
            text.push_str(&place);
        }
        for (name, value) in [
            ("DETAIL", &self.detail),
            ("HINT", &self.hint),
            ("CONTEXT", &self.context),
        ] {
            if !value.is_empty() {
                text.push('\n');
                text.push_str(name);
                text.push_str(":  ");
                text.push_str(value);
            }
        }
        text
    }

    /// Converts the fields of an error message of the server to an [`Error`]. `sql` is the text of
    /// the statement that failed.
    pub(super) fn to_error(&self, sql: &str) -> Error {
        let mut error = Error::new(ErrorKind::Operational, self.text(sql));
        error.sqlstate.clone_from(&self.sqlstate);
        if let Some(meaning) = codes::meaning(Dialect::Postgres, &self.sqlstate, 0) {
            error.set_meaning(meaning);
        }
        let position = self.position.map_or_else(String::new, |at| at.to_string());
        error.details = [
            ("severity", &self.severity),
            ("detail", &self.detail),
            ("hint", &self.hint),
            ("position", &position),
            ("context", &self.context),
            ("schema", &self.schema),
            ("table", &self.table),
            ("column", &self.column),
            ("data_type", &self.data_type),
            ("constraint", &self.constraint),
        ]
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name, value.clone()))
        .collect();
        error
    }

    /// Converts the fields of a notice to a message.
    pub(super) fn to_message(&self) -> Message {
        Message {
            text: self.text(""),
            sqlstate: self.sqlstate.clone(),
            native: 0,
        }
    }
}

/// Returns the line of `sql` that contains the character at `position` (in characters, from 1), and
/// below it a line with a caret under that character, as psql prints it. Returns `None` if `sql`
/// has no such character.
fn place(sql: &str, position: u32) -> Option<String> {
    let before = usize::try_from(position).ok()?.checked_sub(1)?;
    let at = sql.char_indices().nth(before).map(|(at, _)| at)?;
    let start = sql[..at].rfind('\n').map_or(0, |n| n + 1);
    let line = sql[start..].lines().next()?;
    let number = sql[..at].matches('\n').count() + 1;
    let label = format!("LINE {number}: ");
    let n_chars = label.len() + sql[start..at].chars().count();
    // In a very long line, the caret would not be visible, so only the position is reported.
    if n_chars > 200 || line.len() > 1000 {
        return Some(format!("at character {position} of the statement"));
    }
    let line = line.replace('\t', " ");
    Some(format!("{label}{line}\n{:n_chars$}^", ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] =
        b"SFEHLER\0VERROR\0C23505\0Mduplicate key\0DKey (i)=(1) exists.\0Htry 2\0P8\0\
        spublic\0tt\0ci\0nt_pkey\0Fnbtinsert.c\0\0";

    #[test]
    fn fields_are_those_of_the_documentation() {
        let fields = Fields::read(FieldReader::new(BODY)).unwrap();
        assert_eq!(fields.severity, "ERROR");
        assert!(!fields.is_fatal());
        assert_eq!(fields.position, Some(8));
        assert_eq!(fields.table, "t");
        assert_eq!(fields.column, "i");
        assert_eq!(fields.constraint, "t_pkey");
        let error = fields.to_error("insert into t values (1)");
        assert_eq!(error.kind, ErrorKind::Integrity);
        assert_eq!(error.sqlstate, "23505");
        assert_eq!(
            error.message,
            "duplicate key\nLINE 1: insert into t values (1)\n               ^\n\
             DETAIL:  Key (i)=(1) exists.\nHINT:  try 2"
        );
    }

    #[test]
    fn a_body_that_is_cut_is_an_error() {
        for n in 0..BODY.len() {
            assert!(Fields::read(FieldReader::new(&BODY[..n])).is_err(), "{n}");
        }
        assert!(Fields::read(FieldReader::new(b"\0x")).is_err());
    }

    #[test]
    fn an_old_server_has_only_the_localized_severity() {
        let fields = Fields::read(FieldReader::new(b"SFATAL\0C57P01\0Mbye\0\0")).unwrap();
        assert!(fields.is_fatal());
        assert!(fields.to_error("").is_transient);
    }

    #[test]
    fn the_place_is_its_line_with_a_caret() {
        let sql = "select 'é',\n\tfoo\nfrom t";
        assert_eq!(place(sql, 14).unwrap(), "LINE 2:  foo\n         ^");
        assert_eq!(place(sql, 0), None);
        assert_eq!(place(sql, 99), None);
        let long = format!("select {}, x", "1, ".repeat(400));
        assert_eq!(
            place(&long, 900).unwrap(),
            "at character 900 of the statement"
        );
    }
}
