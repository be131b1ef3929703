//! [`Tree`]: computes the BLAKE3 hash of a file from the hashes of its blocks, without reading the
//! file again. This is possible because the hash of a block is a node of the hash tree of the file
//! (section 2.1 of the BLAKE3 paper). A block is verified against its own hash when it arrives.

use blake3::Hasher;
use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};

/// The hash of a node of the BLAKE3 tree, other than the root node.
pub type Node = [u8; 32];

/// Returns the hash of a block of a file that has several blocks. `index` is the index of the
/// block, counted from 0.
///
/// `block` must not be empty. Every block of a file except the last must have `1 << block_log2`
/// bytes.
#[must_use]
pub fn block_hash(block: &[u8], index: u64, block_log2: u8) -> Node {
    let mut hasher = Hasher::new();
    hasher.set_input_offset(index << block_log2);
    hasher.update(block);
    hasher.finalize_non_root()
}

/// The hash tree of the blocks of a file that were added so far. Only the roots of complete
/// subtrees are stored: one root for each bit that is 1 in the binary form of the number of blocks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    stack: Vec<Node>,
    n_blocks: u64,
}

impl Tree {
    /// Restores the tree of an interrupted transfer. `stack` contains the nodes that
    /// [`Tree::stack`] returned when the tree had `n_blocks` blocks. Returns `None` if a tree of
    /// `n_blocks` blocks has another number of nodes.
    #[must_use]
    pub fn resumed(n_blocks: u64, stack: Vec<Node>) -> Option<Tree> {
        (stack.len() == n_blocks.count_ones() as usize).then_some(Tree { stack, n_blocks })
    }

    /// Returns the number of blocks added so far.
    #[must_use]
    pub fn n_blocks(&self) -> u64 {
        self.n_blocks
    }

    /// Returns the stored nodes of the hash tree. They are the roots of complete subtrees that
    /// together contain all blocks added so far.
    #[must_use]
    pub fn stack(&self) -> Vec<Node> {
        let mut merged = self.clone();
        merged.merge();
        merged.stack
    }

    /// Adds the hash of the next block. A block shorter than the block size must be the last one.
    pub fn push(&mut self, node: Node) {
        self.merge();
        self.stack.push(node);
        self.n_blocks += 1;
    }

    /// Replaces two nodes that cover the same number of blocks by their parent node, as long as
    /// there are two such nodes. It must only be called if another block of the file follows.
    /// Otherwise the parent might be the root, whose hash is computed differently ([`Tree::root`]).
    fn merge(&mut self) {
        while self.stack.len() > self.n_blocks.count_ones() as usize {
            let (Some(right), Some(left)) = (self.stack.pop(), self.stack.pop()) else {
                return;
            };
            self.stack
                .push(merge_subtrees_non_root(&left, &right, Mode::Hash));
        }
    }

    /// Returns the hash of the file. Returns `None` for fewer than two blocks, because the hash of
    /// such a file is computed from its contents and not from nodes.
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
                    // The tree is saved here and continued from the saved nodes.
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
