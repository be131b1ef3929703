//! Registers SQL functions, aggregates and collations that the host program (Python) implements.
//! SQLite calls them while it steps a statement.
//!
//! SQLite calls a function on the thread that steps the statement. This thread holds the call lock,
//! so a function that uses the same connection gets an error. A panic in a function is caught
//! before it reaches C.

use std::cmp::Ordering;
use std::ffi::{CString, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use libsqlite3_sys as ffi;

use super::bind::text_of;
use super::call::CallGuard;
use super::callbacks::CallbackState;
use super::error::During;
use crate::error::{Error, ErrorKind};
use crate::value::{Value, exact_number};

/// A scalar SQL function. If the function returns an error, the statement fails with the error's
/// text as its message.
pub type Scalar = dyn Fn(Vec<Value>) -> Result<Value, String> + Send + Sync;

/// The state of an aggregate over one group of rows.
pub trait Aggregate {
    /// Adds a row of the group, with the row's arguments.
    ///
    /// # Errors
    /// The text of the error becomes the message of the statement's error.
    fn step(&mut self, arguments: Vec<Value>) -> Result<(), String>;

    /// Returns the result for all rows of the group.
    ///
    /// # Errors
    /// The text of the error becomes the message of the statement's error.
    fn finish(&mut self) -> Result<Value, String>;
}

/// A function that creates the state of an aggregate for a new group of rows.
pub type NewAggregate = dyn Fn() -> Result<Box<dyn Aggregate>, String> + Send + Sync;

/// A function that compares two strings for a collation.
///
/// If it returns an error, the statement fails with this text as the message.
pub type Collation = dyn Fn(&str, &str) -> Result<Ordering, String> + Send + Sync;

/// A collation, and the callback state of its connection, which receives the collation's error.
struct CollationContext {
    compare: Box<Collation>,
    watch: *const CallbackState,
}

/// A function that can be used in SQL.
pub enum Function {
    /// A scalar function, which is called for each row.
    Scalar {
        /// The SQL function, which the host program (Python) implements.
        call: Box<Scalar>,
        /// `true` if the same arguments always have the same result, so that indexes may use the
        /// function.
        is_deterministic: bool,
    },
    /// An aggregate function, which has one result per group of rows.
    Aggregate(Box<NewAggregate>),
    /// No function: an existing function with the name is removed.
    Removed,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Function::Scalar { .. } => "Scalar",
            Function::Aggregate(_) => "Aggregate",
            Function::Removed => "Removed",
        })
    }
}

fn c_name(name: &str) -> Result<CString, Error> {
    CString::new(name).map_err(|_| {
        Error::new(
            ErrorKind::Programming,
            "the name contains a NUL character".to_owned(),
        )
    })
}

impl CallGuard<'_> {
    /// Creates, replaces or removes the SQL function `name` with `n_arguments` arguments (-1 for
    /// any number).
    pub(super) fn create_function(
        &self,
        name: &str,
        n_arguments: i32,
        function: Function,
    ) -> Result<(), Error> {
        self.check_open()?;
        let name = c_name(name)?;
        let db = self.db();
        // SAFETY: the handle is open, and this thread holds the lock; the name is NUL-terminated.
        // SQLite owns the boxed context from this call on, and drops it by the destructor, also
        // after a failure.
        let code = unsafe {
            let create = |flags, context, call, step, last, destroy| {
                ffi::sqlite3_create_function_v2(
                    db,
                    name.as_ptr(),
                    n_arguments,
                    ffi::SQLITE_UTF8 | flags,
                    context,
                    call,
                    step,
                    last,
                    destroy,
                )
            };
            match function {
                Function::Scalar {
                    call,
                    is_deterministic,
                } => create(
                    if is_deterministic {
                        ffi::SQLITE_DETERMINISTIC
                    } else {
                        0
                    },
                    Box::into_raw(Box::new(call)).cast(),
                    Some(on_call),
                    None,
                    None,
                    Some(on_drop::<Box<Scalar>>),
                ),
                Function::Aggregate(new) => create(
                    0,
                    Box::into_raw(Box::new(new)).cast(),
                    None,
                    Some(on_step),
                    Some(on_finish),
                    Some(on_drop::<Box<NewAggregate>>),
                ),
                Function::Removed => create(0, ptr::null_mut(), None, None, None, None),
            }
        };
        self.check(code)
    }

    /// Creates or replaces a collation; with `None` removes it.
    pub(super) fn create_collation(
        &self,
        name: &str,
        collation: Option<Box<Collation>>,
    ) -> Result<(), Error> {
        self.check_open()?;
        let name = c_name(name)?;
        let (context, compare): (*mut c_void, ffi_compare::Compare) = match collation {
            Some(collation) => (
                Box::into_raw(Box::new(CollationContext {
                    compare: collation,
                    watch: &raw const *self.0.watch,
                }))
                .cast(),
                Some(on_compare as _),
            ),
            None => (ptr::null_mut(), None),
        };
        // SAFETY: as in `create_function`, but after a failure the caller still owns the context.
        unsafe {
            let code = ffi::sqlite3_create_collation_v2(
                self.db(),
                name.as_ptr(),
                ffi::SQLITE_UTF8,
                context,
                compare,
                compare.map(|_| on_drop::<CollationContext> as _),
            );
            if code != ffi::SQLITE_OK && !context.is_null() {
                on_drop::<CollationContext>(context);
            }
            let watch = (&raw const *self.0.watch).cast_mut().cast();
            ffi::sqlite3_commit_hook(self.db(), Some(on_commit), watch);
            self.check(code)
        }
    }

    /// Returns an error unless the code is `SQLITE_OK`.
    ///
    /// # Errors
    /// The error for any code other than `SQLITE_OK`.
    pub(super) fn check(&self, code: c_int) -> Result<(), Error> {
        match code {
            ffi::SQLITE_OK => Ok(()),
            code => Err(self.error(code, During::Step)),
        }
    }
}

mod ffi_compare {
    use std::ffi::{c_int, c_void};

    /// The C type of the function with which a collation compares two strings.
    pub(super) type Compare = Option<
        unsafe extern "C" fn(*mut c_void, c_int, *const c_void, c_int, *const c_void) -> c_int,
    >;
}

/// Frees the context (the boxed closure) of an SQL function; SQLite calls it.
///
/// # Safety
/// The caller must pass a pointer from `Box::into_raw` of a `Box<T>` that has no other user.
unsafe extern "C" fn on_drop<T>(context: *mut c_void) {
    // SAFETY: the caller vouches for the pointer.
    drop(catch_unwind(AssertUnwindSafe(|| unsafe {
        drop(Box::from_raw(context.cast::<T>()));
    })));
}

/// Returns the arguments of a call to an SQL function as values.
///
/// # Safety
/// The caller must pass `n` values of SQLite that do not change during the call.
unsafe fn arguments(n: c_int, values: *mut *mut ffi::sqlite3_value) -> Vec<Value> {
    let n = usize::try_from(n).unwrap_or(0);
    // SAFETY: the caller vouches for the values.
    let of = |i| unsafe { value_of(*values.add(i)) };
    (0..n).map(of).collect()
}

/// Copies a value of SQLite into a [`Value`].
///
/// # Safety
/// The caller must pass a value of SQLite that does not change during the call.
unsafe fn value_of(value: *mut ffi::sqlite3_value) -> Value {
    // SAFETY: the pointer of a text or blob is read before its length, as SQLite requires; it is
    // null only if the value is empty.
    unsafe {
        let bytes = |at: *const u8| match usize::try_from(ffi::sqlite3_value_bytes(value)) {
            Ok(len) if !at.is_null() => std::slice::from_raw_parts(at, len).to_vec(),
            _ => Vec::new(),
        };
        match ffi::sqlite3_value_type(value) {
            ffi::SQLITE_INTEGER => Value::I64(ffi::sqlite3_value_int64(value)),
            ffi::SQLITE_FLOAT => Value::F64(ffi::sqlite3_value_double(value)),
            ffi::SQLITE_TEXT => {
                let text = bytes(ffi::sqlite3_value_text(value));
                Value::Text(String::from_utf8_lossy(&text).into_owned())
            }
            ffi::SQLITE_BLOB => Value::Bytes(bytes(ffi::sqlite3_value_blob(value).cast())),
            _ => Value::Null,
        }
    }
}

/// Passes the result or the error of a function to SQLite.
///
/// # Safety
/// The caller must pass the context of an active call.
unsafe fn give(context: *mut ffi::sqlite3_context, result: Result<Value, String>) {
    // SQLite has no decimals. A decimal result is converted to the integer or float that is exactly
    // equal; without such a number, the call is an error.
    let result = result.and_then(|value| match value {
        Value::Decimal(digits) => exact_number(&digits)
            .ok_or_else(|| format!("SQLite has no number that is exactly {digits}")),
        value => Ok(value),
    });
    // SAFETY: the caller vouches for the context; SQLite copies texts and bytes.
    unsafe {
        match result {
            Ok(Value::Null) => ffi::sqlite3_result_null(context),
            Ok(Value::Bool(b)) => ffi::sqlite3_result_int64(context, i64::from(b)),
            Ok(Value::I64(i)) => ffi::sqlite3_result_int64(context, i),
            Ok(Value::F64(f)) => ffi::sqlite3_result_double(context, f),
            Ok(Value::Bytes(b)) => ffi::sqlite3_result_blob64(
                context,
                b.as_ptr().cast(),
                b.len() as u64,
                ffi::SQLITE_TRANSIENT(),
            ),
            Ok(value) => {
                let text = text_of(&value);
                ffi::sqlite3_result_text64(
                    context,
                    text.as_ptr().cast(),
                    text.len() as u64,
                    ffi::SQLITE_TRANSIENT(),
                    ffi::SQLITE_UTF8 as u8,
                );
            }
            Err(message) => {
                let len = c_int::try_from(message.len()).unwrap_or(c_int::MAX);
                ffi::sqlite3_result_error(context, message.as_ptr().cast(), len);
            }
        }
    }
}

/// Returns the result of `work`; a panic in `work` is returned as an error.
fn caught<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err("a function panicked".to_owned()))
}

/// Calls a scalar function for one row; SQLite calls this function.
///
/// # Safety
/// The caller must be SQLite, for a function whose context is a [`Scalar`].
unsafe extern "C" fn on_call(
    context: *mut ffi::sqlite3_context,
    n: c_int,
    values: *mut *mut ffi::sqlite3_value,
) {
    // SAFETY: the caller vouches for the context, which lives as long as the function.
    unsafe {
        let call = &*ffi::sqlite3_user_data(context).cast::<Box<Scalar>>();
        let arguments = arguments(n, values);
        give(context, caught(|| call(arguments)));
    }
}

/// SQLite's memory for one group of rows: a pointer to the state of the aggregate. It is null
/// before the group's first row.
type AggregateState = *mut Box<dyn Aggregate>;

/// Adds a row to the aggregate state of its group; SQLite calls this function.
///
/// # Safety
/// The caller must be SQLite, for a function whose context is a [`NewAggregate`].
unsafe extern "C" fn on_step(
    context: *mut ffi::sqlite3_context,
    n: c_int,
    values: *mut *mut ffi::sqlite3_value,
) {
    // SAFETY: the caller vouches for the context. SQLite zeroes the memory of a group, and
    // afterwards only this function stores a pointer in it; the address is null if SQLite has no
    // memory.
    unsafe {
        let at = ffi::sqlite3_aggregate_context(context, size_of::<AggregateState>() as c_int);
        let Some(state) = at.cast::<AggregateState>().as_mut() else {
            ffi::sqlite3_result_error_nomem(context);
            return;
        };
        let arguments = arguments(n, values);
        let done = caught(|| {
            if state.is_null() {
                let new = &*ffi::sqlite3_user_data(context).cast::<Box<NewAggregate>>();
                *state = Box::into_raw(Box::new(new()?));
            }
            (**state).step(arguments)
        });
        if let Err(message) = done {
            give(context, Err(message));
        }
    }
}

/// Passes the result of a group to SQLite, and frees the group's state; SQLite calls this function.
///
/// # Safety
/// The requirements of [`on_step`] apply. SQLite calls this function once for each group,
/// even after an error.
unsafe extern "C" fn on_finish(context: *mut ffi::sqlite3_context) {
    // SAFETY: as in `on_step`; with a size of 0 SQLite allocates no memory, so the address is null
    // for a group without rows.
    unsafe {
        let at = ffi::sqlite3_aggregate_context(context, 0).cast::<AggregateState>();
        let state = at.as_mut().filter(|state| !state.is_null());
        let result = caught(|| {
            let mut aggregate = match state {
                Some(state) => *Box::from_raw(std::mem::replace(state, ptr::null_mut())),
                None => (*ffi::sqlite3_user_data(context).cast::<Box<NewAggregate>>())()?,
            };
            aggregate.finish()
        });
        give(context, result);
    }
}

/// Returns a number other than 0, which rolls back the transaction, if a collation has failed in the
/// statement that commits it; SQLite calls this function before each commit.
///
/// # Safety
/// The caller must be SQLite, with the callback state of the connection.
unsafe extern "C" fn on_commit(watch: *mut c_void) -> c_int {
    // SAFETY: the callback state lives as long as the connection.
    let watch = unsafe { &*watch.cast::<CallbackState>() };
    c_int::from(watch.has_collation_error())
}

/// Compares two strings with a collation; SQLite calls this function.
///
/// # Safety
/// The caller must be SQLite, for a collation whose context is a [`CollationContext`].
unsafe extern "C" fn on_compare(
    context: *mut c_void,
    n_left: c_int,
    left: *const c_void,
    n_right: c_int,
    right: *const c_void,
) -> c_int {
    // SAFETY: the caller vouches for the context; the texts do not change during the call. The
    // callback state lives as long as the connection, which SQLite is stepping.
    unsafe {
        let CollationContext { compare, watch } = &*context.cast();
        let watch = &**watch;
        let text = |at: *const c_void, n: c_int| match usize::try_from(n) {
            Ok(n) if n > 0 => String::from_utf8_lossy(std::slice::from_raw_parts(at.cast(), n)),
            _ => "".into(),
        };
        let (left, right) = (text(left, n_left), text(right, n_right));
        if !watch.has_collation_error() {
            match caught(|| compare(&left, &right)) {
                Ok(order) => return order as c_int,
                Err(message) => watch.set_collation_error(message),
            }
        }
        // The statement fails after this step. Until then, the bytes are compared, which is a
        // consistent order.
        left.cmp(&right) as c_int
    }
}
