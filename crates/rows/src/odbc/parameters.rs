//! Parameter values to buffers that a driver reads: bound, never pasted.
//!
//! The values of one execution, or of many rows: column by column then, each column in one form, which takes the widest of its
//! values. A driver reads them in one call.

use std::ffi::c_void;

use super::binding::{ParameterBinding, put};
use super::ffi::{self, Handle};
use super::shared::Shared;
use crate::error::Error;
use crate::odbc::block::buffer::Buffer;
use crate::value::Value;

/// Memory that the values of many rows take at most, unless one row takes more.
const SLICE_BYTES: usize = 1 << 20;

/// One parameter of all rows.
struct Column {
    form: ParameterBinding,
    /// Where its values start in the memory, and how far they are apart.
    at: usize,
    stride: usize,
    /// Where its lengths start.
    lengths_at: usize,
}

/// The values of one execution or of several rows, alive until the driver has read them.
pub(crate) struct Parameters {
    columns: Vec<Column>,
    memory: Buffer,
    n_rows: usize,
}

const LENGTH_BYTES: usize = size_of::<ffi::Len>();

impl Parameters {
    /// Buffers for the values of one execution.
    ///
    /// # Errors
    /// Without memory (so below).
    pub(crate) fn new(values: &[Value], shared: &Shared) -> Result<Parameters, Error> {
        let forms = values.iter();
        let forms = forms.map(|v| ParameterBinding::of(v, shared.width, shared.quirks));
        Parameters::made(&[values], forms.collect(), None)
    }

    /// Buffers for the first of these rows: as many as have one form in each column, and fit; at least one. `spare` is memory of
    /// those before.
    pub(crate) fn of_rows<R: AsRef<[Value]>>(
        rows: &[R],
        shared: &Shared,
        spare: Option<Buffer>,
    ) -> Result<Parameters, Error> {
        let of = |value: &Value| ParameterBinding::of(value, shared.width, shared.quirks);
        let mut forms: Vec<ParameterBinding> = rows[0].as_ref().iter().map(of).collect();
        // Those of the next row and all before it, where it goes with them.
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
        let columns: Vec<Column> = forms
            .into_iter()
            .map(|form| {
                let stride = form.bytes.max(1);
                Column {
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

    /// Rows of values that stand here.
    pub(crate) fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// The memory, for the next rows.
    pub(crate) fn into_memory(self) -> Buffer {
        self.memory
    }

    /// Binds all of them to `statement`; returns the number (from 0) of the one that the driver refuses.
    ///
    /// # Safety
    /// `statement` is alive, and `self` outlives its next execution or `SQLFreeStmt(SQL_RESET_PARAMS)`.
    pub(crate) unsafe fn bind_to(
        &mut self,
        statement: Handle,
        shared: &Shared,
    ) -> Result<(), usize> {
        for (index, column) in self.columns.iter_mut().enumerate() {
            let number = u16::try_from(index + 1).map_err(|_| index)?;
            let form = &mut column.form;
            if form.is_null && !form.is_told && shared.quirks.describe_null {
                // SAFETY: the caller vouches for the statement.
                unsafe { describe(form, statement, number, shared) };
            }
            // SAFETY: places inside of the memory, which the caller keeps alive with `self`: values and lengths of all rows, as
            // `made` has laid them out.
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

/// Takes a NULL's type from the server, where it tells.
///
/// # Safety
/// `statement` is alive and prepared.
unsafe fn describe(form: &mut ParameterBinding, statement: Handle, number: u16, shared: &Shared) {
    // SAFETY: the duty of the caller.
    if let Some(told) = unsafe { described(statement, number, shared) } {
        (form.sql_type, form.size, form.digits) = told;
    }
}

/// What the server takes a parameter for, where it tells: its SQL type, size and digits.
///
/// # Safety
/// `statement` is alive and prepared.
pub(super) unsafe fn described(
    statement: Handle,
    number: u16,
    shared: &Shared,
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
