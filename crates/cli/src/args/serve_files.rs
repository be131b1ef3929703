//! The arguments of `onecopy serve-files`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// `onecopy serve-files`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  onecopy serve-files public
  onecopy serve-files recordings --listing --bind 0.0.0.0:8000
  onecopy serve-files dist --precompressed --cache-control 'public, max-age=3600'

No file outside of FOLDER is served, not through `..` or symbolic links. Range requests are supported, so players can
seek in videos, and interrupted downloads can be resumed. Ctrl-C stops the server after running downloads, at most
30 s later; a second Ctrl-C stops it at once.")]
pub struct ServeFiles {
    /// The folder
    pub folder: PathBuf,

    /// Address and port to listen on, or unix:PATH; port 0 chooses a free port
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "ONECOPY_BIND",
        default_value = "127.0.0.1:8000"
    )]
    pub bind: String,

    /// If a folder has no index.html, answer a request for it with a list of its files
    #[arg(long)]
    pub listing: bool,

    /// Also serve files whose names begin with a dot
    #[arg(long)]
    pub hidden: bool,

    /// Send NAME.br, NAME.zst or NAME.gz instead of NAME to clients that accept the coding, unless
    /// it is older than NAME
    #[arg(long)]
    pub precompressed: bool,

    /// The `Cache-Control` field for all files
    #[arg(long, value_name = "VALUE")]
    pub cache_control: Option<String>,

    /// Serve over TLS with this certificate chain in PEM, the server's certificate first
    #[arg(long, value_name = "FILE")]
    pub certfile: Option<PathBuf>,

    /// The private key in PEM [default: in --certfile]
    #[arg(long, value_name = "FILE", requires = "certfile")]
    pub keyfile: Option<PathBuf>,

    /// An additional permitted value of the `Host` field on a loopback address, for a reverse proxy;
    /// may be repeated
    #[arg(long = "host", value_name = "NAME")]
    pub hosts: Vec<String>,

    /// Write a log line for each request to FILE; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub access_log: Option<PathBuf>,

    /// The format of the access log
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        default_value = "common",
        requires = "access_log"
    )]
    pub access_log_format: LogFormat,
}

/// The format of the access log (`--access-log-format`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Apache's common format
    Common,
    /// Apache's combined format, with Referer and User-Agent
    Combined,
    /// One JSON object per line
    Json,
}
