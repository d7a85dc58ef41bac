// SPDX-License-Identifier: Apache-2.0
//! TLS over a connection, as a stream of plain bytes.

use std::io::{self, Read, Write};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};

/// Plain bytes that may wait in each direction.
const WINDOW: usize = 256 << 10;
/// Largest piece that is moved at once.
const PIECE: usize = 32 << 10;

/// The plain side of a connection; the other side is served by a task until either end closes.
pub fn secure(
    stream: impl AsyncRead + AsyncWrite + Send + 'static,
    connection: impl Into<rustls::Connection>,
) -> DuplexStream {
    let (plain, inner) = tokio::io::duplex(WINDOW);
    let pump = Pump {
        connection: connection.into(),
        outgoing: Pending::default(),
        incoming: Pending::default(),
    };
    tokio::spawn(async move {
        // The plain side sees the end of the stream; why it ended matters to nobody.
        let _ = pump.run(stream, inner).await;
    });
    plain
}

/// Bytes on their way to where only a part may be accepted.
#[derive(Default)]
struct Pending {
    bytes: Vec<u8>,
    at: usize,
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    fn advance(&mut self, n: usize) {
        self.at += n;
        if self.is_empty() {
            self.bytes.clear();
            self.at = 0;
        }
    }
}

struct Pump {
    connection: rustls::Connection,
    outgoing: Pending,
    incoming: Pending,
}

impl Pump {
    async fn run(mut self, stream: impl AsyncRead + AsyncWrite, plain: DuplexStream) -> io::Result<()> {
        let (mut network_in, mut network_out) = tokio::io::split(stream);
        let (mut plain_in, mut plain_out) = tokio::io::split(plain);
        let (mut received, mut given) = (vec![0; PIECE], vec![0; PIECE]);
        let mut closing = false;
        loop {
            self.encrypt()?;
            if closing && self.outgoing.is_empty() {
                return network_out.shutdown().await;
            }
            // Each branch is one system call that may be given up without loss.
            tokio::select! {
                n = network_in.read(&mut received), if self.incoming.is_empty() => {
                    let ended = !self.decrypt(&received[..n?])?;
                    if ended {
                        plain_out.write_all(self.incoming.rest()).await?;
                        return Ok(());
                    }
                }
                n = network_out.write(self.outgoing.rest()), if !self.outgoing.is_empty() => self.outgoing.advance(n?),
                n = plain_in.read(&mut given), if self.outgoing.is_empty() && !self.connection.is_handshaking() && !closing => {
                    let n = n?;
                    self.connection.writer().write_all(&given[..n])?;
                    if n == 0 {
                        self.connection.send_close_notify();
                        closing = true;
                    }
                }
                n = plain_out.write(self.incoming.rest()), if !self.incoming.is_empty() => self.incoming.advance(n?),
            }
        }
    }

    fn encrypt(&mut self) -> io::Result<()> {
        while self.connection.wants_write() {
            self.connection.write_tls(&mut self.outgoing.bytes)?;
        }
        Ok(())
    }

    /// Takes bytes from the network; false at the end of the stream.
    fn decrypt(&mut self, mut bytes: &[u8]) -> io::Result<bool> {
        let mut open = !bytes.is_empty();
        while !bytes.is_empty() {
            self.connection.read_tls(&mut bytes)?;
            let state = self.connection.process_new_packets().map_err(io::Error::other)?;
            open &= !state.peer_has_closed();
            let mut piece = vec![0; state.plaintext_bytes_to_read()];
            self.connection.reader().read_exact(&mut piece)?;
            self.incoming.bytes.append(&mut piece);
        }
        Ok(open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isthmus_identity::{Pinned, pinned_client};
    use rustls::{ClientConnection, ServerConnection};
    use tokio::net::{TcpListener, TcpStream};

    #[tokio::test]
    async fn much_goes_both_ways_at_once() {
        let agent = Pinned::new().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (config, name) = pinned_client(agent.fingerprint()).unwrap();
        let dialled = TcpStream::connect(address).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        let here = secure(dialled, ClientConnection::new(config, name).unwrap());
        let there = secure(accepted, ServerConnection::new(agent.server()).unwrap());
        let talk = |stream: DuplexStream, byte: u8| {
            tokio::spawn(async move {
                let (mut reader, mut writer) = tokio::io::split(stream);
                let write = tokio::spawn(async move {
                    writer.write_all(&vec![byte; 3 << 20]).await.unwrap();
                    writer
                });
                let mut got = vec![0; 3 << 20];
                reader.read_exact(&mut got).await.unwrap();
                assert!(got.iter().all(|b| *b == byte ^ 3));
                (write.await.unwrap(), reader)
            })
        };
        let (one, two) = (talk(here, 1), talk(there, 2));
        let (one, two) = (one.await.unwrap(), two.await.unwrap());
        drop(one);
        let mut rest = Vec::new();
        let mut reader = two.1;
        reader.read_to_end(&mut rest).await.unwrap();
        assert!(rest.is_empty(), "the end of one side is seen by the other");
    }
}
