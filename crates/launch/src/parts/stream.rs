// SPDX-License-Identifier: Apache-2.0
//! Messages of [`isthmus_wire::gathering`] on a stream, each with a bound that depends on who sends it.

use isthmus_wire::codec::MAX_MESSAGE;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Longest message of whoever is known.
pub(crate) const LONGEST: usize = MAX_MESSAGE;
/// Room that is made for a message before any of it has come.
const AT_ONCE: usize = 64 << 10;

/// The next message, without its length.
pub(crate) async fn receive(stream: &mut (impl AsyncRead + Unpin), longest: usize) -> io::Result<Vec<u8>> {
    let length = stream.read_u32_le().await? as usize;
    if length == 0 || length > longest {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("a message of {length} bytes"),
        ));
    }
    // Only what has come takes memory.
    let mut body = Vec::with_capacity(length.min(AT_ONCE));
    stream.take(length as u64).read_to_end(&mut body).await?;
    match body.len() == length {
        true => Ok(body),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Sends a message that has its length.
pub(crate) async fn send(stream: &mut (impl AsyncWrite + Unpin), message: &[u8]) -> io::Result<()> {
    stream.write_all(message).await?;
    stream.flush().await
}
