// SPDX-License-Identifier: Apache-2.0
//! Groups of processes (MPI 5.0 section 7.3): ordered sets of peers.

use std::sync::Arc;

use isthmus_abi::constants as abi;
use isthmus_engine::Peer;
use rustc_hash::FxHashMap;

use crate::attached::Attachment;
use crate::error::Result;
use crate::fail;

/// An ordered set of processes. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Group {
    members: Arc<[Peer]>,
    /// Of the session that it came from: where a buffer of buffered mode can be attached.
    session: Option<Arc<Attachment>>,
}

impl PartialEq for Group {
    fn eq(&self, other: &Self) -> bool {
        self.members == other.members
    }
}

impl Eq for Group {}

/// How two groups compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Same members in the same order.
    Identical,
    /// Same members in another order.
    Similar,
    /// Different members.
    Unequal,
}

impl Group {
    /// The group of these processes, which must be distinct.
    pub fn new(members: impl Into<Arc<[Peer]>>) -> Self {
        Self {
            members: members.into(),
            session: None,
        }
    }

    /// The same group as one of a session.
    pub fn of_session(self, session: Arc<Attachment>) -> Self {
        Self {
            session: Some(session),
            ..self
        }
    }

    /// Where the session that it came from can have a buffer attached.
    pub(crate) fn session(&self) -> Option<&Arc<Attachment>> {
        self.session.as_ref()
    }

    /// The group without members.
    pub fn empty() -> Self {
        Self::new(Vec::<Peer>::new())
    }

    /// Number of members.
    pub fn size(&self) -> usize {
        self.members.len()
    }

    /// Members, in order of rank in the group.
    pub fn members(&self) -> &Arc<[Peer]> {
        &self.members
    }

    /// Rank of a process in the group.
    pub fn rank_of(&self, peer: Peer) -> Option<u32> {
        if self.members.get(peer.index()) == Some(&peer) {
            return Some(peer.number());
        }
        self.members.iter().position(|&m| m == peer).map(|r| r as u32)
    }

    /// The group of these ranks, which are all below the size, in this order.
    pub(crate) fn pick(&self, ranks: &[u32]) -> Self {
        Self::new(ranks.iter().map(|&r| self.members[r as usize]).collect::<Vec<_>>())
    }

    /// Ranks here of the members of another group, which are all members here.
    pub(crate) fn places(&self, of: &Self) -> Vec<u32> {
        let index = self.index();
        of.members.iter().filter_map(|m| index.get(m).copied()).collect()
    }

    fn index(&self) -> FxHashMap<Peer, u32> {
        self.members.iter().enumerate().map(|(r, &m)| (m, r as u32)).collect()
    }

    /// Compares as MPI_Group_compare does.
    pub fn compare(&self, other: &Self) -> Comparison {
        if self.members == other.members {
            return Comparison::Identical;
        }
        let index = self.index();
        let same = self.size() == other.size() && other.members.iter().all(|m| index.contains_key(m));
        if same { Comparison::Similar } else { Comparison::Unequal }
    }

    /// Ranks in `other` of the processes with these ranks here; `None` where not a member.
    pub fn translate(&self, ranks: &[i32], other: &Self) -> Result<Vec<Option<i32>>> {
        let index = other.index();
        ranks
            .iter()
            .map(|&r| {
                if r == abi::MPI_PROC_NULL {
                    return Ok(Some(abi::MPI_PROC_NULL));
                }
                Ok(index.get(&self.member(r)?).map(|&n| n as i32))
            })
            .collect()
    }

    fn member(&self, rank: i32) -> Result<Peer> {
        match usize::try_from(rank).ok().and_then(|r| self.members.get(r)) {
            Some(&m) => Ok(m),
            None => fail!(
                abi::MPI_ERR_RANK,
                argument("ranks"),
                "has {rank}, which is not in the group, which has {} processes",
                self.size()
            ),
        }
    }

    /// Members of both, first those of `self`, in its order, then the others of `other`.
    pub fn union(&self, other: &Self) -> Self {
        let index = self.index();
        let rest = other.members.iter().filter(|m| !index.contains_key(m));
        Self::new(self.members.iter().chain(rest).copied().collect::<Vec<_>>())
    }

    /// Members of `self` that are in `other`.
    pub fn intersection(&self, other: &Self) -> Self {
        let index = other.index();
        Self::new(
            self.members
                .iter()
                .filter(|m| index.contains_key(m))
                .copied()
                .collect::<Vec<_>>(),
        )
    }

    /// Members of `self` that are not in `other`.
    pub fn difference(&self, other: &Self) -> Self {
        let index = other.index();
        Self::new(
            self.members
                .iter()
                .filter(|m| !index.contains_key(m))
                .copied()
                .collect::<Vec<_>>(),
        )
    }

    /// The group of these ranks, in this order.
    pub fn include(&self, ranks: &[i32]) -> Result<Self> {
        let members = ranks.iter().map(|&r| self.member(r)).collect::<Result<Vec<_>>>()?;
        distinct(ranks)?;
        Ok(Self::new(members))
    }

    /// The group without these ranks.
    pub fn exclude(&self, ranks: &[i32]) -> Result<Self> {
        let out = self.include(ranks)?;
        Ok(self.difference(&out))
    }
}

fn distinct(ranks: &[i32]) -> Result<()> {
    let mut seen = rustc_hash::FxHashSet::default();
    match ranks.iter().find(|r| !seen.insert(**r)) {
        Some(r) => fail!(abi::MPI_ERR_RANK, argument("ranks"), "has {r} twice"),
        None => Ok(()),
    }
}

/// The ranks of a list of (first, last, stride) triples (MPI_Group_range_incl), at most `bound` of them.
pub fn ranges(triples: &[[i32; 3]], bound: usize) -> Result<Vec<i32>> {
    let mut out = Vec::new();
    for &[first, last, stride] in triples {
        if stride == 0 {
            fail!(
                abi::MPI_ERR_ARG,
                argument("ranges"),
                "has ({first}, {last}, 0) with the stride 0"
            );
        }
        let (mut at, last, stride) = (i64::from(first), i64::from(last), i64::from(stride));
        while if stride > 0 { at <= last } else { at >= last } {
            if out.len() >= bound {
                fail!(
                    abi::MPI_ERR_RANK,
                    argument("ranges"),
                    "names more than the {bound} processes of the group"
                );
            }
            out.push(at as i32);
            at += stride;
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(members: &[u32]) -> Group {
        Group::new(members.iter().copied().map(Peer::new).collect::<Vec<_>>())
    }

    #[test]
    fn set_operations_keep_the_order_of_the_standard() {
        let (a, b) = (group(&[3, 1, 4, 5]), group(&[9, 4, 1]));
        assert_eq!(a.union(&b), group(&[3, 1, 4, 5, 9]));
        assert_eq!(a.intersection(&b), group(&[1, 4]));
        assert_eq!(a.difference(&b), group(&[3, 5]));
        assert_eq!(a.include(&[2, 0]).unwrap(), group(&[4, 3]));
        assert_eq!(a.exclude(&[2, 0]).unwrap(), group(&[1, 5]));
        assert_eq!(group(&[1, 2]).compare(&group(&[2, 1])), Comparison::Similar);
        assert_eq!(a.translate(&[0, 2, -3], &b).unwrap(), vec![None, Some(1), Some(-3)]);
    }

    #[test]
    fn wrong_ranks_are_named() {
        let a = group(&[3, 1]);
        assert_eq!(a.include(&[0, 0]).unwrap_err().class, abi::MPI_ERR_RANK);
        assert!(a.include(&[2]).unwrap_err().to_string().contains("ranks has 2"));
        assert_eq!(ranges(&[[0, 5, 2], [7, 6, -1]], 10).unwrap(), vec![0, 2, 4, 7, 6]);
        assert!(ranges(&[[0, 5, 0]], 10).is_err());
        assert!(ranges(&[[0, i32::MAX, 1]], 10).is_err());
    }
}
