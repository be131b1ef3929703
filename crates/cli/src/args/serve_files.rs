//! What `onecopy serve-files` can be told.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// `onecopy serve-files`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  onecopy serve-files public
  onecopy serve-files recordings --listing --bind 0.0.0.0:8000
  onecopy serve-files dist --precompressed --cache-control 'public, max-age=3600'

Neither `..` nor a symbolic link leads out of FOLDER. Ranges are answered, so videos can be sought in and downloads go on where
they broke off. Ctrl-C stops: downloads under way get 30 s, a second one ends them.")]
pub struct ServeFiles {
    /// The folder
    pub folder: PathBuf,

    /// Address and port to listen at, or unix:PATH; port 0 takes a free one
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "ONECOPY_BIND",
        default_value = "127.0.0.1:8000"
    )]
    pub bind: String,

    /// Answer folders without an index.html with the names in them
    #[arg(long)]
    pub listing: bool,

    /// Serve names that begin with a dot too
    #[arg(long)]
    pub hidden: bool,

    /// Send NAME.br, NAME.zst or NAME.gz in place of NAME to clients that take it, unless it is older
    #[arg(long)]
    pub precompressed: bool,

    /// The value of Cache-Control of all files
    #[arg(long, value_name = "VALUE")]
    pub cache_control: Option<String>,

    /// Certificates in PEM, the server's own first: the server speaks TLS
    #[arg(long, value_name = "FILE")]
    pub certfile: Option<PathBuf>,

    /// The certificate's key in PEM [default: it stands in --certfile]
    #[arg(long, value_name = "FILE", requires = "certfile")]
    pub keyfile: Option<PathBuf>,

    /// On a loopback address: a further value of Host to answer to, for a proxy in front; may be given many times
    #[arg(long = "host", value_name = "NAME")]
    pub hosts: Vec<String>,

    /// Write a line for each request; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub access_log: Option<PathBuf>,

    /// The form of such a line
    #[arg(
        long,
        value_enum,
        value_name = "FORMAT",
        default_value = "common",
        requires = "access_log"
    )]
    pub access_log_format: LogFormat,
}

/// The form of a line of the access log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Apache's
    Common,
    /// That, with Referer and User-Agent
    Combined,
    /// An object
    Json,
}
