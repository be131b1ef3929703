//! BLAKE3 by blocks: each block's hash is a node of its file's tree (section 2.1 of the BLAKE3 paper), so that blocks can be
//! checked as they come, and the hash of a file is made of those of its blocks without reading it again.

use blake3::Hasher;
use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};

/// A node of the tree that is not its root.
pub type Node = [u8; 32];

/// The hash of a block that is not its whole file. `index` counts from 0.
///
/// `block` is not empty; all but the last of a file have `1 << block_log2` bytes.
#[must_use]
pub fn block_hash(block: &[u8], index: u64, block_log2: u8) -> Node {
    let mut hasher = Hasher::new();
    hasher.set_input_offset(index << block_log2);
    hasher.update(block);
    hasher.finalize_non_root()
}

/// The nodes over the blocks so far: one for each bit of their number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    stack: Vec<Node>,
    n_blocks: u64,
}

impl Tree {
    /// One over `n_blocks` blocks, from its nodes; `None` where these cannot be theirs.
    #[must_use]
    pub fn resumed(n_blocks: u64, stack: Vec<Node>) -> Option<Tree> {
        (stack.len() == n_blocks.count_ones() as usize).then_some(Tree { stack, n_blocks })
    }

    /// Blocks so far.
    #[must_use]
    pub fn n_blocks(&self) -> u64 {
        self.n_blocks
    }

    /// The nodes that stand for all blocks so far.
    #[must_use]
    pub fn stack(&self) -> Vec<Node> {
        let mut merged = self.clone();
        merged.merge();
        merged.stack
    }

    /// The next block's hash. Nothing may follow a block that is not whole.
    pub fn push(&mut self, node: Node) {
        self.merge();
        self.stack.push(node);
        self.n_blocks += 1;
    }

    /// Joins what is complete. The last two are left apart as long as they may be the root's.
    fn merge(&mut self) {
        while self.stack.len() > self.n_blocks.count_ones() as usize {
            let (Some(right), Some(left)) = (self.stack.pop(), self.stack.pop()) else {
                return;
            };
            self.stack
                .push(merge_subtrees_non_root(&left, &right, Mode::Hash));
        }
    }

    /// The hash of the file; `None` of fewer than two blocks, whose file is hashed as it is.
    #[must_use]
    pub fn root(mut self) -> Option<[u8; 32]> {
        let mut right = self.stack.pop()?;
        loop {
            let left = self.stack.pop()?;
            if self.stack.is_empty() {
                return Some(*merge_subtrees_root(&left, &right, Mode::Hash).as_bytes());
            }
            right = merge_subtrees_non_root(&left, &right, Mode::Hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_root_needs_two_blocks() {
        assert_eq!(Tree::default().root(), None);
        let mut tree = Tree::default();
        tree.push([1; 32]);
        assert_eq!(tree.root(), None);
    }

    proptest! {
        #[test]
        fn the_tree_of_blocks_matches_the_plain_hash(len in 1_usize..70_000, log2 in 10_u8..14, cut in 0_u64..80) {
            let bytes: Vec<u8> = (0..len).map(|i| (i * 31 % 251) as u8).collect();
            let mut tree = Tree::default();
            for (index, block) in bytes.chunks(1 << log2).enumerate() {
                if index as u64 == cut {
                    // Stopped here, and gone on with what was noted.
                    tree = Tree::resumed(tree.n_blocks(), tree.stack()).unwrap();
                }
                tree.push(block_hash(block, index as u64, log2));
            }
            if len > 1 << log2 {
                prop_assert_eq!(tree.root(), Some(*blake3::hash(&bytes).as_bytes()));
            } else {
                prop_assert_eq!(tree.root(), None);
            }
        }
    }
}
