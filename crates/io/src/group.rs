// SPDX-License-Identifier: Apache-2.0
//! What all processes of a file tell each other.

use std::sync::Arc;

use isthmus_abi::constants as abi;
use isthmus_core::error::{Error, Result, Subject};

use crate::task::Post;

/// Bytes of a text that all hear of.
const TEXT: usize = 512;

/// The processes of a file, as an operation of theirs sees them.
#[derive(Clone, Debug)]
pub(crate) struct Members {
    /// Own rank.
    pub(crate) me: u32,
    /// Number of processes.
    pub(crate) size: u32,
    /// First tag of the operation: equal at all, different from those of other operations under way.
    pub(crate) tag: i32,
    /// Who is at the same site.
    pub(crate) sites: Arc<Sites>,
}

/// The processes of each site, by rank; sites in order of their first process. Nobody is left out.
#[derive(Debug)]
pub(crate) struct Sites {
    ranks: Vec<Vec<u32>>,
    /// By rank: the number of its site.
    of: Vec<usize>,
}

impl Sites {
    /// From the name of each process's site.
    pub(crate) fn new<T: PartialEq>(names: impl Iterator<Item = T>) -> Self {
        let mut known: Vec<T> = Vec::new();
        let (mut ranks, mut of): (Vec<Vec<u32>>, _) = (Vec::new(), Vec::new());
        for (rank, name) in (0..).zip(names) {
            let site = known.iter().position(|other| *other == name).unwrap_or(known.len());
            if site == known.len() {
                known.push(name);
                ranks.push(Vec::new());
            }
            ranks[site].push(rank);
            of.push(site);
        }
        Self { ranks, of }
    }

    /// Number of the site of a process.
    pub(crate) fn of(&self, rank: u32) -> usize {
        self.of.get(rank as usize).copied().unwrap_or(0)
    }

    /// The processes of each site.
    pub(crate) fn all(&self) -> &[Vec<u32>] {
        &self.ranks
    }
}

/// When a process that closes a file does what is to be done at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    /// There is nothing to do.
    Nothing,
    /// When the processes of its site have come, of which it is the first: nobody waits for a second exchange between
    /// sites.
    InSite,
    /// When all have come.
    Everywhere,
}

/// Bit of the word of a process that closes a file: it cannot be closed there.
const STAYS: u32 = 33;

/// Tags that an operation may use.
pub(crate) const TAGS: i32 = 16;

impl Members {
    /// Everybody's bytes, of equal length, by rank. Each phase of an operation has its own number. Over several sites a
    /// message goes once from each site to each other one, and nobody waits for a round trip between them.
    pub(crate) async fn gather(&self, post: &Post, phase: i32, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        let tag = self.tag + phase;
        post.act_together();
        match self.sites.ranks.len() {
            0 | 1 => self.gather_near(post, tag, mine).await,
            _ => self.gather_wide(post, tag, mine.len(), || mine.to_vec()).await,
        }
    }

    /// Inside a site. (Bruck et al., Efficient algorithms for all-to-all communications in multiport message-passing
    /// systems, 1997.)
    async fn gather_near(&self, post: &Post, tag: i32, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
        let size = self.size as usize;
        let mut all = mine.to_vec();
        let mut step = 1;
        while step < size {
            let count = step.min(size - step) * mine.len();
            let towards = (self.me as usize + size - step) % size;
            let from = (self.me as usize + step) % size;
            let received = post.receive(Some(from as u32), tag, count);
            let sent = post.send(towards as u32, tag, &all[..count]);
            all.extend(received.received().await?.bytes);
            sent.sent().await?;
            step *= 2;
        }
        let mut blocks = self.blocks(&all, mine.len());
        blocks.rotate_right(self.me as usize);
        Ok(blocks)
    }

    /// Through the first process of each site, which says what it has to say when all of its site have come. `mine`:
    /// `length` bytes.
    async fn gather_wide(
        &self,
        post: &Post,
        tag: i32,
        length: usize,
        mine: impl FnOnce() -> Vec<u8>,
    ) -> Result<Vec<Vec<u8>>> {
        let own = self.sites.of(self.me);
        let ranks = &self.sites.ranks[own];
        let leader = ranks[0];
        if self.me != leader {
            let all = post.receive(Some(leader), tag, length * self.size as usize);
            let sent = post.send(leader, tag, mine());
            let all = all.received().await?.bytes;
            sent.sent().await?;
            return Ok(self.blocks(&all, length));
        }
        let mut all = vec![vec![0; length]; self.size as usize];
        let elsewhere = self.sites.ranks.iter().enumerate().filter(|(site, _)| *site != own);
        let coming: Vec<_> = elsewhere
            .map(|(_, ranks)| (ranks, post.receive(Some(ranks[0]), tag, length * ranks.len())))
            .collect();
        let inside: Vec<_> = ranks[1..]
            .iter()
            .map(|rank| (*rank, post.receive(Some(*rank), tag, length)))
            .collect();
        for (rank, message) in inside {
            all[rank as usize] = message.received().await?.bytes;
        }
        all[self.me as usize] = mine();
        let ours: Vec<u8> = ranks.iter().flat_map(|rank| all[*rank as usize].clone()).collect();
        let mut sent: Vec<_> = coming
            .iter()
            .map(|(ranks, _)| post.send(ranks[0], tag, ours.clone()))
            .collect();
        for (ranks, message) in coming {
            let theirs = message.received().await?.bytes;
            for (at, rank) in ranks.iter().enumerate() {
                all[*rank as usize] = theirs
                    .get(at * length..)
                    .map_or(Vec::new(), |rest| rest[..length.min(rest.len())].to_vec());
            }
        }
        let joined = all.concat();
        sent.extend(ranks[1..].iter().map(|rank| post.send(*rank, tag, joined.clone())));
        for message in sent {
            message.sent().await?;
        }
        Ok(all)
    }

    fn blocks(&self, all: &[u8], length: usize) -> Vec<Vec<u8>> {
        let mut blocks: Vec<_> = all.chunks_exact(length.max(1)).map(<[u8]>::to_vec).collect();
        blocks.resize(self.size as usize, Vec::new());
        blocks
    }

    /// Everybody's word.
    pub(crate) async fn words(&self, post: &Post, phase: i32, mine: u64) -> Result<Vec<u64>> {
        let all = self.gather(post, phase, &mine.to_le_bytes()).await?;
        Ok(all.iter().map(|bytes| word(bytes)).collect())
    }

    /// The same outcome for all: the first error, if there is one. Takes two phases.
    pub(crate) async fn agree(&self, post: &Post, phase: i32, mine: Result<()>) -> Result<()> {
        self.outcome(post, phase, mine).await?
    }

    /// As [`Members::agree`]; the outer error is that the processes could not tell each other.
    pub(crate) async fn outcome(&self, post: &Post, phase: i32, mine: Result<()>) -> Result<Result<()>> {
        let classes = self.words(post, phase, code(&mine)).await?;
        self.compared(post, phase + 1, mine, classes).await
    }

    /// All have come to close the file. `stays`: it cannot be closed here, and so stays open at all, which the first
    /// value says; `mine`: what went wrong so far. `work`: what each does when the others have come, as `last` says.
    /// The second value is the outcome, the same for all. Takes three phases.
    pub(crate) async fn come_to_close(
        &self,
        post: &Post,
        phase: i32,
        stays: bool,
        mut mine: Result<()>,
        last: Last,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<(bool, Result<()>)> {
        let stays = u64::from(stays) << STAYS;
        let mut all: Vec<u64>;
        if last == Last::InSite && self.sites.ranks.len() > 1 {
            post.act_together();
            let before = mine.clone();
            let said = || {
                mine = if stays == 0 {
                    let worked = work();
                    before.and(worked)
                } else {
                    before
                };
                (code(&mine) | stays).to_le_bytes().to_vec()
            };
            let said = self.gather_wide(post, self.tag + phase, 8, said).await?;
            all = said.iter().map(|bytes| word(bytes)).collect();
        } else {
            all = self.words(post, phase, code(&mine) | stays).await?;
            if last != Last::Nothing && all.iter().all(|said| said >> STAYS == 0) {
                let worked = work();
                mine = mine.and(worked);
                all = self.words(post, phase + 1, code(&mine)).await?;
            }
        }
        let stays = all.iter().any(|said| said >> STAYS != 0);
        all.iter_mut().for_each(|said| *said &= !(1 << STAYS));
        Ok((stays, self.compared(post, phase + 2, mine, all).await?))
    }

    /// The same outcome for all, from what all have said of theirs.
    async fn compared(&self, post: &Post, phase: i32, mine: Result<()>, classes: Vec<u64>) -> Result<Result<()>> {
        let Some(first) = classes.iter().position(|class| *class != 0) else {
            return Ok(Ok(()));
        };
        let mut text = [0; TEXT];
        if let Err(error) = &mine {
            let said = error.to_string();
            let bytes = said.as_bytes();
            let length = bytes.len().min(TEXT);
            text[..length].copy_from_slice(&bytes[..length]);
        }
        let texts = self.gather(post, phase, &text).await?;
        if first == self.me as usize {
            return Ok(mine);
        }
        let text = String::from_utf8_lossy(&texts[first]);
        let (class, text) = (classes[first] as u32 as i32, text.trim_end_matches('\0'));
        Ok(Err(match classes[first] >> 32 {
            0 => Error::new(class, format!("at rank {first}: {text}")),
            _ => Error::named(class, text),
        }))
    }

    /// Everybody's `length` bytes by rank, or for all the first error of those who have none: whoever has an argument
    /// that is wrong says so here, so that nobody waits for it in vain. Takes two phases. The outer error is that the
    /// processes could not tell each other.
    pub(crate) async fn gather_all(
        &self,
        post: &Post,
        phase: i32,
        mine: Result<&[u8]>,
        length: usize,
    ) -> Result<Result<Vec<Vec<u8>>>> {
        let outcome = mine.as_ref().map(drop).map_err(Error::clone);
        let mut said = code(&outcome).to_le_bytes().to_vec();
        said.extend(mine.unwrap_or_default());
        said.resize(8 + length, 0);
        let mut all = self.gather(post, phase, &said).await?;
        let classes = all.iter().map(|said| word(said)).collect();
        let agreed = self.compared(post, phase + 1, outcome, classes).await?;
        Ok(agreed.map(|()| {
            all.iter_mut().for_each(|said| drop(said.drain(..said.len().min(8))));
            all
        }))
    }

    /// What all say, if it is the same. Takes two phases.
    pub(crate) async fn same<const N: usize>(
        &self,
        post: &Post,
        phase: i32,
        mine: Result<[u8; N]>,
        argument: &str,
    ) -> Result<[u8; N]> {
        let said = mine.as_ref().map(|mine| &mine[..]).map_err(Error::clone);
        let all = self.gather_all(post, phase, said, N).await??;
        let mine = mine?;
        match all.iter().position(|theirs| theirs[..] != mine) {
            None => Ok(mine),
            Some(rank) => Err(not_same(argument, rank, self.me)),
        }
    }
}

/// An outcome as a word: the class of its error, and whether that is named; 0: none.
fn code(outcome: &Result<()>) -> u64 {
    outcome.as_ref().err().map_or(0, |error| {
        let named = u64::from(error.subject == Subject::Named);
        u64::from(error.class as u32) | named << 32
    })
}

/// The error of arguments that should be equal.
pub(crate) fn not_same(argument: &str, rank: usize, me: u32) -> Error {
    Error::of_argument(
        abi::MPI_ERR_NOT_SAME,
        argument,
        format!("must be the same on all processes, but rank {rank} gave another one than rank {me}"),
    )
}

/// A number that has travelled.
pub(crate) fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_have_their_processes_in_order() {
        let sites = Sites::new(["a", "b", "a", "c", "b"].into_iter());
        assert_eq!(sites.all(), [vec![0, 2], vec![1, 4], vec![3]]);
        assert_eq!((sites.of(2), sites.of(4), sites.of(3)), (0, 1, 2));
    }
}
