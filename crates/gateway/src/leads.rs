// SPDX-License-Identifier: Apache-2.0
//! Processes of other jobs come in here, and processes of this area go out to those ([`isthmus_wire::gate`]): a process
//! says which key leads where, and whoever knocks with it is led there.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use isthmus_wire::entry::knock;
use isthmus_wire::gate::{GONE, HERE, Key, MAX_LEADS, MAX_MESSAGE, ToGate};
use isthmus_wire::gateway::{NO_WAY, READY};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::dial;

/// Most keys that are in force.
const MAX_KEYS: usize = 1 << 16;
/// Most connections that were led somewhere and have not ended; by one key.
const MAX_GUESTS: usize = 8192;
const MAX_OF_KEY: usize = 1024;
/// How long a key may be on its way here when somebody knocks with it.
const EARLY: Duration = Duration::from_millis(500);
/// Bytes that are passed on at once.
const PIECE: usize = 64 << 10;

/// Where a key leads.
#[derive(Clone)]
struct Lead {
    to: Vec<SocketAddr>,
    knock: Option<Key>,
    /// Connections that it has led there.
    guests: Rc<()>,
}

/// All keys.
#[derive(Default)]
pub(crate) struct Leads {
    all: RefCell<HashMap<Key, Lead>>,
    more: Notify,
    guests: Rc<()>,
}

impl Leads {
    /// Hears which keys lead where, until the process ends the connection: then they lead nowhere.
    pub(crate) async fn serve(&self, mut stream: TcpStream) {
        let mut own = HashSet::new();
        while let Some(message) = next(&mut stream).await {
            let done = self.take(message, &mut own);
            if stream.write_all(&[if done { READY } else { NO_WAY }]).await.is_err() {
                break;
            }
        }
        let mut all = self.all.borrow_mut();
        own.iter().for_each(|key| drop(all.remove(key)));
    }

    /// Does what a process says, which has given these keys so far.
    fn take(&self, message: ToGate, own: &mut HashSet<Key>) -> bool {
        let mut all = self.all.borrow_mut();
        match message {
            ToGate::Lead { key, to, knock } => {
                // Nobody takes the key of another one.
                let is_free = !all.contains_key(&key) && own.len() < MAX_LEADS && all.len() < MAX_KEYS;
                if is_free {
                    let guests = Rc::default();
                    all.insert(key, Lead { to, knock, guests });
                    own.insert(key);
                    self.more.notify_waiters();
                }
                is_free
            }
            ToGate::Shut { key } => own.remove(&key) && all.remove(&key).is_some(),
        }
    }

    /// Where this key leads, if it is in force now or soon.
    async fn find(&self, key: &Key) -> Option<Lead> {
        let found = async {
            loop {
                let more = self.more.notified();
                if let Some(lead) = self.all.borrow().get(key).cloned() {
                    return lead;
                }
                more.await;
            }
        };
        tokio::time::timeout(EARLY, found).await.ok()
    }

    /// Whoever has knocked with this key, if it leads somewhere, and there is room.
    pub(crate) async fn welcome(&self, key: Key, mut stream: TcpStream) -> Option<Guest> {
        let lead = self.find(&key).await;
        let has_room = |lead: &Lead| {
            // One is the lead's own, and one that of the copy.
            Rc::strong_count(&lead.guests) <= MAX_OF_KEY + 1 && Rc::strong_count(&self.guests) <= MAX_GUESTS
        };
        let Some(lead) = lead.filter(has_room) else {
            let _ = stream.write_all(&[GONE]).await;
            return None;
        };
        Some(Guest {
            counted: self.guests.clone(),
            stream,
            lead,
        })
    }
}

/// The next message; `None`: there is none, or the process does not say what it should.
async fn next(stream: &mut TcpStream) -> Option<ToGate> {
    let length = stream.read_u32_le().await.ok()? as usize;
    if length > MAX_MESSAGE {
        return None;
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    ToGate::decode(&body).ok()
}

/// A connection that is led somewhere.
pub(crate) struct Guest {
    stream: TcpStream,
    lead: Lead,
    /// As long as it is there the guest counts.
    counted: Rc<()>,
}

impl Guest {
    /// Until both ends have ended.
    pub(crate) async fn lead(self) {
        let Self {
            mut stream,
            lead,
            counted,
        } = self;
        let with = lead.knock;
        let let_in = move |mut inside: TcpStream| async move {
            if let Some(key) = with {
                inside.write_all(&knock(&key)).await.map_err(|e| e.to_string())?;
                match inside.read_u8().await {
                    Ok(HERE) => {}
                    Ok(_) => return Err("the gateway there does not reach it".to_owned()),
                    Err(error) => return Err(error.to_string()),
                }
            }
            Ok(inside)
        };
        let Ok((_, mut inside)) = dial::first(&lead.to, let_in).await else {
            let _ = stream.write_all(&[GONE]).await;
            return;
        };
        if stream.write_all(&[HERE]).await.is_ok() {
            let _ = tokio::io::copy_bidirectional_with_sizes(&mut stream, &mut inside, PIECE, PIECE).await;
        }
        drop(counted);
    }
}
