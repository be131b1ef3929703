//! Functions, aggregates and collations of the host, which SQLite calls while a statement runs.
//!
//! They run on the thread that steps, which holds the connection's call lock: a call on the same
//! connection from inside is an error. A panic does not cross into C.

use std::cell::Cell;
use std::cmp::Ordering;
use std::ffi::{CString, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use libsqlite3_sys as ffi;

use super::bind::text_of;
use super::call::CallGuard;
use super::error::During;
use crate::error::{Error, ErrorKind};
use crate::value::{Value, exact_number};

/// A scalar function. Its error is the message of the statement's error.
pub type Scalar = dyn Fn(Vec<Value>) -> Result<Value, String> + Send + Sync;

/// The state of an aggregate over one group of rows.
pub trait Aggregate {
    /// Takes the arguments of a row.
    ///
    /// # Errors
    /// The message of the statement's error.
    fn step(&mut self, arguments: Vec<Value>) -> Result<(), String>;

    /// The result for the rows so far.
    ///
    /// # Errors
    /// As [`Aggregate::step`].
    fn finish(&mut self) -> Result<Value, String>;
}

/// Makes the state for a group.
pub type NewAggregate = dyn Fn() -> Result<Box<dyn Aggregate>, String> + Send + Sync;

/// An order of texts.
pub type Collation = dyn Fn(&str, &str) -> Ordering + Send + Sync;

/// A function that SQL may call.
pub enum Function {
    /// One call for each row.
    Scalar {
        /// The function itself.
        call: Box<Scalar>,
        /// The same arguments always give the same result: it may be used in indexes.
        is_deterministic: bool,
    },
    /// One result for each group of rows.
    Aggregate(Box<NewAggregate>),
    /// The function is removed.
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
            "the name holds a NUL character".to_owned(),
        )
    })
}

impl CallGuard<'_> {
    /// Creates, replaces or removes the function of `name` that takes `n_arguments` (-1: any number).
    pub(super) fn create_function(
        &self,
        name: &str,
        n_arguments: i32,
        function: Function,
    ) -> Result<(), Error> {
        self.check_open()?;
        let name = c_name(name)?;
        let db = self.db();
        // SAFETY: the handle is open and the lock held; the name is NUL-terminated. SQLite owns the
        // boxed context from the call on, and drops it by the destructor, after a failure too.
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

    /// Creates or replaces a collation, or removes it.
    pub(super) fn create_collation(
        &self,
        name: &str,
        collation: Option<Box<Collation>>,
    ) -> Result<(), Error> {
        self.check_open()?;
        let name = c_name(name)?;
        let (context, compare): (*mut c_void, ffi_compare::Compare) = match collation {
            Some(collation) => (
                Box::into_raw(Box::new(collation)).cast(),
                Some(on_compare as _),
            ),
            None => (ptr::null_mut(), None),
        };
        // SAFETY: as in `create_function`; but after a failure the context is still ours.
        unsafe {
            let code = ffi::sqlite3_create_collation_v2(
                self.db(),
                name.as_ptr(),
                ffi::SQLITE_UTF8,
                context,
                compare,
                compare.map(|_| on_drop::<Box<Collation>> as _),
            );
            if code != ffi::SQLITE_OK && !context.is_null() {
                on_drop::<Box<Collation>>(context);
            }
            self.check(code)
        }
    }

    /// # Errors
    /// The error of a code other than `SQLITE_OK`.
    pub(super) fn check(&self, code: c_int) -> Result<(), Error> {
        match code {
            ffi::SQLITE_OK => Ok(()),
            code => Err(self.error(code, During::Step)),
        }
    }
}

mod ffi_compare {
    use std::ffi::{c_int, c_void};

    /// The comparison of a collation, as SQLite calls it.
    pub(super) type Compare = Option<
        unsafe extern "C" fn(*mut c_void, c_int, *const c_void, c_int, *const c_void) -> c_int,
    >;
}

/// Drops a context.
///
/// # Safety
/// `context` came from `Box::into_raw` of a `Box<T>`, and is used by nobody else any more.
unsafe extern "C" fn on_drop<T>(context: *mut c_void) {
    // SAFETY: as the caller vouches.
    drop(catch_unwind(AssertUnwindSafe(|| unsafe {
        drop(Box::from_raw(context.cast::<T>()));
    })));
}

/// The arguments of a call.
///
/// # Safety
/// `values` are `n` values of SQLite's, not changed meanwhile.
unsafe fn arguments(n: c_int, values: *mut *mut ffi::sqlite3_value) -> Vec<Value> {
    let n = usize::try_from(n).unwrap_or(0);
    // SAFETY: as the caller vouches.
    let of = |i| unsafe { value_of(*values.add(i)) };
    (0..n).map(of).collect()
}

/// # Safety
/// `value` is a value of SQLite's, not changed meanwhile.
unsafe fn value_of(value: *mut ffi::sqlite3_value) -> Value {
    // SAFETY: the pointer of a text or blob is taken before its length, as SQLite requires; it is
    // null only for an empty one.
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

/// Gives a result or an error to SQLite.
///
/// # Safety
/// `context` is that of a call under way.
unsafe fn give(context: *mut ffi::sqlite3_context, result: Result<Value, String>) {
    // As a parameter: SQLite has no decimals.
    let result = result.and_then(|value| match value {
        Value::Decimal(digits) => exact_number(&digits)
            .ok_or_else(|| format!("SQLite has no number that is exactly {digits}")),
        value => Ok(value),
    });
    // SAFETY: as the caller vouches; texts and bytes are copied.
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

thread_local! { static N_CALLBACKS: Cell<u32> = const { Cell::new(0) } }

/// Whether this thread is in a function or collation that a statement calls, and so holds its connection's lock.
pub(super) fn is_in_callback() -> bool {
    N_CALLBACKS.get() > 0
}

/// The result of a callback; `None` if it panicked.
fn called<T>(callback: impl FnOnce() -> T) -> Option<T> {
    N_CALLBACKS.set(N_CALLBACKS.get() + 1);
    let result = catch_unwind(AssertUnwindSafe(callback));
    N_CALLBACKS.set(N_CALLBACKS.get() - 1);
    result.ok()
}

/// The result of `work`; a panic is an error.
fn caught<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    called(work).unwrap_or_else(|| Err("a function panicked".to_owned()))
}

/// # Safety
/// Called by SQLite, for a function with a [`Scalar`] as its context.
unsafe extern "C" fn on_call(
    context: *mut ffi::sqlite3_context,
    n: c_int,
    values: *mut *mut ffi::sqlite3_value,
) {
    // SAFETY: as the caller vouches; the context lives as long as the function.
    unsafe {
        let call = &*ffi::sqlite3_user_data(context).cast::<Box<Scalar>>();
        let arguments = arguments(n, values);
        give(context, caught(|| call(arguments)));
    }
}

/// The state of a group: null before its first row.
type State = *mut Box<dyn Aggregate>;

/// # Safety
/// Called by SQLite, for a function with a [`NewAggregate`] as its context.
unsafe extern "C" fn on_step(
    context: *mut ffi::sqlite3_context,
    n: c_int,
    values: *mut *mut ffi::sqlite3_value,
) {
    // SAFETY: as the caller vouches. The memory of a group is zeroed, and holds a pointer of ours
    // after that; it is null without memory.
    unsafe {
        let at = ffi::sqlite3_aggregate_context(context, size_of::<State>() as c_int);
        let Some(state) = at.cast::<State>().as_mut() else {
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

/// # Safety
/// As [`on_step`]. It is called once for each group, after an error too.
unsafe extern "C" fn on_finish(context: *mut ffi::sqlite3_context) {
    // SAFETY: as in `on_step`; with a size of 0 no memory is made, so it is null for a group without rows.
    unsafe {
        let at = ffi::sqlite3_aggregate_context(context, 0).cast::<State>();
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

/// # Safety
/// Called by SQLite, for a collation with a [`Collation`] as its context.
unsafe extern "C" fn on_compare(
    context: *mut c_void,
    n_left: c_int,
    left: *const c_void,
    n_right: c_int,
    right: *const c_void,
) -> c_int {
    // SAFETY: as the caller vouches; the texts are not changed meanwhile.
    unsafe {
        let compare = &*context.cast::<Box<Collation>>();
        let text = |at: *const c_void, n: c_int| match usize::try_from(n) {
            Ok(n) if n > 0 => String::from_utf8_lossy(std::slice::from_raw_parts(at.cast(), n)),
            _ => "".into(),
        };
        let (left, right) = (text(left, n_left), text(right, n_right));
        let order = called(|| compare(&left, &right));
        // A collation has no way to fail: the bytes decide then.
        order.unwrap_or_else(|| left.cmp(&right)) as c_int
    }
}
