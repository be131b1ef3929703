//! The arguments of the commands that read all rows of a statement.

use std::time::Duration;

use clap::Args;
use onecopy_text::Policy;

use super::export::ProgressForm;
use super::values::{ROW_POLICIES, policies, seconds};
use crate::row_progress::Reporting;

/// The arguments that `export` and `copy` have in common.
#[derive(Args, Clone, Copy, Debug)]
pub struct RowsArgs {
    /// How the progress is reported on stderr
    #[arg(long, value_enum, value_name = "HOW", default_value = "auto")]
    pub progress: ProgressForm,

    /// Cancel the command after this number of seconds
    #[arg(long, value_name = "S", value_parser = seconds, env = "ONECOPY_TIME_LIMIT")]
    pub time_limit: Option<Duration>,

    /// The treatment of malformed text in a cell
    #[arg(long, value_parser = policies(ROW_POLICIES), value_name = "HOW", default_value = "strict")]
    pub errors: Policy,

    /// Print only errors on stderr
    #[arg(short, long)]
    pub quiet: bool,
}

impl RowsArgs {
    /// Returns the settings that determine how the command reports its progress and its result.
    pub(crate) fn reporting(&self) -> Reporting {
        Reporting {
            form: self.progress,
            is_quiet: self.quiet,
        }
    }
}
