// SPDX-License-Identifier: Apache-2.0
//! Reaching something that has several addresses: staggered, until one of them is proven.

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use isthmus_link::handshake::{Ends, Knocked};
use isthmus_net::Prover;
use isthmus_wire::hello::{ANSWER_BYTES, REPLY_BYTES};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Time given to an address before the next one is tried beside it.
const STAGGER: Duration = Duration::from_millis(100);
/// Time after which another connection to the same address is tried beside the first.
const BESIDE: Duration = Duration::from_millis(500);
/// Longest attempt: firewalls that drop do not answer at all.
pub(crate) const ATTEMPT: Duration = Duration::from_millis(2500);

/// The first address at which `prove` succeeds, and what it gave; else what came of each.
pub(crate) async fn first<T, F>(
    addresses: &[SocketAddr],
    prove: impl Fn(TcpStream) -> F + Clone + 'static,
) -> Result<(SocketAddr, T), String>
where
    T: 'static,
    F: Future<Output = Result<T, String>> + 'static,
{
    let mut attempts = JoinSet::new();
    let mut outcomes = vec!["no answer".to_owned(); addresses.len()];
    let mut rest = addresses.iter().copied().enumerate();
    let mut left = rest.next();
    loop {
        if let Some((index, address)) = left.take() {
            let prove = prove.clone();
            attempts.spawn_local(async move {
                let once = async |after: Duration| {
                    tokio::time::sleep(after).await;
                    prove(connect(address).await?).await
                };
                // A packet that is lost here is sent again after a second; another connection is there sooner.
                let proven = async {
                    tokio::select! {
                        done = once(Duration::ZERO) => done,
                        Ok(value) = once(BESIDE) => Ok(value),
                    }
                };
                let done = tokio::time::timeout(ATTEMPT, proven).await;
                (index, done.unwrap_or_else(|_| Err("no answer".into())))
            });
            left = rest.next();
        }
        if attempts.is_empty() {
            return Err(report(addresses, &outcomes));
        }
        let wait = if left.is_some() { STAGGER } else { 2 * ATTEMPT };
        match tokio::time::timeout(wait, attempts.join_next()).await {
            Ok(Some(Ok((index, Ok(value))))) => return Ok((addresses[index], value)),
            Ok(Some(Ok((index, Err(why))))) => outcomes[index] = why,
            _ => {}
        }
    }
}

async fn connect(address: SocketAddr) -> Result<TcpStream, String> {
    let stream = TcpStream::connect(address).await.map_err(|e| e.to_string())?;
    tune(&stream);
    Ok(stream)
}

/// What every connection of ours wants. Failures do no harm.
pub(crate) fn tune(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let _ = socket2::SockRef::from(stream).set_keepalive(true);
}

fn report(addresses: &[SocketAddr], outcomes: &[String]) -> String {
    if addresses.is_empty() {
        return "no address is known".into();
    }
    let each = addresses.iter().zip(outcomes).map(|(a, why)| format!("{a} ({why})"));
    each.collect::<Vec<_>>().join("; ")
}

/// Proves both ends to each other; `verdict` is what we say last.
pub(crate) async fn shake(stream: &mut TcpStream, prover: &Prover, ends: Ends, verdict: u8) -> Result<(), String> {
    let text = |e: std::io::Error| e.to_string();
    let (knocked, bytes) = Knocked::new(prover, ends).ok_or("the system has no random numbers")?;
    stream.write_all(&bytes).await.map_err(text)?;
    let mut answer = [0; ANSWER_BYTES];
    let closed = |_| "connected, but what answered is not of this job".to_owned();
    stream.read_exact(&mut answer).await.map_err(closed)?;
    let reply: [u8; REPLY_BYTES] = knocked
        .reply(prover, &answer, verdict)
        .ok_or("connected, but what answered is not of this job")?;
    stream.write_all(&reply).await.map_err(text)
}
