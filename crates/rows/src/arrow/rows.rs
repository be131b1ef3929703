//! The row sink that makes columns: each cell is written once, into the buffer that goes out.

use onecopy_text::{Policy, Tally};
use onecopy_wire::WriteError;

use super::array::Batch;
use super::builder::Builder;
use super::error::ValueError;
use super::plan::{ArrowOptions, plans};
use super::types::Field;
use crate::cell::{Cell, LongKind};
use crate::error::{Error, ErrorKind};
use crate::schema::Schema;
use crate::source::RowSink;

/// ValueError a cell does not go into its column.
#[derive(Debug)]
pub struct Misfit {
    /// Its row (from 0, in the batch).
    row: usize,
    column: usize,
    why: ValueError,
    /// What it is, for people.
    is: &'static str,
}

/// The sink. It takes columns of a block, or rows.
#[derive(Debug)]
pub struct ArrowRows {
    schema: Schema,
    columns: Vec<Builder>,
    /// Rows in the batch so far.
    n_rows: usize,
    /// Rows that are coming column by column.
    n_coming: usize,
    /// Rows in the batches before.
    n_before: u64,
    /// Bytes in the batch so far, about.
    n_bytes: usize,
    batch_bytes: usize,
    /// Text handled, to be entered into a ledger by the caller.
    pub(crate) tally: Tally,
}

impl ArrowRows {
    /// Columns for this schema.
    ///
    /// # Errors
    /// [`ErrorKind::Programming`] where a type is asked for a column that is not there, [`ErrorKind::NotSupported`] where it
    /// is never made.
    pub fn new(
        schema: &Schema,
        options: &ArrowOptions,
        policy: Policy,
    ) -> Result<ArrowRows, Error> {
        let columns = plans(schema, options)?;
        let columns = columns
            .iter()
            .map(|(plan, was_asked)| Builder::new(plan, policy, *was_asked));
        Ok(ArrowRows {
            columns: columns.collect(),
            schema: schema.clone(),
            n_rows: 0,
            n_coming: 0,
            n_before: 0,
            n_bytes: 0,
            batch_bytes: options.batch_bytes,
            tally: Tally::default(),
        })
    }

    /// Whether a column's type is still to be told by its values.
    pub(crate) fn is_undecided(&self) -> bool {
        self.columns.iter().any(Builder::is_undecided)
    }

    /// Rows so far, those of the batches before included.
    pub(crate) fn n_rows(&self) -> u64 {
        self.n_before + self.n_rows as u64
    }

    /// A sink with the same columns as they are now, for a second look at a block.
    pub(crate) fn same_again(&self) -> ArrowRows {
        ArrowRows {
            schema: self.schema.clone(),
            columns: self.columns.iter().map(Builder::same_again).collect(),
            n_before: self.n_rows(),
            n_rows: 0,
            n_coming: 0,
            n_bytes: 0,
            batch_bytes: usize::MAX,
            tally: Tally::default(),
        }
    }

    /// Whether the batch is to be handed on.
    pub(crate) fn is_full(&self) -> bool {
        self.n_bytes >= self.batch_bytes
    }

    /// Names and types of the columns; final once [`ArrowRows::is_undecided`] is false or a batch was taken.
    pub(crate) fn fields(&self) -> Vec<Field> {
        let columns = self.schema.columns.iter().zip(&self.columns);
        columns
            .map(|(column, builder)| Field {
                name: column.name.clone(),
                data_type: builder.data_type(),
                // A driver that says "no" is not always right (an outer join): what it costs to say "yes" is nothing.
                nullable: true,
            })
            .collect()
    }

    /// The rows so far as a batch; starts the next one.
    ///
    /// # Errors
    /// Text is malformed.
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
        self.n_bytes = 0;
        Ok(Batch { n_rows, columns })
    }

    /// The error, with the place of its value.
    pub(crate) fn error(&self, misfit: Misfit) -> Error {
        let name = self.schema.columns.get(misfit.column);
        let name = name.map_or("", |c| c.name.as_str());
        let builder = self.columns.get(misfit.column);
        let data_type = builder.map_or_else(String::new, |b| b.data_type().to_string());
        let is = misfit.is;
        let (kind, what, remedy) = match misfit.why {
            ValueError::Malformed(e, units) => (
                ErrorKind::Malformed,
                format!("malformed text: {} at {units} {}", e.kind, e.at_units),
                "mend it in the database",
            ),
            ValueError::Invalid => {
                let why = match is {
                    "a decimal" => WriteError::NotADecimal,
                    _ => WriteError::NotADate,
                };
                let row = self.n_before + misfit.row as u64;
                return self
                    .schema
                    .invalid_value(&why.to_string(), misfit.column, row);
            }
            ValueError::Long => (
                ErrorKind::Data,
                "a batch of this column is longer than 2 GiB".to_owned(),
                "ask for the type `large_string` or `large_binary`, or for smaller batches",
            ),
            ValueError::Memory => (
                ErrorKind::Operational,
                "out of memory for the values of a column".to_owned(),
                "ask for smaller batches",
            ),
            ValueError::Kind => (
                ErrorKind::Data,
                format!("{is} does not go into a column of `{data_type}`"),
                "ask for another type of this column (`types`), or cast it in the query",
            ),
            ValueError::Range => (
                ErrorKind::Data,
                format!("{is} is outside of what `{data_type}` holds"),
                "ask for a wider type of this column (`types`), or cast it in the query",
            ),
            ValueError::Scale => (
                ErrorKind::Data,
                format!("{is} has more digits than `{data_type}` holds"),
                "ask for a finer type of this column (`types`), or round it in the query",
            ),
        };
        let error = Error::new(kind, format!("{what}\n{remedy}"))
            .at_column(misfit.column, name)
            .at_row(self.n_before + misfit.row as u64);
        match kind {
            // The driver described a column that its values do not go into.
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
        Cell::F32(n) if !n.is_finite() => "a float that is no number",
        Cell::F64(n) if !n.is_finite() => "a float that is no number",
        Cell::F32(_) | Cell::F64(_) => "a float",
        Cell::Decimal(_) => "a decimal",
        Cell::Text(_) => "text",
        Cell::Bytes(_) => "binary",
        Cell::Date(_) => "a date",
        Cell::Time(..) => "a time",
        Cell::Timestamp(..) => "a timestamp",
        Cell::Interval { .. } => "a span of time",
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
        Ok(self.n_bytes < self.batch_bytes)
    }

    #[inline(always)]
    fn column_cell(&mut self, row: usize, column: usize, cell: Cell<'_>) -> Result<(), Misfit> {
        self.put(self.n_rows + row, column, cell)
    }

    fn begin_columns(&mut self, n_rows: usize) -> Result<(), Misfit> {
        // Counted when they are complete; a column that fails must not be one short.
        self.n_coming = n_rows;
        Ok(())
    }

    fn end_columns(&mut self) -> Result<(), Misfit> {
        self.n_rows += std::mem::take(&mut self.n_coming);
        Ok(())
    }
}
