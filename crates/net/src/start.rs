// SPDX-License-Identifier: Apache-2.0
//! From a place table to transports.

use std::sync::Arc;

use crate::config::{Config, Reach};
use crate::driver::Handle;
use crate::error::NetError;
use crate::link::Link;
use crate::places::Places;
use crate::reactor::Reactor;
use crate::tcp::TcpTransport;
use crate::wide::WideTransport;

/// What [`start`] gives.
#[derive(Debug)]
pub struct Transports {
    /// For the peers reached by [`Reach::Tcp`]; `None` when there are none.
    pub tcp: Option<TcpTransport>,
    /// For the peers reached by [`Reach::Tls`]; `None` when there are none.
    pub wide: Option<WideTransport>,
}

/// Starts the thread and makes the transports. The thread ends when both have been dropped.
pub fn start(config: Config) -> Result<Transports, NetError> {
    let places = Arc::new(Places::new(&config));
    let any = |way: Reach| places.ranks().any(|rank| places.reach(rank) == way);
    let (tcp, tls) = (any(Reach::Tcp), any(Reach::Tls));
    if (tcp || tls) && config.identity.is_none() {
        return Err(NetError::NoIdentity);
    }
    let system = |what: &'static str| move |e: rustix::io::Errno| NetError::System(format!("{what}: {e}"));
    let link = Arc::new(Link::new().map_err(system("eventfd"))?);
    let reactor = Reactor::new(config, places.clone(), link.clone()).map_err(system("epoll"))?;
    let handle = Arc::new(Handle::spawn(link, reactor).map_err(|e| NetError::System(format!("new thread: {e}")))?);
    Ok(Transports {
        tcp: if tcp {
            Some(TcpTransport::new(handle.clone(), places.clone()).map_err(system("epoll"))?)
        } else {
            None
        },
        wide: if tls {
            Some(WideTransport::new(handle, places).map_err(system("epoll"))?)
        } else {
            None
        },
    })
}
