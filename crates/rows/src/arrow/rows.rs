//! `ArrowRows`: the row sink that builds Arrow columns. Each cell is converted once, directly into
//! the buffer that the consumer receives.

use onecopy_text::{Policy, Tally};
use onecopy_wire::WriteError;

use super::array::Batch;
use super::builder::Builder;
use super::decimal::is_not_finite;
use super::error::ValueError;
use super::plan::{ArrowOptions, plans};
use super::types::{DataType, Field};
use crate::cell::{Cell, Date, LongKind};
use crate::error::{Error, ErrorKind};
use crate::schema::Schema;
use crate::source::RowSink;

/// The largest number of rows that are added to a batch before its size is compared with its limit.
const MOST_UNCHECKED_ROWS: usize = 4096;

/// A cell that an Arrow column cannot store: its row, its column, and the reason.
#[derive(Debug)]
pub struct Misfit {
    /// The row of the cell (from 0, within the batch).
    row: usize,
    column: usize,
    why: ValueError,
    /// The type of the cell, in the words of the error message, such as `an integer`.
    is: &'static str,
}

/// A row sink that builds Arrow columns. It accepts cells in row order and in column order.
#[derive(Debug)]
pub struct ArrowRows {
    schema: Schema,
    columns: Vec<Builder>,
    /// The number of rows in the current batch.
    n_rows: usize,
    /// The number of rows in the block that is being added column by column; 0 if no block is being
    /// added. `n_rows` does not include these rows, because not all of their cells were added yet.
    n_coming: usize,
    /// The number of rows in the batches before the current one.
    n_before: u64,
    /// The approximate size of the current batch in bytes.
    n_bytes: usize,
    batch_bytes: usize,
    /// The number of rows of the current batch at which its size is next compared with
    /// `batch_bytes`. It is computed only from earlier rows. Therefore the number of rows that a
    /// driver returns per fetch does not affect the row at which a batch ends. If rows are added
    /// one by one, the size is compared after each row.
    check_at: usize,
    /// `true` if the current batch has reached the size limit of the options.
    is_full: bool,
    /// The number of text bytes that were converted, and the number of those that were copied. The
    /// caller adds both numbers to a `Ledger`.
    pub(crate) tally: Tally,
}

impl ArrowRows {
    /// Creates a sink with an empty column for each column of `schema`.
    ///
    /// # Errors
    /// [`ErrorKind::Programming`] if the options name a column that does not exist;
    /// [`ErrorKind::NotSupported`] if they name a type that this crate can import, but not create.
    pub fn new(
        schema: &Schema,
        options: &ArrowOptions,
        policy: Policy,
    ) -> Result<ArrowRows, Error> {
        let columns = plans(schema, options)?;
        let columns = columns
            .iter()
            .map(|(plan, was_requested)| Builder::new(plan, policy, *was_requested));
        Ok(ArrowRows {
            columns: columns.collect(),
            schema: schema.clone(),
            n_rows: 0,
            n_coming: 0,
            n_before: 0,
            n_bytes: 0,
            batch_bytes: options.batch_bytes,
            check_at: 1,
            is_full: false,
            tally: Tally::default(),
        })
    }

    /// Returns `true` while the values of the first batch may still change the type of a column.
    pub(crate) fn is_undecided(&self) -> bool {
        self.columns.iter().any(Builder::is_undecided)
    }

    /// Returns the number of rows so far, including the rows of earlier batches.
    pub(crate) fn n_rows(&self) -> u64 {
        self.n_before + self.n_rows as u64
    }

    /// Creates an empty sink with the same columns and types. It is used if a block of rows could
    /// not be converted: the block is emitted to the new sink row by row, to find the first row
    /// that fails.
    pub(crate) fn same_again(&self) -> ArrowRows {
        ArrowRows {
            schema: self.schema.clone(),
            columns: self.columns.iter().map(Builder::same_again).collect(),
            n_before: self.n_rows(),
            n_rows: 0,
            n_coming: 0,
            n_bytes: 0,
            batch_bytes: usize::MAX,
            check_at: 1,
            is_full: false,
            tally: Tally::default(),
        }
    }

    /// Returns `true` if the current batch has reached the size limit of the options.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Returns the number of rows, at least 1, that may be added column by column before the size
    /// of the batch is compared with its limit.
    pub(crate) fn n_until_check(&self) -> usize {
        self.check_at.saturating_sub(self.n_rows).max(1)
    }

    /// Compares the size of the batch with its limit. If the limit is not reached, chooses the
    /// number of rows for the next comparison: at most twice the current number, and at most as
    /// many as fit if the next rows are as long as the previous ones on average.
    fn check_size(&mut self) {
        self.is_full = self.n_bytes >= self.batch_bytes;
        if !self.is_full {
            let row_bytes = (self.n_bytes / self.n_rows).max(1);
            let n_fitting = (self.batch_bytes - self.n_bytes).div_ceil(row_bytes);
            self.check_at = self.n_rows + n_fitting.min(self.n_rows).min(MOST_UNCHECKED_ROWS);
        }
    }

    /// Returns the names and types of the columns. The types are final once
    /// [`ArrowRows::is_undecided`] returns `false` or [`ArrowRows::take`] has returned a batch.
    pub(crate) fn fields(&self) -> Vec<Field> {
        let columns = self.schema.columns.iter().zip(&self.columns);
        columns
            .map(|(column, builder)| Field {
                name: column.name.clone(),
                data_type: builder.data_type(),
                // A driver that reports a column as not nullable may be wrong (an outer join), and
                // a nullable column costs nothing.
                nullable: true,
            })
            .collect()
    }

    /// Returns the rows of the current batch, and begins the next batch.
    ///
    /// # Errors
    /// A text value is malformed, or a value cannot be stored in the column type that was chosen
    /// from the values of the batch.
    pub(crate) fn take(&mut self) -> Result<Batch, Error> {
        let mut columns = Vec::with_capacity(self.columns.len());
        for column in 0..self.columns.len() {
            let array = self.columns[column].take().map_err(|(row, why)| {
                let is = "text";
                let misfit = Misfit {
                    row,
                    column,
                    why,
                    is,
                };
                self.error(misfit)
            })?;
            columns.push(array);
        }
        let n_rows = std::mem::take(&mut self.n_rows);
        self.n_before += n_rows as u64;
        (self.n_bytes, self.check_at, self.is_full) = (0, 1, false);
        Ok(Batch { n_rows, columns })
    }

    /// Converts a [`Misfit`] (a cell that its column cannot store) to an error with the cell's row
    /// and column.
    pub(crate) fn error(&self, misfit: Misfit) -> Error {
        let name = self.schema.columns.get(misfit.column);
        let name = name.map_or("", |c| c.name.as_str());
        let builder = self.columns.get(misfit.column);
        let data_type = builder.map(Builder::data_type);
        let is_list = matches!(data_type, Some(DataType::List(_)));
        let data_type = data_type.map_or_else(String::new, |made| made.to_string());
        let is = match (misfit.is, misfit.why) {
            ("an array", ValueError::Kind | ValueError::Range | ValueError::Scale) if is_list => {
                "an element of an array"
            }
            (is, _) => is,
        };
        let (kind, what, remedy) = match misfit.why {
            ValueError::Malformed(e, units) => (
                ErrorKind::Malformed,
                format!("malformed text: {} at {units} {}", e.kind, e.at_units),
                "fix it in the database",
            ),
            ValueError::Invalid | ValueError::DateStyle => {
                let why = match is {
                    _ if misfit.why == ValueError::DateStyle => {
                        WriteError::YearOutOfRange(Date::OTHER_STYLE.year)
                    }
                    "a decimal" => WriteError::NotADecimal,
                    "an array" => WriteError::NotAnArray,
                    _ => WriteError::NotADate,
                };
                let row = self.n_before + misfit.row as u64;
                return self
                    .schema
                    .invalid_value(&why.to_string(), misfit.column, row);
            }
            ValueError::Dimensions => (
                ErrorKind::Data,
                format!("{is} of other dimensions does not go into a column of `{data_type}`"),
                "request lists of lists or text for this column \
                 (`types={\"name\": \"list<list<…>>\"}`, `\"string\"`)",
            ),
            ValueError::Long => (
                ErrorKind::Data,
                "a batch of this column is longer than 2 GiB".to_owned(),
                "request the type `large_string` or `large_binary`, or for smaller batches",
            ),
            ValueError::Memory => (
                ErrorKind::Operational,
                "out of memory for the values of a column".to_owned(),
                "ask for smaller batches",
            ),
            ValueError::Kind => (
                ErrorKind::Data,
                format!("{is} does not go into a column of `{data_type}`"),
                "request another type for this column (`types`), or cast it in the query",
            ),
            ValueError::Range => (
                ErrorKind::Data,
                format!("{is} is outside of the range of `{data_type}`"),
                "request a wider type for this column (`types`), or cast it in the query",
            ),
            ValueError::Scale => (
                ErrorKind::Data,
                format!("{is} has more digits than `{data_type}` can represent"),
                "request a finer type for this column (`types`), or round it in the query",
            ),
        };
        let error = Error::new(kind, format!("{what}\n{remedy}"))
            .at_column(misfit.column, name)
            .at_row(self.n_before + misfit.row as u64);
        match kind {
            // The values contradict the type that the driver described.
            ErrorKind::Data => error.of_driver(self.schema.driver()),
            _ => error,
        }
    }

    #[inline(always)]
    fn put(&mut self, row: usize, column: usize, cell: Cell<'_>) -> Result<(), Misfit> {
        match self.columns[column].put(cell, &mut self.tally) {
            Ok(n) => {
                self.n_bytes += n;
                Ok(())
            }
            Err(why) => Err(misfit(row, column, &cell, why)),
        }
    }

    fn parts(&self, column: usize) -> Misfit {
        Misfit {
            row: self.n_rows,
            column,
            why: ValueError::Kind,
            is: "a value in parts",
        }
    }
}

#[cold]
fn misfit(row: usize, column: usize, cell: &Cell<'_>, why: ValueError) -> Misfit {
    let is = match cell {
        Cell::Null => "NULL",
        Cell::Bool(_) => "a boolean",
        Cell::I64(_) | Cell::U64(_) => "an integer",
        Cell::F32(n) if !n.is_finite() => "a float that is not finite",
        Cell::F64(n) if !n.is_finite() => "a float that is not finite",
        Cell::F32(_) | Cell::F64(_) => "a float",
        Cell::Decimal(digits) if is_not_finite(digits) => "a decimal that is not finite",
        Cell::Decimal(_) => "a decimal",
        Cell::Text(_) | Cell::Json(_) | Cell::Range(_) => "text",
        Cell::Array(_) => "an array",
        Cell::Bytes(_) => "binary",
        Cell::Date(_) => "a date",
        Cell::Time(..) => "a time",
        Cell::Timestamp(..) => "a timestamp",
        Cell::Interval { .. } => "a span of time",
        Cell::TimeTz { .. } => "a time with an offset",
        Cell::Uuid(_) => "a UUID",
    };
    Misfit {
        row,
        column,
        why,
        is,
    }
}

impl RowSink for ArrowRows {
    type Error = Misfit;

    const COLUMNS: bool = true;

    #[inline]
    fn begin_row(&mut self) -> Result<(), Misfit> {
        Ok(())
    }

    #[inline(always)]
    fn cell(&mut self, column: usize, cell: Cell<'_>) -> Result<(), Misfit> {
        self.put(self.n_rows, column, cell)
    }

    fn long_begin(&mut self, column: usize, _kind: LongKind) -> Result<(), Misfit> {
        Err(self.parts(column))
    }

    fn long_part(&mut self, column: usize, _part: Cell<'_>) -> Result<(), Misfit> {
        Err(self.parts(column))
    }

    fn long_end(&mut self, column: usize) -> Result<(), Misfit> {
        Err(self.parts(column))
    }

    #[inline]
    fn end_row(&mut self) -> Result<bool, Misfit> {
        self.n_rows += 1;
        self.is_full = self.n_bytes >= self.batch_bytes;
        Ok(!self.is_full)
    }

    #[inline(always)]
    fn column_cell(&mut self, row: usize, column: usize, cell: Cell<'_>) -> Result<(), Misfit> {
        self.put(self.n_rows + row, column, cell)
    }

    fn begin_columns(&mut self, n_rows: usize) -> Result<(), Misfit> {
        // Rows are counted only when all columns of the batch are complete, because a column that
        // failed may be shorter than the others.
        self.n_coming = n_rows;
        Ok(())
    }

    fn end_columns(&mut self) -> Result<(), Misfit> {
        self.n_rows += std::mem::take(&mut self.n_coming);
        if self.n_rows >= self.check_at {
            self.check_size();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::schema::{Column, ColumnType};

    fn sink(batch_bytes: usize) -> ArrowRows {
        let column = |name: &str| Column::new(name.to_owned(), ColumnType::Any);
        let schema = Schema::new(vec![column("n"), column("text")]);
        let options = ArrowOptions {
            batch_bytes,
            types: vec![
                (
                    "n".to_owned(),
                    DataType::Int {
                        bits: 64,
                        unsigned: false,
                    },
                ),
                ("text".to_owned(), DataType::Utf8),
            ],
        };
        ArrowRows::new(&schema, &options, Policy::default()).expect("columns")
    }

    /// Adds `texts` to a sink as a column with one row for each text, in blocks. `blocks` contains
    /// the number of rows of each block. Returns the number of rows of each batch of the sink.
    fn batches(texts: &[String], blocks: &[usize], batch_bytes: usize) -> Vec<usize> {
        let mut sink = sink(batch_bytes);
        let mut found = Vec::new();
        let mut rest = texts;
        for n in blocks.iter().copied().chain([texts.len()]) {
            let (mut block, after) = rest.split_at(n.min(rest.len()));
            rest = after;
            while !block.is_empty() {
                let (part, after) = block.split_at(sink.n_until_check().min(block.len()));
                block = after;
                sink.begin_columns(part.len()).expect("columns");
                for row in 0..part.len() {
                    sink.column_cell(row, 0, Cell::I64(1)).expect("a number");
                }
                for (row, text) in part.iter().enumerate() {
                    let text = Cell::Text(onecopy_text::Units::Utf8(text.as_bytes()));
                    sink.column_cell(row, 1, text).expect("a text");
                }
                sink.end_columns().expect("columns");
                if sink.is_full() {
                    found.push(sink.take().expect("a batch").n_rows);
                }
            }
        }
        found.push(sink.take().expect("a batch").n_rows);
        found
    }

    proptest! {
        #[test]
        fn the_ends_of_batches_do_not_depend_on_the_blocks(
            texts in prop::collection::vec("[a-c]{0,40}", 1..400),
            blocks in prop::collection::vec(1_usize..60, 0..12),
            batch_bytes in 1_usize..4000,
        ) {
            let whole = batches(&texts, &[], batch_bytes);
            prop_assert_eq!(&batches(&texts, &blocks, batch_bytes), &whole);
            prop_assert_eq!(whole.iter().sum::<usize>(), texts.len());
        }
    }

    #[test]
    fn a_batch_of_long_values_ends_soon_after_its_limit() {
        let texts = vec!["x".repeat(1000); 100];
        let n_rows = batches(&texts, &[], 10_000);
        assert!(n_rows.iter().all(|n| *n <= 12), "{n_rows:?}");
        assert!(
            n_rows[..n_rows.len() - 1].iter().all(|n| *n >= 8),
            "{n_rows:?}"
        );
    }
}
