//! A file to a file.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{SeekFrom, copy_file_range, ioctl_ficlone, seek, sendfile};
use rustix::io::Errno;

use super::{BUFFER_BYTES, Moved, is_unsupported};
use crate::{AtomicFile, OnFailure};

/// Bytes that one call is asked to move.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// How the bytes of a file go to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The file system moves or shares them.
    Range,
    /// The kernel moves them from page to page: between file systems.
    Sendfile,
    /// Through a buffer.
    Buffer,
}

/// Copies all of `from` into `to`, which is empty: shared blocks where the file system can (FICLONE), else `copy_file_range(2)`,
/// else `sendfile(2)`, else a buffer. Holes stay holes. `go_on` is told the place reached.
///
/// Copies: none in this process; two through a buffer.
///
/// # Errors
/// The system's, and those of `go_on`. A file that became shorter meanwhile gives as many bytes as it had.
pub fn copy_contents(
    from: &File,
    to: &File,
    mut go_on: impl FnMut(u64) -> io::Result<()>,
) -> io::Result<Moved> {
    let len_bytes = from.metadata()?.len();
    if len_bytes > 0 && ioctl_ficlone(to, from).is_ok() {
        // It shares what the file had at that moment.
        return Ok(Moved {
            n_bytes: to.metadata()?.len(),
            n_copied: 0,
        });
    }
    let mut moved = Moved::default();
    // Files of /proc say that they are empty and are not.
    let mut way = match len_bytes {
        0 => Way::Buffer,
        _ => Way::Range,
    };
    let mut buffer = Vec::new();
    let mut at = 0;
    while at < len_bytes || len_bytes == 0 {
        let (start, end) = match len_bytes {
            0 => (at, u64::MAX),
            _ => match next_data(from, at, len_bytes)? {
                Some(range) => range,
                None => break,
            },
        };
        at = start;
        while at < end {
            let step = piece(from, to, at, (end - at).min(MOST_BYTES), way, &mut buffer);
            match step {
                Ok(0) => {
                    moved.n_bytes = at;
                    to.set_len(at)?;
                    return Ok(moved);
                }
                Ok(n) => {
                    at += n;
                    moved.n_copied += if way == Way::Buffer { n } else { 0 };
                }
                Err(Errno::INTR) => {}
                Err(e) if is_unsupported(e) && way != Way::Buffer => {
                    way = match way {
                        Way::Range => Way::Sendfile,
                        _ => Way::Buffer,
                    };
                }
                Err(e) => return Err(e.into()),
            }
            go_on(at)?;
        }
    }
    // A hole at the end is a length alone.
    to.set_len(len_bytes)?;
    moved.n_bytes = len_bytes;
    Ok(moved)
}

fn piece(
    from: &File,
    to: &File,
    at: u64,
    most_bytes: u64,
    way: Way,
    buffer: &mut Vec<u8>,
) -> Result<u64, Errno> {
    let most = usize::try_from(most_bytes).unwrap_or(usize::MAX);
    let (mut read_at, mut write_at) = (at, at);
    let n = match way {
        Way::Range => copy_file_range(from, Some(&mut read_at), to, Some(&mut write_at), most)?,
        Way::Sendfile => {
            seek(to.as_fd(), SeekFrom::Start(at))?;
            sendfile(to, from, Some(&mut read_at), most)?
        }
        Way::Buffer => {
            buffer.resize(BUFFER_BYTES, 0);
            let errno = |e: io::Error| Errno::from_io_error(&e).unwrap_or(Errno::IO);
            let most = most.min(buffer.len());
            let n = from.read_at(&mut buffer[..most], at).map_err(errno)?;
            to.write_all_at(&buffer[..n], at).map_err(errno)?;
            n
        }
    };
    Ok(n as u64)
}

/// The next bytes of `file` from `at` on that are no hole: from, to. `None` where there are none any more.
fn next_data(file: &File, at: u64, len_bytes: u64) -> io::Result<Option<(u64, u64)>> {
    let start = match seek(file, SeekFrom::Data(at)) {
        Ok(start) => start,
        // All the rest is a hole.
        Err(Errno::NXIO) => return Ok(None),
        // Nobody knows: all is data.
        Err(e) if is_unsupported(e) => return Ok(Some((at, len_bytes))),
        Err(e) => return Err(e.into()),
    };
    let end = seek(file, SeekFrom::Hole(start)).unwrap_or(len_bytes);
    match start < len_bytes {
        true => Ok(Some((start, end.clamp(start, len_bytes)))),
        false => Ok(None),
    }
}

/// Copies the file at `from` to `to`, which appears whole or not at all, with the permissions of `from` where it is new, and with
/// its own where it is replaced. `go_on` is told the place reached, and may refuse to.
///
/// # Errors
/// The system's and those of [`AtomicFile`], `InvalidInput` where `from` is no regular file or both are one.
pub fn copy_file(
    from: &Path,
    to: &Path,
    go_on: impl FnMut(u64) -> io::Result<()>,
) -> io::Result<Moved> {
    // A pipe would wait for its writer at the open.
    let found = std::fs::metadata(from)?;
    let refused = |what: String| io::Error::new(io::ErrorKind::InvalidInput, what);
    if found.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !found.is_file() {
        let what = format!("`{}` is no regular file\ncopy files alone", from.display());
        return Err(refused(what));
    }
    let source = File::open(from)?;
    let found = source.metadata()?;
    let target = std::fs::metadata(to).ok();
    if let Some(target) = &target
        && (target.dev(), target.ino()) == (found.dev(), found.ino())
    {
        let what = format!(
            "`{}` and `{}` are the same file\nname another one to copy to",
            from.display(),
            to.display()
        );
        return Err(refused(what));
    }
    let made = AtomicFile::create(to, OnFailure::Remove)?;
    let moved = copy_contents(&source, made.as_file(), go_on)?;
    if target.is_none() {
        let mode = std::fs::Permissions::from_mode(found.mode() & 0o777);
        made.as_file().set_permissions(mode)?;
    }
    made.commit()?;
    Ok(moved)
}
