// SPDX-License-Identifier: Apache-2.0
//! Where the processes of the job are.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use isthmus_wire::place::{PlaceTable, Rank};
use tokio::sync::Notify;

/// How long a stream may be asked for before the place table is there.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most addresses of one process that are tried.
const MAX_ADDRESSES: usize = 32;

/// Where each rank is.
pub(crate) struct Whereabouts {
    /// Its local area, by rank.
    pub(crate) areas: Vec<u32>,
    pub(crate) table: PlaceTable,
}

#[derive(Default)]
pub(crate) struct Places {
    known: RefCell<Option<Arc<Whereabouts>>>,
    changed: Notify,
}

impl Places {
    pub(crate) fn set(&self, known: Arc<Whereabouts>) {
        *self.known.borrow_mut() = Some(known);
        self.changed.notify_waiters();
    }

    /// All of them, when they are known.
    pub(crate) fn known(&self) -> Option<Arc<Whereabouts>> {
        self.known.borrow().clone()
    }

    /// Waits until they are known.
    pub(crate) async fn wait(&self) {
        let changed = self.changed.notified();
        if self.known.borrow().is_none() {
            let _ = tokio::time::timeout(PATIENCE, changed).await;
        }
    }

    /// The local area of a rank.
    pub(crate) fn area(&self, rank: Rank) -> Option<u32> {
        self.known.borrow().as_ref()?.areas.get(rank.index()).copied()
    }

    /// Where a rank listens.
    pub(crate) fn addresses(&self, rank: Rank) -> Vec<SocketAddr> {
        let known = self.known.borrow();
        let found = known.as_ref().and_then(|known| {
            let table = &known.table;
            let place = table.places.get(rank.index())?;
            Some((place.port, table.nodes.get(place.node as usize)?))
        });
        let Some((port, node)) = found else { return Vec::new() };
        let parse = |text: &String| Some(SocketAddr::new(text.parse::<IpAddr>().ok()?, port));
        let own = isthmus_net::local_addresses();
        let local = node.addresses.iter().filter(|a| own.contains(a)).count();
        let loops = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        let mut loops: Vec<_> = loops.map(|ip| SocketAddr::new(ip, port)).into();
        let mut all: Vec<_> = node.addresses.iter().take(MAX_ADDRESSES).filter_map(parse).collect();
        // On our own node processes may listen for us alone. A bridge that has the same address everywhere is no proof
        // of that.
        if local > 0 && local == node.addresses.len() {
            loops.append(&mut all);
            return loops;
        }
        all.extend(loops.into_iter().filter(|_| local > 0));
        all
    }
}
