//! Any ODBC driver, through a driver manager loaded at run time.

use crate::connect::ConnectOptions;
use crate::error::{Error, ErrorKind};
use crate::value::Value;

include!("../stub.rs");
