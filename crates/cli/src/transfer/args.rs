//! The arguments of `send` and `receive`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use onecopy_transfer::Code;

/// `onecopy send`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  onecopy send report.csv photos/ --to 127.0.0.1:7117
  onecopy send backup.tar --to store.example:7117 --code 4k7p-9d2q.0rvh…

The other machine runs `onecopy receive`, which prints the values of --to and --code. Files are hashed (BLAKE3) while
they are sent, and the receiver verifies each block. After an interruption the same command resumes the transfer.
Symbolic links on the command line are followed; those in folders are skipped with a notice.")]
pub struct Send {
    /// Files and folders to send
    #[arg(required = true)]
    pub files: Vec<PathBuf>,

    /// The address of the receiver
    #[arg(long, value_name = "HOST:PORT")]
    pub to: String,

    /// The code that the receiver printed; the part after the dot identifies the receiver's
    /// certificate, and enables TLS
    #[arg(long, value_parser = code, env = "ONECOPY_CODE", hide_env_values = true)]
    pub code: Option<Code>,

    /// Send without hashes; the receiver then verifies only the length
    #[arg(long)]
    pub no_hash: bool,

    /// Number of times an interrupted transfer is resumed automatically
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub retries: u32,

    /// Fail after this number of seconds without data from the receiver
    #[arg(long, value_name = "S", value_parser = crate::args::seconds, default_value = "60")]
    pub timeout: Duration,

    /// Use sendfile over loopback too, instead of sending the bytes that were read for the hash
    #[arg(long, hide = true)]
    pub by_sendfile: bool,

    /// The base-2 logarithm of the size in bytes of a verified block
    #[arg(long, hide = true, value_parser = clap::value_parser!(u8).range(10..=22), default_value_t = onecopy_transfer::sender::BLOCK_LOG2)]
    pub block_log2: u8,

    /// Print only errors on stderr
    #[arg(short, long)]
    pub quiet: bool,
}

/// `onecopy receive`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  onecopy receive inbox
  onecopy receive inbox --bind 0.0.0.0:7117 --tls

On an address that other machines can reach, a one-time code (which is printed) and `--tls` are required. Three wrong
codes end the command. A file gets its name when it is complete, verified and synced. Parts of an interrupted transfer
are kept in FOLDER/.onecopy-receive, and the next transfer resumes them. Nothing is written outside of FOLDER.")]
pub struct Receive {
    /// The folder for received files; it is created if it does not exist
    #[arg(default_value = ".")]
    pub folder: PathBuf,

    /// Address and port to listen on; port 0 chooses a free port
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:7117",
        env = "ONECOPY_RECEIVE_BIND"
    )]
    pub bind: String,

    /// Require the one-time code even on loopback
    #[arg(long)]
    pub code: bool,

    /// Use TLS with a temporary certificate, which the code identifies
    #[arg(long)]
    pub tls: bool,

    /// Replace existing files
    #[arg(long)]
    pub replace: bool,

    /// Continue listening after a transfer
    #[arg(long)]
    pub keep: bool,

    /// Largest size of a transfer in bytes; K, M, G and T are powers of 1024
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "1T")]
    pub max_bytes: u64,

    /// Largest number of files and folders of a transfer
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub max_files: u64,

    /// Abort a transfer after this number of seconds without data from the sender
    #[arg(long, value_name = "S", value_parser = crate::args::seconds, default_value = "60")]
    pub timeout: Duration,

    /// Print only errors, the address and the code on stderr
    #[arg(short, long)]
    pub quiet: bool,
}

fn code(text: &str) -> Result<Code, String> {
    // The text is not repeated in the message, because even a wrong code is a secret.
    Code::parse(text).ok_or_else(|| {
        "not a code\ngive the whole code that the receiver printed: eight letters, and with TLS the part after the dot"
            .to_owned()
    })
}

fn size(text: &str) -> Result<u64, String> {
    let upper = text.to_ascii_uppercase();
    let (digits, shift) = match upper.as_bytes().last() {
        Some(b'K') => (&upper[..upper.len() - 1], 10),
        Some(b'M') => (&upper[..upper.len() - 1], 20),
        Some(b'G') => (&upper[..upper.len() - 1], 30),
        Some(b'T') => (&upper[..upper.len() - 1], 40),
        _ => (upper.as_str(), 0),
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| "not a number of bytes, as `500M` or `20G`".to_owned())?;
    number
        .checked_mul(1 << shift)
        .ok_or_else(|| "too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        assert_eq!(size("17"), Ok(17));
        assert_eq!(size("2k"), Ok(2048));
        assert_eq!(size("1T"), Ok(1 << 40));
        for wrong in ["", "K", "-1", "1.5G", "99999999999T"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
