//! State that the serving process shares with the supervisor that starts it.

use std::time::Duration;

use crate::calls::DriverCalls;

/// Shared with the supervisor that starts the process which serves.
#[derive(Clone, Debug, Default)]
pub struct Supervision {
    /// Where the calls of foreign drivers are marked.
    pub calls: Option<DriverCalls>,
    /// Databases, by their indexes in the configuration, that are not used for this time: their
    /// drivers crashed the process. Their queries answer 503.
    pub set_aside: Vec<(usize, Duration)>,
}
