//! [`Table`]: writes rows as an aligned table. The first rows determine the widths of the columns.
//! Only a limited number of rows is in memory, so a result may have any size.

mod text;

use std::convert::Infallible;
use std::io::{self, Write};

use onecopy_rows::{Cell, ColumnType, LongKind, RowSink, Schema};

use crate::console::styled;
use text::{Bytes, Shown, Text, ValueKind};

/// The number of rows from which the widths of the columns are computed. It is also the largest
/// number of rows in memory.
const SAMPLE: usize = 200;

/// The text between two columns.
const SEPARATOR: &str = " │ ";

/// The smallest width to which a column is reduced so that the table fits into the line.
const MIN_WIDTH: usize = 5;

/// Collects rows as text, and writes them as an aligned table at each call to [`Table::write`].
pub(crate) struct Table {
    columns: Vec<TableColumn>,
    /// The width of the terminal in columns. Longer lines of the table are truncated to this width.
    /// `None` if no line is truncated.
    line_width: Option<usize>,
    colour: bool,
    row: Vec<Shown>,
    rows: Vec<Vec<Shown>>,
    long: Option<LongValue>,
    header_written: bool,
    n_rows: u64,
}

struct TableColumn {
    name: String,
    /// `true` if the values are aligned right, `false` if left. `None` until the values of the
    /// first rows determine it, because SQLite declares no type for some columns.
    right: Option<bool>,
    width: usize,
}

enum LongValue {
    Text(Text),
    Bytes(Bytes),
}

impl Table {
    pub(crate) fn new(schema: &Schema, line_width: Option<usize>, colour: bool) -> Table {
        let columns = schema
            .columns
            .iter()
            .map(|c| {
                let mut name = Text::default();
                name.push(onecopy_text::Units::Utf8(c.name.as_bytes()));
                TableColumn {
                    name: name.finish().text,
                    right: match c.column_type {
                        ColumnType::Any => None,
                        ColumnType::Integer { .. }
                        | ColumnType::Real
                        | ColumnType::Double
                        | ColumnType::Decimal { .. } => Some(true),
                        _ => Some(false),
                    },
                    width: 0,
                }
            })
            .collect();
        Table {
            columns,
            line_width,
            colour,
            row: Vec::new(),
            rows: Vec::new(),
            long: None,
            header_written: false,
            n_rows: 0,
        }
    }

    /// Returns `true` if the table has collected the largest number of rows that it keeps in
    /// memory, so that [`Table::write`] must be called.
    pub(crate) fn is_full(&self) -> bool {
        self.rows.len() >= SAMPLE
    }

    pub(crate) fn n_rows(&self) -> u64 {
        self.n_rows
    }

    /// Writes the rows that are in memory and removes them. The first call also determines the
    /// widths of the columns and writes the header.
    pub(crate) fn write(&mut self, out: &mut impl Write) -> io::Result<()> {
        if !self.header_written {
            self.header_written = true;
            self.measure();
            self.write_header(out)?;
        }
        let mut line = String::new();
        for row in std::mem::take(&mut self.rows) {
            line.clear();
            for (i, (shown, column)) in row.iter().zip(&self.columns).enumerate() {
                let last = i + 1 == self.columns.len();
                let sgr = (shown.kind == ValueKind::Null).then_some("2");
                self.push_cell(&mut line, i, last, column, &shown.text, shown.width, sgr);
            }
            line.push('\n');
            out.write_all(line.as_bytes())?;
        }
        Ok(())
    }

    /// Computes the width and the alignment of each column from the header and the rows in memory.
    fn measure(&mut self) {
        for (i, column) in self.columns.iter_mut().enumerate() {
            let cells = || self.rows.iter().filter_map(move |row| row.get(i));
            let header = unicode_width::UnicodeWidthStr::width(column.name.as_str());
            column.width = cells().map(|c| c.width).max().unwrap_or(0).max(header);
            column.right.get_or_insert_with(|| {
                cells().any(|c| c.kind == ValueKind::Number)
                    && cells().all(|c| c.kind != ValueKind::Other)
            });
        }
        let Some(line_width) = self.line_width else {
            return;
        };
        let between = 1 + 3 * self.columns.len().saturating_sub(1);
        let available = line_width.saturating_sub(between);
        let mut used: usize = self.columns.iter().map(|c| c.width).sum();
        while used > available {
            // The widest column is reduced first, so that names and numbers next to a long text
            // stay complete.
            let widest = self.columns.iter_mut().max_by_key(|c| c.width);
            match widest {
                Some(column) if column.width > MIN_WIDTH => {
                    column.width -= 1;
                    used -= 1;
                }
                _ => break,
            }
        }
    }

    fn write_header(&self, out: &mut impl Write) -> io::Result<()> {
        let (mut names, mut rule) = (String::new(), String::new());
        for (i, column) in self.columns.iter().enumerate() {
            let last = i + 1 == self.columns.len();
            let width = unicode_width::UnicodeWidthStr::width(column.name.as_str());
            self.push_cell(&mut names, i, last, column, &column.name, width, Some("1"));
            rule.push_str(if i == 0 { "─" } else { "─┼─" });
            rule.push_str(&"─".repeat(column.width));
        }
        let rule = styled(&rule, "2", self.colour);
        writeln!(out, "{names}\n{rule}")
    }

    #[allow(clippy::too_many_arguments)] // These are the parts of one cell.
    fn push_cell(
        &self,
        line: &mut String,
        index: usize,
        last: bool,
        column: &TableColumn,
        text: &str,
        width: usize,
        sgr: Option<&str>,
    ) {
        if index == 0 {
            line.push(' ');
        } else {
            line.push_str(&styled(SEPARATOR, "2", self.colour));
        }
        let (text, width) = match self.line_width {
            Some(_) => text::cut(text, column.width),
            None => (text.to_owned(), width),
        };
        let pad = " ".repeat(column.width.saturating_sub(width));
        let text = match sgr {
            Some(sgr) => styled(&text, sgr, self.colour),
            None => text,
        };
        if column.right == Some(true) {
            line.push_str(&pad);
            line.push_str(&text);
        } else {
            line.push_str(&text);
            if !last {
                line.push_str(&pad);
            }
        }
    }
}

impl RowSink for Table {
    type Error = Infallible;

    fn begin_row(&mut self) -> Result<(), Infallible> {
        self.row = Vec::with_capacity(self.columns.len());
        Ok(())
    }

    fn cell(&mut self, _: usize, cell: Cell<'_>) -> Result<(), Infallible> {
        self.row.push(Shown::of(cell));
        Ok(())
    }

    fn long_begin(&mut self, _: usize, kind: LongKind) -> Result<(), Infallible> {
        self.long = Some(match kind {
            LongKind::Text => LongValue::Text(Text::default()),
            LongKind::Bytes => LongValue::Bytes(Bytes::default()),
        });
        Ok(())
    }

    fn long_part(&mut self, _: usize, part: Cell<'_>) -> Result<(), Infallible> {
        match (&mut self.long, part) {
            (Some(LongValue::Text(text)), Cell::Text(units)) => text.push(units),
            (Some(LongValue::Bytes(bytes)), Cell::Bytes(part)) => bytes.push(part),
            _ => {}
        }
        Ok(())
    }

    fn long_end(&mut self, _: usize) -> Result<(), Infallible> {
        match self.long.take() {
            Some(LongValue::Text(text)) => self.row.push(text.finish()),
            Some(LongValue::Bytes(bytes)) => self.row.push(bytes.finish()),
            None => {}
        }
        Ok(())
    }

    fn end_row(&mut self) -> Result<bool, Infallible> {
        self.rows.push(std::mem::take(&mut self.row));
        self.n_rows += 1;
        Ok(!self.is_full())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onecopy_rows::Column as SchemaColumn;
    use onecopy_text::Units;

    fn schema(names: &[&str]) -> Schema {
        let column = |name: &&str| SchemaColumn {
            name: (*name).to_owned(),
            column_type: ColumnType::Any,
            size: 0,
            nullable: None,
            type_name: String::new(),
        };
        Schema::new(names.iter().map(column).collect())
    }

    fn draw(names: &[&str], rows: &[&[Cell<'_>]], width: Option<usize>, colour: bool) -> String {
        let mut table = Table::new(&schema(names), width, colour);
        for row in rows {
            table.begin_row().unwrap();
            for (i, cell) in row.iter().enumerate() {
                table.cell(i, *cell).unwrap();
            }
            table.end_row().unwrap();
        }
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn text(s: &str) -> Cell<'_> {
        Cell::Text(Units::Utf8(s.as_bytes()))
    }

    #[test]
    fn columns_align_numbers_right_and_wide_characters_count_two() {
        let drawn = draw(
            &["id", "name", "price"],
            &[
                &[Cell::I64(1), text("čaj"), Cell::F64(2.5)],
                &[Cell::I64(20), text("茶の湯"), Cell::Null],
            ],
            None,
            false,
        );
        let expected = [
            " id │ name   │ price",
            "────┼────────┼──────",
            "  1 │ čaj    │   2.5",
            " 20 │ 茶の湯 │  NULL",
        ];
        assert_eq!(drawn.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_widest_column_gives_way_and_what_is_cut_is_marked() {
        let long = "x".repeat(100);
        let drawn = draw(
            &["id", "note"],
            &[&[Cell::I64(1), text(&long)]],
            Some(30),
            false,
        );
        for line in drawn.lines() {
            assert!(unicode_width::UnicodeWidthStr::width(line) <= 30, "{line}");
        }
        assert!(drawn.lines().last().unwrap().ends_with("xxx…"), "{drawn}");
        assert!(draw(&["a"], &[&[text(&long)]], None, false).contains(&long));
    }

    #[test]
    fn null_is_dim_and_the_header_bold_where_there_is_colour() {
        let drawn = draw(&["a"], &[&[Cell::Null]], None, true);
        assert!(drawn.contains("\u{1b}[1ma\u{1b}[0m"), "{drawn:?}");
        assert!(drawn.contains("\u{1b}[2mNULL\u{1b}[0m"), "{drawn:?}");
        assert!(!draw(&["a"], &[&[Cell::Null]], None, false).contains('\u{1b}'));
    }

    #[test]
    fn rows_after_the_sample_keep_its_widths() {
        let mut table = Table::new(&schema(&["a", "b"]), Some(80), false);
        let put = |table: &mut Table, a: &str| {
            table.begin_row().unwrap();
            table.cell(0, text(a)).unwrap();
            table.cell(1, Cell::I64(1)).unwrap();
            table.end_row().unwrap()
        };
        for _ in 1..SAMPLE {
            assert!(put(&mut table, "abcdef"));
        }
        assert!(!put(&mut table, "abcdef"));
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        put(&mut table, "longer than the sample");
        table.write(&mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(out.ends_with(" longe… │ 1\n"), "{out}");
        assert_eq!(table.n_rows(), SAMPLE as u64 + 1);
    }
}
