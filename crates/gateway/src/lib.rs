// SPDX-License-Identifier: Apache-2.0
//! `isthmus gateway`: carries connections between processes of different local areas where they cannot, or shall not,
//! be made directly. Started by the agent, for one job; ends when its standard input does.
//!
//! ```text
//!   process ── door ── stream ┐                       ┌ stream ── process
//!   process ── door ── stream ┼ carrier ═══════ carrier ┼ stream ── process
//! ```
//! A *carrier* carries a trunk (`isthmus_link::trunk`): a connection to the other gateway, or the coordinator's
//! connections. Everything here runs on one thread, and, where that is saturated, on further ones that carry beside it
//! (`threads`).
//!
//! What passes is encrypted from process to process; a gateway holds no key that could read it or act for a rank.
//! Connections of two gateways prove that both ends know a secret that was made for these two alone.
#![forbid(unsafe_code)]

mod carrier;
mod dial;
mod door;
mod leads;
mod neighbour;
mod places;
mod saturation;
mod stream;
mod threads;
mod traffic;
mod usage;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use isthmus_net::{Listener, PortRange, Prover};
use isthmus_wire::codec::Deframer;
use isthmus_wire::gateway::{Area, FromGateway, Open, ToGateway};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, mpsc};

use neighbour::Neighbour;
use places::Places;
use threads::Threads;

/// A gateway, or what a further thread of it has.
pub(crate) struct Gateway {
    /// Of the thread.
    number: u8,
    area: u32,
    streams: u8,
    /// Of connections with processes of this area.
    prover: Prover,
    neighbours: RefCell<BTreeMap<u32, Rc<Neighbour>>>,
    /// There is another neighbour.
    met: Notify,
    places: Places,
    /// Who comes in from other jobs, and goes out to them.
    leads: leads::Leads,
    /// To the coordinator. Bounded by what it gives credit for.
    control: mpsc::UnboundedSender<FromGateway>,
    threads: Threads,
}

/// Serves until standard input ends.
///
/// # Errors
/// What failed on the way to the agent.
pub fn run() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    let result = local.block_on(&runtime, async {
        let input = tokio::net::unix::pipe::Receiver::from_file_unchecked(owned(io::stdin())?)?;
        let output = tokio::net::unix::pipe::Sender::from_file_unchecked(owned(io::stdout())?)?;
        serve(input, output).await
    });
    runtime.shutdown_background();
    result
}

/// A descriptor of our own for a standard stream, so that it can be made non-blocking.
fn owned(stream: impl std::os::fd::AsFd) -> io::Result<std::fs::File> {
    let file = std::fs::File::from(stream.as_fd().try_clone_to_owned()?);
    rustix::io::ioctl_fionbio(&file, true)?;
    Ok(file)
}

/// Serves a coordinator over a pair of streams, on a `LocalSet`.
///
/// # Errors
/// What failed on these streams.
pub async fn serve(
    input: impl AsyncRead + Unpin + 'static,
    output: impl AsyncWrite + Unpin + 'static,
) -> io::Result<()> {
    let mut messages = Messages {
        input,
        deframer: Deframer::default(),
    };
    let (control, queue) = mpsc::unbounded_channel();
    let writing = tokio::task::spawn_local(write(output, queue));
    let Some(ToGateway::Open(open)) = messages.next().await? else {
        return Ok(());
    };
    match begin(open, control.clone()) {
        Ok(gateway) => {
            while let Some(message) = messages.next().await? {
                gateway.handle(message);
            }
        }
        Err(why) => {
            let _ = control.send(FromGateway::Failed(why));
            // The agent ends us when it has heard it.
            while messages.next().await?.is_some() {}
        }
    }
    writing.abort();
    Ok(())
}

/// Listens and tells where.
fn begin(open: Open, control: mpsc::UnboundedSender<FromGateway>) -> Result<Rc<Gateway>, String> {
    let range = (open.ports.1 > 0).then_some(PortRange {
        first: open.ports.0,
        last: open.ports.1,
    });
    let listener = Listener::bind(range).map_err(|e| e.to_string())?;
    let addresses = if open.addresses.is_empty() {
        isthmus_net::local_addresses()
    } else {
        isthmus_net::pinned_addresses(&open.addresses.join(","))?
    };
    let _ = control.send(FromGateway::Listening {
        port: listener.port(),
        addresses,
    });
    let gateway = Rc::new(Gateway {
        number: 0,
        area: open.area,
        streams: open.streams.max(1),
        prover: Prover::new(&open.secret, &open.job),
        neighbours: RefCell::default(),
        met: Notify::new(),
        places: Places::default(),
        leads: leads::Leads::default(),
        control,
        threads: Threads::new(open.threads),
    });
    door::open(listener, &gateway)?;
    tokio::task::spawn_local(gateway.clone().look_after(None));
    Ok(gateway)
}

impl Gateway {
    fn handle(self: &Rc<Self>, message: ToGateway) {
        match message {
            ToGateway::Open(_) => {}
            ToGateway::Areas(areas) => areas.into_iter().for_each(|area| self.meet(area)),
            ToGateway::Places(areas, table) => {
                let known = Arc::new(places::Whereabouts { areas, table });
                self.threads.places(&known);
                self.places.set(known);
            }
            ToGateway::Relay(relay) => {
                if let Some(neighbour) = self.neighbour(relay.area) {
                    neighbour.relayed(self, relay.epoch, &relay.bytes);
                }
            }
            ToGateway::Measure(area) => {
                if let Some(neighbour) = self.neighbour(area) {
                    neighbour.measure(self);
                }
            }
            ToGateway::Credit { area, epoch, bytes } => {
                if let Some(neighbour) = self.neighbour(area) {
                    neighbour.credited(epoch, bytes);
                }
            }
        }
    }

    /// Another gateway is there, or has begun anew.
    fn meet(self: &Rc<Self>, area: Area) {
        let number = area.area;
        if number == self.area {
            return;
        }
        self.threads.meet(&area);
        let neighbour = Rc::new(Neighbour::new(self, area, Arc::default()));
        if let Some(old) = self.neighbours.borrow_mut().insert(number, neighbour.clone()) {
            old.leave();
        }
        neighbour.begin(self);
        self.met.notify_waiters();
    }

    fn neighbour(&self, area: u32) -> Option<Rc<Neighbour>> {
        self.neighbours.borrow().get(&area).cloned()
    }

    /// Tells the coordinator.
    fn tell(&self, message: FromGateway) {
        // Without an agent we are about to end.
        let _ = self.control.send(message);
    }
}

struct Messages<R> {
    input: R,
    deframer: Deframer,
}

impl<R: AsyncRead + Unpin> Messages<R> {
    async fn next(&mut self) -> io::Result<Option<ToGateway>> {
        let mut buffer = vec![0; 64 << 10];
        loop {
            if let Some(body) = self.deframer.next_body().map_err(io::Error::other)? {
                return ToGateway::decode(&body).map(Some).map_err(io::Error::other);
            }
            match self.input.read(&mut buffer).await? {
                0 => return Ok(None),
                n => self.deframer.feed(&buffer[..n]),
            }
        }
    }
}

async fn write(mut output: impl AsyncWrite + Unpin, mut queue: mpsc::UnboundedReceiver<FromGateway>) {
    while let Some(message) = queue.recv().await {
        let body = message.encode();
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes();
        let bytes = [&length[..], &body].concat();
        if output.write_all(&bytes).await.is_err() {
            return;
        }
    }
}
