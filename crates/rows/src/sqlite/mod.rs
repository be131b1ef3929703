//! The embedded database.

use crate::connect::ConnectOptions;
use crate::error::{Error, ErrorKind};
use crate::value::Value;

include!("../stub.rs");
