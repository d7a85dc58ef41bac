// SPDX-License-Identifier: Apache-2.0
//! A process is to be reached by those to whom its entry is told.

use super::beyond::{Inside, Port, Spot, There};
use super::entries::Entries;
use super::wish::When;
use crate::happening::Process;
use isthmus_stage::content::hex;
use isthmus_stage::guarded::{Guarded, random};
use isthmus_wire::entry::Entry;
use isthmus_wire::gate::Key;
use isthmus_wire::question::{Kind, Refusal};
use std::sync::Arc;

/// Where processes are entered.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// What it is called, for people.
    pub(super) host: String,
    /// Which it is.
    pub(super) place: [u8; 8],
    /// The port there.
    pub(super) port: u16,
}

/// Why a process cannot be entered.
#[derive(Debug)]
pub(super) struct Barred {
    pub(super) refusal: Refusal,
    /// The site to which the ssh connection carries nothing else, if it is that.
    pub(super) site: Option<String>,
}

impl From<Refusal> for Barred {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, site: None }
    }
}

/// Ways to processes of this job.
pub(super) struct Entering {
    pub(super) entries: Entries,
    /// With the sockets that lead to other machines.
    pub(super) directory: Guarded,
}

impl Entering {
    /// From now on a port of this process is reached by its entry. `when`: the way to another machine is made.
    pub(super) async fn enter(
        &self,
        by: Process,
        port: u16,
        gate: Option<Key>,
        spot: &Spot,
        at: Place,
        when: When,
    ) -> Result<Entry, Barred> {
        let (port, knock) = match (spot.gateway, gate) {
            (None, _) => (port, None),
            (Some(gateway), Some(key)) => (gateway, Some(key)),
            (Some(_), None) => {
                let why = "the process is on a node that only the gateway of its local area reaches, and that has let \
                           nobody in to it";
                return Err(Refusal::new(Kind::Unable, why).into());
            }
        };
        let key: [u8; 16] =
            random().map_err(|error| Refusal::new(Kind::Unable, format!("no random number: {error}")))?;
        let port = match &spot.at {
            None => Port::Here(port),
            Some(site) => {
                let there = There {
                    site: site.clone(),
                    port,
                    path: self.directory.path().join(format!("in-{}", hex(&key[..8]))),
                };
                if when == When::Now {
                    there.make().await.map_err(|why| Barred {
                        refusal: Refusal::new(Kind::Unable, why),
                        site: Some(site.destination.clone()),
                    })?;
                }
                Port::There(Arc::new(there))
            }
        };
        self.entries.let_in(by, key, Inside { port, knock })?;
        Ok(Entry {
            host: at.host,
            place: at.place,
            port: at.port,
            key,
        })
    }
}
