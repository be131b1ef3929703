//! [`Journal`]: a file that is stored next to a partial file. It contains the identity of the
//! complete file, the hashes of the received blocks, and the number of blocks that were synced to
//! disk.
//!
//! The hash of a block is written after the block, so a receiver that is killed loses no block.
//! Each time [`SYNC_BYTES`] bytes were received, the data is synced, then the hashes, and then the
//! number of blocks is recorded. After a crash of the machine, the blocks up to this number are
//! trusted, and only the later blocks are read and hashed again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::block_hashes::{Node, Tree, block_hash};
use crate::message::FileHead;

/// After this number of received bytes, the data and the journal are synced to disk again.
pub const SYNC_BYTES: u64 = 256 * 1024 * 1024;

const MAGIC: &[u8; 8] = b"1copyjr1";
/// The offset in bytes, in the journal, of the field with the number of synced blocks.
const SYNCED_AT: u64 = 88;
/// The offset in bytes, in the journal, of the first block's hash.
const HASHES_AT: u64 = 96;

/// The identity of a file: its path, length and modification time, and the settings of the
/// transfer. A partial file is continued only if its journal has the same identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    bytes: [u8; SYNCED_AT as usize],
}

impl FileIdentity {
    /// Returns the identity of the file that the sender has announced with `head`.
    #[must_use]
    pub fn new(head: &FileHead, path: &str, hashed: bool, block_log2: u8) -> FileIdentity {
        let mut bytes = [0; SYNCED_AT as usize];
        let (body, check) = bytes.split_at_mut(64);
        body[..8].copy_from_slice(MAGIC);
        body[8] = block_log2;
        body[9] = u8::from(hashed);
        body[12..16].copy_from_slice(&head.modified.nanoseconds.to_le_bytes());
        body[16..24].copy_from_slice(&head.modified.seconds.to_le_bytes());
        body[24..32].copy_from_slice(&head.len_bytes.to_le_bytes());
        body[32..64].copy_from_slice(blake3::hash(path.as_bytes()).as_bytes());
        check.copy_from_slice(&blake3::hash(body).as_bytes()[..24]);
        FileIdentity { bytes }
    }
}

/// The open journal file of a partially received file, and the number of blocks that it records.
#[derive(Debug)]
pub struct Journal {
    file: File,
    hashed: bool,
    block_log2: u8,
    n_blocks: u64,
    n_synced: u64,
}

impl Journal {
    /// Opens the journal of the partial file `part`. Returns the journal, and the hash tree of the
    /// blocks in `part`. If the journal is damaged or has a different identity, it is truncated
    /// together with `part`, and the transfer of the file begins again.
    ///
    /// `len_bytes` is the size of the complete file. Some blocks of `part` are read and hashed
    /// again; for each of them, `progress` is called with its size in bytes.
    ///
    /// # Errors
    /// The error of the system.
    pub fn open(
        file: File,
        part: &File,
        identity: &FileIdentity,
        len_bytes: u64,
        mut progress: impl FnMut(u64),
    ) -> io::Result<(Journal, Tree)> {
        let mut journal = Journal {
            file,
            hashed: identity.bytes[9] == 1,
            block_log2: identity.bytes[8],
            n_blocks: 0,
            n_synced: 0,
        };
        match journal.read(part, identity, len_bytes, &mut progress)? {
            Some(tree) => Ok((journal, tree)),
            None => {
                part.set_len(0)?;
                journal.file.set_len(0)?;
                journal.file.write_all_at(&0_u64.to_le_bytes(), SYNCED_AT)?;
                journal.file.write_all_at(&identity.bytes, 0)?;
                (journal.n_blocks, journal.n_synced) = (0, 0);
                Ok((journal, Tree::default()))
            }
        }
    }

    /// Reads the journal and returns the hash tree of the blocks that it records. Returns `None` if
    /// the journal belongs to another file or is damaged.
    fn read(
        &mut self,
        part: &File,
        identity: &FileIdentity,
        len_bytes: u64,
        progress: &mut impl FnMut(u64),
    ) -> io::Result<Option<Tree>> {
        let mut bytes = [0; HASHES_AT as usize];
        match self.file.read_exact_at(&mut bytes, 0) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(e) => return Err(e),
        }
        if bytes[..SYNCED_AT as usize] != identity.bytes {
            return Ok(None);
        }
        let mut synced = [0; 8];
        synced.copy_from_slice(&bytes[SYNCED_AT as usize..]);
        self.n_synced = u64::from_le_bytes(synced);
        let part_bytes = part.metadata()?.len();
        if self.n_synced > part_bytes >> self.block_log2 {
            return Ok(None);
        }
        // At least one block must remain to be received, because the root of the hash tree is
        // computed when the last block is added.
        let n_most = len_bytes.saturating_sub(1) >> self.block_log2;
        let mut tree = Tree::default();
        if !self.hashed {
            self.n_blocks = self.n_synced.min(n_most);
            return Ok(Some(tree));
        }
        let n_noted = self.file.metadata()?.len().saturating_sub(HASHES_AT) / 32;
        if self.n_synced > n_noted {
            return Ok(None);
        }
        let mut block = Vec::new();
        let mut node: Node = [0; 32];
        for index in 0..n_noted.min(n_most) {
            self.file.read_exact_at(&mut node, HASHES_AT + 32 * index)?;
            if index >= self.n_synced {
                block.resize(1 << self.block_log2, 0);
                match part.read_exact_at(&mut block, index << self.block_log2) {
                    Ok(()) => {}
                    Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => break,
                    Err(e) => return Err(e),
                }
                if block_hash(&block, index, self.block_log2) != node {
                    break;
                }
                progress(block.len() as u64);
            }
            tree.push(node);
        }
        self.n_blocks = tree.n_blocks();
        self.n_synced = self.n_synced.min(self.n_blocks);
        Ok(Some(tree))
    }

    /// Returns the number of complete blocks at the start of the partial file.
    #[must_use]
    pub fn n_blocks(&self) -> u64 {
        self.n_blocks
    }

    /// Records that the next block was written to `part`; `node` is the hash of this block, or
    /// `None` if files are not hashed. Syncs `part` and the journal if [`SYNC_BYTES`] were written
    /// since the last sync.
    ///
    /// # Errors
    /// The error of the system.
    pub fn push(&mut self, part: &File, node: Option<Node>) -> io::Result<()> {
        if let Some(node) = node {
            let at = HASHES_AT + 32 * self.n_blocks;
            self.file.write_all_at(&node, at)?;
        }
        self.n_blocks += 1;
        if (self.n_blocks - self.n_synced) << self.block_log2 >= SYNC_BYTES {
            self.sync(part)?;
        }
        Ok(())
    }

    /// Syncs the partial file `part` to disk, then the journal, and then records in the journal how
    /// many blocks were synced.
    ///
    /// # Errors
    /// The error of the system.
    pub fn sync(&mut self, part: &File) -> io::Result<()> {
        part.sync_data()?;
        self.file.sync_data()?;
        self.n_synced = self.n_blocks;
        self.file
            .write_all_at(&self.n_synced.to_le_bytes(), SYNCED_AT)
    }
}
