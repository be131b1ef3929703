//! `Parameters`: the bound parameter values of one execution, in buffers that the driver reads.
//! Values are never inserted into the SQL text.
//!
//! The values of several rows are stored by column. Each parameter has one binding, which is large
//! enough for its largest value. The driver reads all rows in one call.

use std::ffi::c_void;

use super::ffi::{self, Handle};
use super::parameter_binding::{ParameterBinding, put};
use super::shared::SharedConnection;
use crate::error::Error;
use crate::odbc::block::buffer::Buffer;
use crate::value::Value;

/// The largest size in bytes of the buffer for several rows of parameters. The buffer is larger
/// only if a single row needs more.
const SLICE_BYTES: usize = 1 << 20;

/// One parameter of a statement, with its values in all rows.
struct ParameterColumn {
    form: ParameterBinding,
    /// The offset in bytes of the first row's value in the buffer of all parameters. The value of
    /// each further row is `stride` bytes after that of the row before.
    at: usize,
    stride: usize,
    /// The offset in bytes of the first row's length in the buffer of all parameters. The lengths
    /// of all rows are adjacent.
    lengths_at: usize,
}

/// The parameter values of one or several rows. They must not be dropped before the driver has read
/// them.
pub(crate) struct Parameters {
    columns: Vec<ParameterColumn>,
    memory: Buffer,
    n_rows: usize,
}

const LENGTH_BYTES: usize = size_of::<ffi::Len>();

impl Parameters {
    /// Creates buffers for the values of one execution.
    ///
    /// # Errors
    /// The allocation failed.
    pub(crate) fn new(values: &[Value], shared: &SharedConnection) -> Result<Parameters, Error> {
        let forms = values.iter();
        let forms = forms.map(|v| ParameterBinding::of(v, shared.width, shared.quirks));
        Parameters::made(&[values], forms.collect(), None)
    }

    /// Creates buffers that contain the values of the first rows of `rows`, at least of one row. A
    /// further row is added only if one binding per parameter accepts the values of all these rows,
    /// and if the buffers fit in [`SLICE_BYTES`]. `spare` is the buffer of earlier rows; its memory
    /// is reused.
    pub(crate) fn of_rows<R: AsRef<[Value]>>(
        rows: &[R],
        shared: &SharedConnection,
        spare: Option<Buffer>,
    ) -> Result<Parameters, Error> {
        let of = |value: &Value| ParameterBinding::of(value, shared.width, shared.quirks);
        let mut forms: Vec<ParameterBinding> = rows[0].as_ref().iter().map(of).collect();
        // The bindings that accept this row and all rows before it, if each parameter has one.
        let mut merged = Vec::with_capacity(forms.len());
        let mut n_rows = 1;
        while let Some(row) = rows.get(n_rows) {
            let row = row.as_ref();
            if row.len() != forms.len() {
                break;
            }
            merged.clear();
            merged.extend(forms.iter().zip(row).map_while(|(f, v)| f.merged(of(v))));
            let row_bytes: usize = merged.iter().map(|f| f.bytes + LENGTH_BYTES).sum();
            if merged.len() != forms.len() || row_bytes * (n_rows + 1) > SLICE_BYTES {
                break;
            }
            std::mem::swap(&mut forms, &mut merged);
            n_rows += 1;
        }
        Parameters::made(&rows[..n_rows], forms, spare)
    }

    fn made<R: AsRef<[Value]>>(
        rows: &[R],
        forms: Vec<ParameterBinding>,
        spare: Option<Buffer>,
    ) -> Result<Parameters, Error> {
        let n_rows = rows.len();
        let mut len = 0;
        let mut take = |bytes: usize| {
            let at = len;
            len += bytes.next_multiple_of(8);
            at
        };
        let columns: Vec<ParameterColumn> = forms
            .into_iter()
            .map(|form| {
                let stride = form.bytes.max(1);
                ParameterColumn {
                    form,
                    at: take(stride * n_rows),
                    stride,
                    lengths_at: take(LENGTH_BYTES * n_rows),
                }
            })
            .collect();
        let mut memory = Buffer::reuse(spare, len)?;
        let bytes = memory.bytes_mut();
        for (k, row) in rows.iter().enumerate() {
            for (value, column) in row.as_ref().iter().zip(&columns) {
                let slot = &mut bytes[column.at + k * column.stride..][..column.stride];
                let length = put(value, &column.form, slot);
                let at = column.lengths_at + k * LENGTH_BYTES;
                bytes[at..][..LENGTH_BYTES].copy_from_slice(&length.to_ne_bytes());
            }
        }
        Ok(Parameters {
            columns,
            memory,
            n_rows,
        })
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Returns the buffer of the values, so that the values of later rows can reuse its memory.
    pub(crate) fn into_memory(self) -> Buffer {
        self.memory
    }

    /// Binds all values to `statement`. If the driver refuses a value, returns its index (from 0).
    ///
    /// # Safety
    /// The caller must ensure that `statement` is alive. `self` must outlive the next
    /// execution of `statement`, or the call to `SQLFreeStmt(SQL_RESET_PARAMS)` on it.
    pub(crate) unsafe fn bind_to(
        &mut self,
        statement: Handle,
        shared: &SharedConnection,
    ) -> Result<(), usize> {
        for (index, column) in self.columns.iter_mut().enumerate() {
            let number = u16::try_from(index + 1).map_err(|_| index)?;
            let form = &mut column.form;
            if form.is_null && !form.is_declared && shared.quirks.describe_null {
                // SAFETY: the caller vouches for the statement.
                unsafe { describe(form, statement, number, shared) };
            }
            // SAFETY: the pointers are inside the memory, which the caller keeps alive with `self`;
            // values and lengths of all rows have the layout of `made`.
            let rc = unsafe {
                let data: *mut c_void = match form.is_null {
                    true => std::ptr::null_mut(),
                    false => self.memory.ptr().add(column.at).cast(),
                };
                (shared.manager.call.bind_parameter)(
                    statement,
                    number,
                    ffi::PARAM_INPUT,
                    form.c_type,
                    form.sql_type,
                    form.size,
                    form.digits,
                    data,
                    form.bytes as ffi::Len,
                    self.memory.ptr().add(column.lengths_at).cast(),
                )
            };
            if rc != ffi::SUCCESS && rc != ffi::SUCCESS_WITH_INFO {
                return Err(index);
            }
        }
        Ok(())
    }
}

/// Sets the type, size and digits of `form` to the values that the server reports for the
/// parameter, if it reports them. `form` is the binding of a NULL.
///
/// # Safety
/// The caller must ensure that `statement` is alive and prepared.
unsafe fn describe(
    form: &mut ParameterBinding,
    statement: Handle,
    number: u16,
    shared: &SharedConnection,
) {
    // SAFETY: the caller vouches that the statement is alive and prepared.
    if let Some(described) = unsafe { described(statement, number, shared) } {
        (form.sql_type, form.size, form.digits) = described;
    }
}

/// Returns the SQL type, size and digits of a parameter, if the server reports them.
///
/// # Safety
/// The caller must ensure that `statement` is alive and prepared.
pub(super) unsafe fn described(
    statement: Handle,
    number: u16,
    shared: &SharedConnection,
) -> Option<(i16, ffi::ULen, i16)> {
    let (mut sql_type, mut digits, mut nullable) = (0i16, 0i16, 0i16);
    let mut size: ffi::ULen = 0;
    // SAFETY: the caller vouches for the statement; the out pointers are live locals.
    let rc = unsafe {
        (shared.manager.call.describe_param)(
            statement,
            number,
            &raw mut sql_type,
            &raw mut size,
            &raw mut digits,
            &raw mut nullable,
        )
    };
    (rc == ffi::SUCCESS || rc == ffi::SUCCESS_WITH_INFO).then_some((sql_type, size, digits))
}
