// SPDX-License-Identifier: Apache-2.0
//! Unequal blocks that are too long to be handed on from site to site: the quickest way of short messages leads through
//! other sites, but a long message would cross several links whole, one after the other. So the blocks of such a site
//! go straight between its leader and the root, and the tree's messages leave them out.
//!
//! Whoever has a site's blocks in his subtree knows their sizes, and so does the root: nobody needs to be told.

use crate::form::Form;
use crate::row::BlockRow;
use crate::strategy::{Algorithm, Strategy};
use crate::tree::Family;
use crate::{Call, Network};
use std::ops::Range;

/// Bytes of a site's blocks up to which they are handed on.
pub(crate) const SHORT: u64 = 32 << 10;

/// The sites of a process's subtree whose blocks go straight.
pub(crate) struct Straight {
    pub(crate) sites: Vec<u32>,
    /// The subtree's blocks without theirs.
    pub(crate) row: BlockRow,
    /// Positions of the own site, if its blocks go straight.
    pub(crate) own: Option<Range<u32>>,
}

impl Straight {
    /// `None` where all go along the tree. `row` has the sizes of the subtree's blocks.
    pub(crate) fn of(
        call: &Call,
        network: &Network,
        strategy: &Strategy,
        family: &Family,
        row: &BlockRow,
    ) -> Option<Self> {
        // Where sites have no leaders each long block goes apart.
        if strategy.algorithm == Algorithm::Direct || matches!(strategy.forms.first(), None | Some(Form::Flat)) {
            return None;
        }
        let site = |position: u32| network.cluster_of(1, position);
        let (first, last) = (site(family.start), site(family.end - 1));
        let whole = network.span(1, first).start == family.start && network.span(1, last).end == family.end;
        let near = match family.parent {
            // What is next to the root goes there anyhow.
            None => family
                .children
                .iter()
                .map(|c| site(network.position_of(c.rank)))
                .collect(),
            Some(parent) if parent == call.root => vec![site(family.position)],
            Some(_) => Vec::new(),
        };
        let root = site(network.position_of(call.root));
        let long = |&s: &u32| call.bytes(row.length(network.span(1, s))) > SHORT;
        let far = (first..=last).filter(|s| whole && *s != root && !near.contains(s));
        let sites: Vec<u32> = far.filter(long).collect();
        if sites.is_empty() {
            return None;
        }
        let size = |position: u32| match sites.contains(&site(position)) {
            true => 0,
            false => row.length(position..position + 1),
        };
        let own = site(family.position);
        Some(Self {
            row: BlockRow::of_positions(family.start, (family.start..family.end).map(size)),
            own: sites.contains(&own).then(|| network.span(1, own)),
            sites,
        })
    }

    /// The sites among some positions whose blocks are in the tree's messages; `None` if all are.
    pub(crate) fn others(&self, network: &Network, positions: &Range<u32>) -> Option<Vec<u32>> {
        let sites = || network.cluster_of(1, positions.start)..network.cluster_of(1, positions.end - 1) + 1;
        let some = sites().any(|site| self.sites.contains(&site));
        some.then(|| sites().filter(|site| !self.sites.contains(site)).collect())
    }
}
