// SPDX-License-Identifier: Apache-2.0
//! Who talks to whom: trees inside one council, and their composition over all tiers of a shape.
//!
//! A *council* is the leaders of the parts of one cluster: the processes that talk at one tier. One tree serves all
//! radixes: the interval of members is cut into `radix` equal parts, the root keeps its own part and hands each other part to that
//! part's first member, and so on inside the parts. Radix 2 is the binomial tree, radix = members the flat tree. Subtrees
//! are intervals, so gathered data stay together and reductions stay in order, for any root and number of members.
//!
//! A [`Family`] joins the trees of all tiers that a process takes part in: one parent, its children, slow tiers first.

use crate::step::Rank;
use isthmus_topology::{Level, Shape};
use std::sync::Arc;

/// A child of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Child {
    /// Its rank.
    pub(crate) rank: Rank,
    /// Positions of its subtree.
    pub(crate) start: u32,
    /// End of them.
    pub(crate) end: u32,
    /// Whether they are left of (below) everything that the parent gets from later children.
    pub(crate) left: bool,
}

/// A process's neighbours in the tree over all tiers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Family {
    /// Own position.
    pub(crate) position: u32,
    /// Whom it acts under; none at the root.
    pub(crate) parent: Option<Rank>,
    /// Positions of its own subtree.
    pub(crate) start: u32,
    /// End of them.
    pub(crate) end: u32,
    /// Children in the order in which a broadcast serves them: slow tiers first, large subtrees first. In the reverse order each
    /// subtree is adjacent to what has been combined before it.
    pub(crate) children: Vec<Child>,
}

impl Family {
    /// The tree inside each cluster of depth `from` (0: one tree over the whole group). The root, where it is a member, and else
    /// the first member is at the top. `radix` gives the tree's radix for a tier's level and number of members.
    pub(crate) fn new(shape: &Shape, root: Rank, me: Rank, from: usize, radix: impl Fn(Level, u32) -> u32) -> Self {
        let (root, position) = (shape.position_of(root), shape.position_of(me));
        let whole = shape.span(from, shape.cluster_of(from, position));
        let mut family = Self {
            position,
            parent: None,
            start: whole.start,
            end: whole.end,
            children: Vec::new(),
        };
        for tier in from..shape.tiers() {
            let part = shape.cluster_of(tier + 1, position);
            if shape.leader(tier + 1, part, root) == position {
                family.join_council(shape, root, tier, part, &radix);
            }
        }
        family
    }

    fn join_council(&mut self, shape: &Shape, root: u32, tier: usize, part: u32, radix: impl Fn(Level, u32) -> u32) {
        let cluster = shape.cluster_of(tier, self.position);
        let parts = shape.parts(tier, cluster);
        let size = parts.end - parts.start;
        if size < 2 {
            return;
        }
        let top = shape.leader(tier, cluster, root);
        let top = shape.cluster_of(tier + 1, top) - parts.start;
        let leader = |i: u32| shape.rank_at(shape.leader(tier + 1, parts.start + i, root));
        let start = |i: u32| shape.span(tier + 1, parts.start + i).start;
        let end = |i: u32| shape.span(tier + 1, parts.start + i - 1).end;
        let position = self.position;
        let children = &mut self.children;
        let place = walk(
            size,
            top,
            part - parts.start,
            radix(shape.level(tier), size),
            |first, lo, hi| {
                let start = start(lo);
                children.push(Child {
                    rank: leader(first),
                    start,
                    end: end(hi),
                    left: start < position,
                });
            },
        );
        if let Some(place) = place {
            self.parent = Some(leader(place.parent));
            self.start = start(place.lo);
            self.end = end(place.hi);
        }
    }

    /// True for a process without children.
    pub(crate) fn is_leaf(&self) -> bool {
        self.children.is_empty()
    }
}

/// Where a member that is not the root stands in a council's tree.
struct Stand {
    parent: u32,
    lo: u32,
    hi: u32,
}

/// Walks down the tree of `size` members from `root` to `me` and reports each child of `me` (first member and interval), large first.
fn walk(size: u32, mut root: u32, me: u32, radix: u32, mut child: impl FnMut(u32, u32, u32)) -> Option<Stand> {
    let (mut lo, mut hi, mut stand) = (0, size, None);
    while hi - lo > 1 {
        let (length, parts) = (hi - lo, radix.clamp(2, hi - lo));
        let begin = |j: u32| lo + (u64::from(j) * u64::from(length) / u64::from(parts)) as u32;
        let part_of = |x: u32| (((u64::from(x - lo) + 1) * u64::from(parts) - 1) / u64::from(length)) as u32;
        let (mine, its) = (part_of(me), part_of(root));
        if me == root {
            // Within one cut, far parts first on either side: reversed, each is adjacent to what came before.
            for j in (mine + 1..parts).rev().chain(0..mine) {
                child(begin(j), begin(j), begin(j + 1));
            }
        }
        let (next_lo, next_hi) = (begin(mine), begin(mine + 1));
        if mine != its {
            stand = Some(Stand {
                parent: root,
                lo: next_lo,
                hi: next_hi,
            });
            root = next_lo;
        }
        (lo, hi) = (next_lo, next_hi);
    }
    stand
}

/// The leaders of the outermost tier's parts, seen by one of them.
#[derive(Clone, Debug)]
pub(crate) struct Council {
    shape: Arc<Shape>,
    /// Own index.
    pub(crate) index: u32,
    /// Number of members.
    pub(crate) size: u32,
}

impl Council {
    /// The council of the outermost tier; each part is led by its first member. A group without tiers: one member.
    pub(crate) fn outermost(shape: &Arc<Shape>, me: Rank) -> Self {
        let size = if shape.tiers() == 0 { 1 } else { shape.clusters(1) };
        Self {
            index: shape.cluster_of(1, shape.position_of(me)),
            size,
            shape: Arc::clone(shape),
        }
    }

    /// Rank of a member.
    pub(crate) fn rank(&self, index: u32) -> Rank {
        self.shape.rank_at(self.shape.span(1, index).start)
    }

    /// Positions that a member acts for.
    pub(crate) fn span(&self, index: u32) -> std::ops::Range<u32> {
        self.shape.span(1, index)
    }

    /// The other members as pairs (send to, receive from), in an order in which nobody is asked by all at once and
    /// synchronous sends cannot wait for each other in a circle.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (u32, u32)> + use<> {
        let (i, k) = (self.index, self.size);
        (1..k).map(move |d| ((i + d) % k, (i + k - d) % k))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Children as "first member: interval", and the parent.
    fn stand(size: u32, root: u32, me: u32, radix: u32) -> (String, Option<u32>) {
        let mut children = Vec::new();
        let stand = walk(size, root, me, radix, |first, lo, hi| {
            children.push(format!("{first}:{lo}..{hi}"))
        });
        (children.join(" "), stand.map(|s| s.parent))
    }

    #[test]
    fn radix_2_is_the_binomial_tree() {
        assert_eq!(stand(8, 0, 0, 2), ("4:4..8 2:2..4 1:1..2".into(), None));
        assert_eq!(stand(8, 0, 4, 2), ("6:6..8 5:5..6".into(), Some(0)));
        assert_eq!(stand(8, 0, 7, 2), (String::new(), Some(6)));
    }

    #[test]
    fn any_member_is_root_of_a_tree_as_low() {
        assert_eq!(stand(8, 5, 5, 2), ("0:0..4 6:6..8 4:4..5".into(), None));
        assert_eq!(stand(8, 5, 0, 2), ("2:2..4 1:1..2".into(), Some(5)));
    }

    #[test]
    fn radix_of_all_members_is_the_flat_tree() {
        assert_eq!(stand(4, 1, 1, 4), ("3:3..4 2:2..3 0:0..1".into(), None));
        assert_eq!(stand(4, 1, 3, 4), (String::new(), Some(1)));
    }

    #[test]
    fn every_tree_reaches_everybody_once() {
        for (size, radix) in [(1, 2), (2, 2), (7, 2), (13, 3), (16, 4), (40, 5)] {
            for root in 0..size {
                let parents = (0..size)
                    .filter_map(|me| walk(size, root, me, radix, |_, _, _| {}))
                    .count() as u32;
                let mut children: Vec<u32> = Vec::new();
                (0..size).for_each(|me| _ = walk(size, root, me, radix, |first, _, _| children.push(first)));
                children.sort_unstable();
                let others: Vec<u32> = (0..size).filter(|&i| i != root).collect();
                assert_eq!(
                    (parents, children),
                    (size - 1, others),
                    "size {size}, root {root}, radix {radix}"
                );
            }
        }
    }
}
