// SPDX-License-Identifier: Apache-2.0
//! The agent on a node that a scheduler has allocated: connects to the agent that submitted it, proves that it belongs
//! there, and serves it as any agent serves its coordinator.

use crate::secure::secure;
use isthmus_identity::{Fingerprint, pinned_client};
use isthmus_sched::slots;
use isthmus_stage::content::hex;
use isthmus_wire::grid::NodeHello;
use rustls::ClientConnection;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// Variable with the secret of a submission, in hexadecimal digits, where a scheduler carries it privately.
pub(crate) const SECRET: &str = isthmus_settings::NODE_SECRET.name;
/// File with it in the directory of the submission.
pub(crate) const SECRET_FILE: &str = "secret";
/// How long one attempt to connect may take.
const CONNECTING: Duration = Duration::from_secs(10);
/// How often all addresses are tried.
const ROUNDS: u32 = 3;

/// Where the submitting agent is, and which node this is.
struct NodeArguments {
    spool: PathBuf,
    addresses: Vec<String>,
    port: u16,
    fingerprint: Fingerprint,
    node: u32,
    nodes: u32,
    slots: u32,
}

/// `isthmus node SPOOL ADDRESSES PORT FINGERPRINT NODE NODES SLOTS`: runs until the submitting agent or the scheduler
/// ends it.
pub fn run(binary: PathBuf, arguments: &[String]) -> io::Result<()> {
    let place = parse(arguments).ok_or_else(|| io::Error::other("this command is for isthmus itself"))?;
    let secret = secret(&place.spool)?;
    // What a scheduler started it ends by process group: stay in it.
    crate::prepare();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        let stream = connect(&place).await?;
        let (config, name) = pinned_client(place.fingerprint).map_err(io::Error::other)?;
        let connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
        let _ = stream.set_nodelay(true);
        let (reader, mut writer) = tokio::io::split(secure(stream, connection));
        let hello = NodeHello {
            secret,
            node: place.node,
            nodes: place.nodes,
            slots: place.slots,
            name: node_name(),
        };
        writer.write_all(&hello.encode()).await?;
        crate::serve(reader, writer, binary, crate::Role::Node).await
    });
    runtime.shutdown_background();
    result
}

/// What the scheduler calls this node, where it says so, or the host name; cut, because names have 253 bytes at most.
fn node_name() -> String {
    let told = std::env::var("SLURMD_NODENAME").ok().filter(|name| !name.is_empty());
    let mut name = told.unwrap_or_else(|| rustix::system::uname().nodename().to_string_lossy().into_owned());
    name.truncate((0..=253).rev().find(|&at| name.is_char_boundary(at)).unwrap_or(0));
    name
}

fn parse(arguments: &[String]) -> Option<NodeArguments> {
    let [spool, addresses, port, fingerprint, node, nodes, slots_of_all] = arguments else {
        return None;
    };
    let (node, nodes): (u32, u32) = (node.parse().ok()?, nodes.parse().ok()?);
    (node < nodes).then(|| {
        Some(NodeArguments {
            spool: isthmus_stage::words::path(spool),
            addresses: addresses.split(',').map(str::to_owned).collect(),
            port: port.parse().ok()?,
            fingerprint: unhex(fingerprint)?,
            node,
            nodes,
            slots: slots(slots_of_all, node),
        })
    })?
}

fn secret(spool: &Path) -> io::Result<[u8; 32]> {
    let text = match isthmus_settings::NODE_SECRET.read(std::env::var_os) {
        Some(text) => text,
        None => {
            let path = spool.join(SECRET_FILE);
            std::fs::read_to_string(&path).map_err(|e| {
                let path = path.display();
                io::Error::new(
                    e.kind(),
                    format!("{path}: {e}: this node and the one that submitted do not share a directory"),
                )
            })?
        }
    };
    unhex(text.trim()).ok_or_else(|| io::Error::other("the secret of the submission is damaged"))
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    (hex(&bytes) == text).then_some(bytes)
}

async fn connect(place: &NodeArguments) -> io::Result<TcpStream> {
    let mut tried = Vec::new();
    for round in 0..ROUNDS {
        for address in &place.addresses {
            let attempt = tokio::time::timeout(CONNECTING, TcpStream::connect((address.as_str(), place.port))).await;
            match attempt {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => tried.push(format!("{address}: {error}")),
                Err(_) => tried.push(format!("{address}: no answer for {} s", CONNECTING.as_secs())),
            }
        }
        tokio::time::sleep(Duration::from_secs(1 << round)).await;
    }
    tried.truncate(place.addresses.len());
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let (port, tried) = (place.port, tried.join(", "));
    Err(io::Error::other(format!(
        "node {host} cannot reach the agent that submitted it at port {port}: {tried}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_checked() {
        let good = ["/s", "10.0.0.1,::1", "9", &"ab".repeat(32), "1", "2", "4(x2)"];
        let parse = |words: &[&str]| parse(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>());
        let place = parse(&good).unwrap();
        assert_eq!(
            (place.addresses.len(), place.port, place.node, place.nodes, place.slots),
            (2, 9, 1, 2, 4)
        );
        for (at, bad) in [(2, "x"), (3, "ab"), (3, &"zz".repeat(32)), (4, "2"), (5, "")] {
            let mut words = good;
            words[at] = bad;
            assert!(parse(&words).is_none(), "{words:?}");
        }
        assert!(parse(&good[1..]).is_none());
    }
}
