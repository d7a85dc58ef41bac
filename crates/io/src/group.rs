// SPDX-License-Identifier: Apache-2.0
//! What all processes of a file tell each other.

use isthmus_abi::constants as abi;
use isthmus_core::error::{Error, Result};

use crate::task::Port;

/// Bytes of a text that all hear of.
const TEXT: usize = 512;

/// The processes of a file, as an operation of theirs sees them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Members {
    /// Own rank.
    pub(crate) me: u32,
    /// Number of processes.
    pub(crate) size: u32,
    /// First tag of the operation: equal at all, different from those of other operations under way.
    pub(crate) tag: i32,
}

/// Tags that an operation may use.
pub(crate) const TAGS: i32 = 16;

impl Members {
    /// Everybody's bytes, of equal length, by rank. Each phase of an operation has its own number. (Bruck et al., Efficient
    /// algorithms for all-to-all communications in multiport message-passing systems, 1997.)
    pub(crate) async fn gather(&self, port: &Port, phase: i32, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        let (size, tag) = (self.size as usize, self.tag + phase);
        let mut all = mine.to_vec();
        let mut step = 1;
        while step < size {
            let count = step.min(size - step) * mine.len();
            let towards = (self.me as usize + size - step) % size;
            let from = (self.me as usize + step) % size;
            let received = port.receive(Some(from as u32), tag, count);
            let sent = port.send(towards as u32, tag, &all[..count]);
            all.extend(received.received().await?.bytes);
            sent.sent().await?;
            step *= 2;
        }
        let mut blocks: Vec<Vec<u8>> = match mine.len() {
            0 => vec![Vec::new(); size],
            length => all.chunks_exact(length).map(<[u8]>::to_vec).collect(),
        };
        blocks.rotate_right(self.me as usize);
        Ok(blocks)
    }

    /// Everybody's word.
    pub(crate) async fn words(&self, port: &Port, phase: i32, mine: u64) -> Result<Vec<u64>> {
        let all = self.gather(port, phase, &mine.to_le_bytes()).await?;
        Ok(all.iter().map(|bytes| word(bytes)).collect())
    }

    /// The same outcome for all: the first error, if there is one. Takes two phases.
    pub(crate) async fn agree(&self, port: &Port, phase: i32, mine: Result<()>) -> Result<()> {
        let class = mine.as_ref().err().map_or(0, |error| error.class as u64);
        let classes = self.words(port, phase, class).await?;
        let Some(first) = classes.iter().position(|class| *class != 0) else {
            return Ok(());
        };
        let mut text = [0; TEXT];
        if let Err(error) = &mine {
            let said = error.to_string();
            let bytes = said.as_bytes();
            let length = bytes.len().min(TEXT);
            text[..length].copy_from_slice(&bytes[..length]);
        }
        let texts = self.gather(port, phase + 1, &text).await?;
        if first == self.me as usize {
            return mine;
        }
        let text = String::from_utf8_lossy(&texts[first]);
        Err(Error::new(classes[first] as i32, text.trim_end_matches('\0')))
    }

    /// The word of all, if they say the same.
    pub(crate) async fn same(&self, port: &Port, phase: i32, mine: &[u8], argument: &str) -> Result<()> {
        let all = self.gather(port, phase, mine).await?;
        match all.iter().position(|theirs| theirs != mine) {
            None => Ok(()),
            Some(rank) => Err(Error::of_argument(
                abi::MPI_ERR_NOT_SAME,
                argument,
                format!(
                    "must be the same on all processes, but rank {rank} gave another one than rank {}",
                    self.me
                ),
            )),
        }
    }
}

/// A number that has travelled.
pub(crate) fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
