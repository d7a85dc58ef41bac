// SPDX-License-Identifier: Apache-2.0
//! Of a process of another job only those hear that it is lost who have a connection to it: that breaks. So whoever
//! waits in vain for its message makes one, by a frame that says nothing.

use isthmus_transport::Peer;
use rustc_hash::FxHashSet;

use crate::Members;

/// Whom probes have looked for, and to whom this process has made connections.
#[derive(Debug, Default)]
pub(crate) struct Knocking {
    /// Since it was asked last: by a probe that has found nothing.
    probed: Option<Source>,
    done: FxHashSet<Peer>,
}

/// Who could send what is waited for.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    One(Peer),
    Any(Members),
}

impl Knocking {
    /// A probe has found nothing of this member, or of any.
    pub(crate) fn note_probe(&mut self, members: &Members, from: Option<u32>) {
        if self.probed.is_none() {
            self.probed = Some(match from {
                Some(rank) => Source::One(members.peer(rank)),
                None => Source::Any(members.clone()),
            });
        }
    }

    /// Whom a probe has looked for.
    pub(crate) fn take_probed(&mut self) -> Option<Source> {
        self.probed.take()
    }

    /// Whether this process makes a connection to the peer for the first time.
    pub(crate) fn begins(&mut self, peer: Peer) -> bool {
        self.done.insert(peer)
    }

    /// Whether it has done that.
    pub(crate) fn has_begun(&self, peer: Peer) -> bool {
        self.done.contains(&peer)
    }

    /// Others may become these peers.
    pub(crate) fn forget(&mut self, peers: &[Peer]) {
        if !self.done.is_empty() {
            peers.iter().for_each(|peer| _ = self.done.remove(peer));
        }
    }
}
