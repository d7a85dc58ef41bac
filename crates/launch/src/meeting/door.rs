// SPDX-License-Identifier: Apache-2.0
//! Where connections of other jobs come in from the host. A stranger has three seconds to show the key of an entry;
//! more strangers than there are places wait in the system's queue.

use super::beyond::both_ways;
use super::crossing::{GONE, HERE, listens};
use super::entries::Entries;
use isthmus_wire::entry::{KNOCK, knocked};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// Connections that have not shown a key.
const MAX_STRANGERS: usize = 256;
/// How long they have for that.
const KNOCK_TIME: Duration = Duration::from_secs(3);
/// Most connections that came in and have not ended.
const MAX_GUESTS: usize = 4096;

pub(super) struct Door {
    port: u16,
    entries: Entries,
    task: JoinHandle<()>,
}

impl Drop for Door {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Door {
    pub(super) fn open() -> std::io::Result<Self> {
        let listener = listens()?;
        let port = listener.local_addr()?.port();
        let entries = Entries::default();
        let task = tokio::spawn(answer(listener, entries.clone()));
        Ok(Self { port, entries, task })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Whom it lets in.
    pub(super) fn entries(&self) -> &Entries {
        &self.entries
    }
}

async fn answer(listener: TcpListener, entries: Entries) {
    let (strangers, guests) = (
        Arc::new(Semaphore::new(MAX_STRANGERS)),
        Arc::new(Semaphore::new(MAX_GUESTS)),
    );
    while let Ok(place) = Arc::clone(&strangers).acquire_owned().await {
        let Ok((mut stream, _)) = listener.accept().await else {
            // Out of descriptors, most likely: leave others time to close some.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (entries, guests) = (entries.clone(), guests.clone());
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            let mut knock = [0; KNOCK];
            let came = tokio::time::timeout(KNOCK_TIME, stream.read_exact(&mut knock)).await;
            drop(place);
            let Some(key) = came.ok().and_then(Result::ok).and_then(|_| knocked(&knock)) else {
                return;
            };
            let known = entries.find(&key);
            let Ok(_guest) = guests.try_acquire_owned() else { return };
            let inside = match &known {
                Some(inside) => inside.connect().await,
                None => None,
            };
            let Some(inside) = inside else {
                // A gateway may have ended, and there will be another one: whoever wants to the process tries again.
                if known.is_none_or(|inside| inside.knock.is_none()) {
                    let _ = stream.write_all(&[GONE]).await;
                }
                return;
            };
            if stream.write_all(&[HERE]).await.is_ok() {
                both_ways(stream, inside).await;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::beyond::{Inside, Port};
    use super::*;
    use isthmus_wire::entry::knock;
    use tokio::net::TcpStream;

    async fn says(port: u16, words: &[u8]) -> Option<u8> {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("it listens");
        stream.write_all(words).await.expect("it is open");
        stream.read_u8().await.ok()
    }

    #[test]
    fn only_a_key_that_is_in_force_opens_however_many_others_come() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("threads").block_on(strangers());
    }

    async fn strangers() {
        let door = Door::open().expect("a port");
        let inside = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = inside.local_addr().expect("it has one").port();
        let here = |port, knock| Inside {
            port: Port::Here(port),
            knock,
        };
        door.entries()
            .let_in((0, 1), [1; 16], here(port, None))
            .expect("there is room");
        let mut idle = Vec::new();
        for _ in 0..300 {
            idle.push(
                TcpStream::connect(("127.0.0.1", door.port()))
                    .await
                    .expect("it listens"),
            );
        }
        assert_eq!(says(door.port(), b"GET / HTTP/1.1\r\n\r\n12345").await, None, "garbage");
        assert_eq!(says(door.port(), &knock(&[2; 16])).await, Some(GONE), "a wrong key");
        assert_eq!(says(door.port(), &knock(&[1; 16])).await, Some(HERE));
        door.entries().close((0, 2), &[1; 16]);
        assert_eq!(
            says(door.port(), &knock(&[1; 16])).await,
            Some(HERE),
            "it is not whose who closed it"
        );
        door.entries().close((0, 1), &[1; 16]);
        assert_eq!(says(door.port(), &knock(&[1; 16])).await, Some(GONE), "an old one");
        door.entries()
            .let_in((0, 1), [3; 16], here(port, None))
            .expect("there is room");
        door.entries().forget((0, 1));
        assert_eq!(
            says(door.port(), &knock(&[3; 16])).await,
            Some(GONE),
            "its process has ended"
        );
        // Behind a gateway: it hears the key that was given for it, and who is not let in there hears nothing.
        let gateway = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = gateway.local_addr().expect("it has one").port();
        door.entries()
            .let_in((0, 1), [4; 16], here(port, Some([5; 16])))
            .expect("there is room");
        let answers = async {
            for answer in [HERE, GONE] {
                let (mut stream, _) = gateway.accept().await.expect("it is open");
                let mut heard = [0; KNOCK];
                stream.read_exact(&mut heard).await.expect("a knock");
                assert_eq!(knocked(&heard), Some([5; 16]));
                stream.write_u8(answer).await.expect("it is open");
            }
        };
        let comers = async {
            assert_eq!(says(door.port(), &knock(&[4; 16])).await, Some(HERE));
            assert_eq!(
                says(door.port(), &knock(&[4; 16])).await,
                None,
                "the gateway turns it away"
            );
        };
        tokio::join!(answers, comers);
        drop(gateway);
        assert_eq!(says(door.port(), &knock(&[4; 16])).await, None, "there is none now");
    }
}
