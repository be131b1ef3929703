//! What stands beside a file that is not whole yet: which file it is to be, the hashes of the blocks that are there, and how many of
//! them the disk has for sure.
//!
//! A block's hash is written when the block has been, so a receiver that is killed loses none. Now and then the data is synced,
//! then the hashes, and then the number of blocks is noted that both hold for. After a crash of the machine what was noted can be
//! believed, what came behind it is read and hashed again (at most [`SYNC_BYTES`]), and nothing else.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::message::FileHead;
use crate::tree::{Node, Tree, block_hash};

/// Bytes of data between two syncs.
pub const SYNC_BYTES: u64 = 256 * 1024 * 1024;

const MAGIC: &[u8; 8] = b"1copyjr1";
/// Where the number of synced blocks stands.
const SYNCED_AT: u64 = 88;
/// Where the hashes begin.
const HASHES_AT: u64 = 96;

/// Which file a journal belongs to: all of it must be the same, or the part is worth nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    bytes: [u8; SYNCED_AT as usize],
}

impl Identity {
    /// Of a file that a sender tells of.
    #[must_use]
    pub fn new(head: &FileHead, path: &str, hashed: bool, block_log2: u8) -> Identity {
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
        Identity { bytes }
    }
}

/// A journal that is open.
#[derive(Debug)]
pub struct Journal {
    file: File,
    hashed: bool,
    block_log2: u8,
    n_blocks: u64,
    n_synced: u64,
}

impl Journal {
    /// Reads the journal of `part`, or begins both anew where they are not `identity`'s. `len_bytes`: of the file when it is whole.
    /// `progress` is told of bytes that are hashed again.
    ///
    /// # Errors
    /// The system's.
    pub fn open(
        file: File,
        part: &File,
        identity: &Identity,
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

    /// `None` where it is another file's, or broken.
    fn read(
        &mut self,
        part: &File,
        identity: &Identity,
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
        // One at least is to come: the root of the tree is made of the last.
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

    /// Blocks that are there.
    #[must_use]
    pub fn n_blocks(&self) -> u64 {
        self.n_blocks
    }

    /// The next block stands in `part`; of hashed files with its hash. Syncs where it is time to.
    ///
    /// # Errors
    /// The system's.
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

    /// Has the disk take the data and then the hashes, and notes that it has.
    ///
    /// # Errors
    /// The system's.
    pub fn sync(&mut self, part: &File) -> io::Result<()> {
        part.sync_data()?;
        self.file.sync_data()?;
        self.n_synced = self.n_blocks;
        self.file
            .write_all_at(&self.n_synced.to_le_bytes(), SYNCED_AT)
    }
}
