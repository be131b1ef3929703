//! What `send` and `receive` can be told.

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

The other side runs `onecopy receive`, which prints what to give here. Files are hashed (BLAKE3) while they go, and each block
is checked when it comes. After a break the same command goes on where it stopped. Symbolic links that are named are followed;
in folders they are left out, and told of.")]
pub struct Send {
    /// Files and folders
    #[arg(required = true)]
    pub files: Vec<PathBuf>,

    /// Where the receiver listens
    #[arg(long, value_name = "HOST:PORT")]
    pub to: String,

    /// The code that the receiver has printed; what stands behind its dot is the receiver's certificate, and means TLS
    #[arg(long, value_parser = code, env = "ONECOPY_CODE", hide_env_values = true)]
    pub code: Option<Code>,

    /// Send without hashes: nothing is checked then but the length
    #[arg(long)]
    pub no_hash: bool,

    /// How many times to go on by itself after a break
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub retries: u32,

    /// Give up after so many seconds without a sign of life
    #[arg(long, value_name = "S", value_parser = crate::args::seconds, default_value = "60")]
    pub timeout: Duration,

    /// Over loopback too as to another machine: the kernel takes what is hashed from the file, not from where it was read
    #[arg(long, hide = true)]
    pub by_sendfile: bool,

    /// Bytes of a block as a power of two: how much is checked at once
    #[arg(long, hide = true, value_parser = clap::value_parser!(u8).range(10..=22), default_value_t = onecopy_transfer::sender::BLOCK_LOG2)]
    pub block_log2: u8,

    /// Say nothing on stderr but errors
    #[arg(short, long)]
    pub quiet: bool,
}

/// `onecopy receive`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  onecopy receive inbox
  onecopy receive inbox --bind 0.0.0.0:7117 --tls

At an address that other machines reach it wants a one-time code, which it prints, and `--tls`. Three wrong codes end it.
A file appears under its name when it is whole, was checked and is on the disk. What a broken transfer leaves is kept in
FOLDER/.onecopy-receive, and the next one goes on there. Nothing is ever written outside of FOLDER.")]
pub struct Receive {
    /// Where files go; it is made where it is not there
    #[arg(default_value = ".")]
    pub folder: PathBuf,

    /// Address and port to listen at; port 0: any that is free
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:7117",
        env = "ONECOPY_RECEIVE_BIND"
    )]
    pub bind: String,

    /// Want the one-time code even on loopback
    #[arg(long)]
    pub code: bool,

    /// Encrypt, with a certificate made on the spot, which the code names
    #[arg(long)]
    pub tls: bool,

    /// Replace files that are there
    #[arg(long)]
    pub replace: bool,

    /// Go on listening when a transfer is done
    #[arg(long)]
    pub keep: bool,

    /// The most bytes one transfer may bring; K, M, G and T are powers of 1024
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "1T")]
    pub max_bytes: u64,

    /// The most files and folders one transfer may bring
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub max_files: u64,

    /// Give a transfer up after so many seconds without a sign of life
    #[arg(long, value_name = "S", value_parser = crate::args::seconds, default_value = "60")]
    pub timeout: Duration,

    /// Say nothing on stderr but errors, the address and the code
    #[arg(short, long)]
    pub quiet: bool,
}

fn code(text: &str) -> Result<Code, String> {
    // The text is not repeated: it is a secret, if a wrong one.
    Code::parse(text).ok_or_else(|| {
        "no code\ngive what the receiver has printed, whole: eight letters, and with TLS what stands behind the dot"
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
        .ok_or_else(|| "more than can be counted".to_owned())
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
