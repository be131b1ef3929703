//! Query results as files.
#![deny(unsafe_code)]
