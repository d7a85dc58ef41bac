// SPDX-License-Identifier: Apache-2.0
//! Who comes in: other gateways, processes of this area, and those of other jobs that know a key. Strangers are bounded
//! in number, bytes and time and told nothing.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use isthmus_link::handshake::{Answered, Ends};
use isthmus_net::{Listener, Prover};
use isthmus_wire::entry::{KNOCK, knocked};
use isthmus_wire::gate::GATEWAY;
use isthmus_wire::gateway::{NO_WAY, READY, WISH_LEAD, area_number, is_stream, wished_thread};
use isthmus_wire::hello::{KNOCK_BYTES, Knock, REPLY_BYTES};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::leads::Guest;
use crate::{Gateway, carrier, dial, stream};

/// Most connections that have not proven anything; when more come the oldest goes, once it had [`CHANCE`].
const MAX_STRANGERS: usize = 256;
/// What a process of this area needs to prove itself, and many times that: all of them may come at once, and the others
/// wait in the kernel meanwhile.
const CHANCE: Duration = Duration::from_millis(150);
/// How often it is looked whether there is room.
const LOOK: Duration = Duration::from_millis(1);
/// How long a stranger may take.
const HANDSHAKE: Duration = Duration::from_secs(4);
/// How long to leave callers waiting when there are no descriptors left.
const PAUSE: Duration = Duration::from_millis(100);

type Strangers = VecDeque<(Instant, AbortHandle)>;

/// Accepts from now on.
pub(crate) fn open(listener: Listener, gateway: &Rc<Gateway>) -> Result<(), String> {
    let listener = std::net::TcpListener::from(OwnedFd::from(listener));
    let listener = TcpListener::from_std(listener).map_err(|e| e.to_string())?;
    let gateway = gateway.clone();
    tokio::task::spawn_local(async move {
        let mut strangers = Strangers::default();
        loop {
            make_room(&mut strangers).await;
            match listener.accept().await {
                Ok((stream, _)) => strangers.push_back((Instant::now(), let_in(&gateway, stream))),
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    });
    Ok(())
}

/// Waits until one more may come in.
async fn make_room(strangers: &mut Strangers) {
    loop {
        strangers.retain(|(_, task)| !task.is_finished());
        let oldest = strangers.front().filter(|_| strangers.len() >= MAX_STRANGERS);
        match oldest {
            None => return,
            Some((came, _)) if came.elapsed() < CHANCE => tokio::time::sleep(LOOK).await,
            Some((_, task)) => {
                task.abort();
                strangers.pop_front();
                return;
            }
        }
    }
}

fn let_in(gateway: &Rc<Gateway>, stream: TcpStream) -> AbortHandle {
    let gateway = gateway.clone();
    let task = tokio::task::spawn_local(async move {
        let known = tokio::time::timeout(HANDSHAKE, shake(&gateway, stream)).await;
        // Proven: no stranger any more, so it must not end when others come.
        match known {
            Ok(Some(Comer::Ours(stream, answered, wish))) => {
                tokio::task::spawn_local(async move { welcome(&gateway, stream, answered, wish).await });
            }
            Ok(Some(Comer::Guest(guest))) => drop(tokio::task::spawn_local(guest.lead())),
            Ok(None) | Err(_) => {}
        }
    });
    task.abort_handle()
}

/// Who has come.
enum Comer {
    /// A process or a gateway of the job, and what it wishes.
    Ours(TcpStream, Answered, u8),
    /// Somebody who knows a key.
    Guest(Guest),
}

/// Who it is, when it proves to belong to the job, or knows a key.
async fn shake(gateway: &Gateway, mut stream: TcpStream) -> Option<Comer> {
    let mut knock = [0; KNOCK_BYTES];
    let (first, rest) = knock.split_first_chunk_mut::<KNOCK>()?;
    stream.read_exact(first).await.ok()?;
    if let Some(key) = knocked(first) {
        dial::tune(&stream);
        return gateway.leads.welcome(key, stream).await.map(Comer::Guest);
    }
    stream.read_exact(rest).await.ok()?;
    let prover = prover(gateway, &knock).await?;
    let (answered, answer) = Answered::to_anybody(&prover, &knock)?;
    dial::tune(&stream);
    stream.write_all(&answer).await.ok()?;
    let mut reply = [0; REPLY_BYTES];
    stream.read_exact(&mut reply).await.ok()?;
    let wish = answered.wish(&prover, &reply)?;
    Some(Comer::Ours(stream, answered, wish))
}

/// Whose secret a knock must prove: that of the gateway that it claims to come from, of which we may hear a little
/// later, or that of this area.
async fn prover(gateway: &Gateway, knock: &[u8; KNOCK_BYTES]) -> Option<Prover> {
    let knock = Knock::decode(knock)?;
    if knock.to != area_number(gateway.area) {
        return Some(gateway.prover.clone());
    }
    let area = knock.from & !area_number(0);
    if knock.from != area_number(area) {
        return None;
    }
    loop {
        let met = gateway.met.notified();
        if let Some(neighbour) = gateway.neighbour(area) {
            return Some(neighbour.prover().clone());
        }
        met.await;
    }
}

async fn welcome(gateway: &Rc<Gateway>, stream: TcpStream, answered: Answered, wish: u8) {
    let Ends { from, to } = answered.ends;
    if to.0 == area_number(gateway.area) {
        if let Some(thread) = wished_thread(wish) {
            gateway.came(from.0 & !area_number(0), thread, stream);
        }
        return;
    }
    if to.0 == GATEWAY && wish == WISH_LEAD {
        return gateway.leads.serve(stream).await;
    }
    gateway.places.wait().await;
    let area = gateway.places.area(to);
    match area.and_then(|area| gateway.choose(area, wish)) {
        Some(thread) => gateway.hand_over(thread, stream, answered.ends, wish),
        None => carry(gateway, stream, answered.ends, wish).await,
    }
}

/// Carries a connection of a process of ours.
pub(crate) async fn carry(gateway: &Rc<Gateway>, mut stream: TcpStream, ends: Ends, wish: u8) {
    match ask(gateway, ends, wish).await {
        Ok((carrier, number)) if is_stream(wish) => {
            if stream.write_all(&[READY]).await.is_ok() {
                stream::pump(&carrier, number, stream).await;
            } else {
                carrier.reset(number);
            }
        }
        Ok((carrier, number)) => {
            carrier.reset(number);
            let _ = stream.write_all(&[READY]).await;
        }
        Err(()) => {
            let _ = stream.write_all(&[NO_WAY]).await;
        }
    }
}

/// A stream for a process of ours, accepted by the other side.
async fn ask(gateway: &Rc<Gateway>, ends: Ends, wish: u8) -> Result<(Rc<carrier::Carrier>, u32), ()> {
    gateway.places.wait().await;
    let area = gateway.places.area(ends.to).ok_or(())?;
    if gateway.places.area(ends.from) != Some(gateway.area) {
        return Err(());
    }
    let neighbour = gateway.neighbour(area).ok_or(())?;
    let carrier = neighbour.carrier(wish).await.ok_or(())?;
    let number = carrier.ask(ends, wish).await?;
    Ok((carrier, number))
}
