// SPDX-License-Identifier: Apache-2.0
//! One node's part of a submission: which processes, and what their indices are here and there.

use crate::happening::Ready;
use crate::link::Outbox;
use crate::sink::{Sink, Sinks};
use isthmus_wire::grid::{self, AgentHello, Commit, FromAgent, Input, Section, Start, Stream, ToAgent};
use isthmus_wire::question::Answer;
use std::path::{Path, PathBuf};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

/// One node.
#[derive(Debug)]
pub(super) struct AllocatedNode {
    pub(super) node: u32,
    pub(super) nodes: u32,
    /// What the scheduler calls the node.
    pub(super) name: String,
    pub(super) hello: AgentHello,
    /// Index within the subjob of its first process, and how many it has.
    pub(super) first: u32,
    pub(super) count: u32,
    pub(super) started: bool,
    /// Its connection is closed, or it has said farewell.
    pub(super) gone: bool,
    slots: u32,
    /// It has been told to end.
    ending: bool,
    ended: u32,
    paths: Vec<(PathBuf, String)>,
    sender: mpsc::UnboundedSender<Vec<u8>>,
    printing: Option<(mpsc::UnboundedSender<FromAgent>, JoinHandle<()>)>,
}

impl AllocatedNode {
    pub(super) fn new(ready: Ready, outbox: Outbox, sinks: Sinks) -> Self {
        // Bounded by the credit that the node has.
        let (queue, prints) = mpsc::unbounded_channel();
        let printing = tokio::spawn(print(prints, outbox, sinks, ready.sender.clone()));
        Self {
            node: ready.node,
            nodes: ready.nodes,
            name: ready.name,
            hello: ready.hello,
            first: 0,
            count: 0,
            started: false,
            gone: false,
            slots: ready.slots,
            ending: false,
            ended: 0,
            paths: ready.paths,
            sender: ready.sender,
            printing: Some((queue, printing)),
        }
    }

    pub(super) fn send(&self, message: &ToAgent) {
        // A closed connection has been or will be told by its task.
        let _ = self.sender.send(message.encode());
    }

    /// Tells it to end, once.
    pub(super) fn end(&mut self) {
        if !std::mem::replace(&mut self.ending, true) {
            self.send(&ToAgent::End);
        }
    }

    /// Queues what is told in the order of the output.
    pub(super) fn print(&self, message: FromAgent) {
        if let Some((queue, _)) = &self.printing {
            let _ = queue.send(message);
        }
    }

    /// Whether all its processes have ended.
    pub(super) fn is_done(&self) -> bool {
        self.ended == self.count
    }

    /// What this node is to start.
    pub(super) fn start(&self, whole: &Start) -> Start {
        let there = |path: &Path| {
            self.paths
                .iter()
                .find(|(here, _)| here == path)
                .map(|(_, there)| there.clone())
        };
        let inside = |directory: &Path| {
            let (_, there) = self.paths.iter().find(|(here, _)| here.parent() == Some(directory))?;
            Some(Path::new(there).parent()?.to_string_lossy().into_owned())
        };
        let section = |(first, section): (u32, &Section)| {
            // Several directories, when the site lacked libraries of the program.
            let libraries = section.library.split(':');
            let libraries = libraries.map(|one| inside(Path::new(one)).unwrap_or_else(|| one.to_owned()));
            let program = there(Path::new(&section.program));
            Section {
                first,
                program: program.unwrap_or_else(|| section.program.clone()),
                library: libraries.collect::<Vec<_>>().join(":"),
                ..section.clone()
            }
        };
        Start {
            first: self.first,
            count: self.count,
            sections: share(&whole.sections, self.first, self.count).map(section).collect(),
            input: match whole.input {
                Input::One(index) if self.holds(index) => Input::One(index - self.first),
                Input::One(_) => Input::Nobody,
                other => other,
            },
            stdout: String::new(),
            stderr: String::new(),
            allocation: None,
            ..whole.clone()
        }
    }

    pub(super) fn holds(&self, index: u32) -> bool {
        (self.first..self.first + self.count).contains(&index)
    }

    /// The coordinator's answer to one of its processes.
    pub(super) fn answer(&self, index: u32, answer: Answer) {
        let index = index - self.first;
        self.send(&ToAgent::Answer { index, answer });
    }

    /// Whether processes here get the coordinator's input.
    pub(super) fn reads(&self, input: Input) -> bool {
        match input {
            Input::Nobody => false,
            Input::One(index) => self.holds(index),
            Input::All => self.count > 0,
        }
    }

    /// This node's share of what opens the barrier.
    pub(super) fn share_of(&self, commit: &Commit) -> Commit {
        let certificates = commit
            .certificates
            .iter()
            .skip(self.first as usize)
            .take(self.count as usize);
        Commit {
            certificates: certificates.cloned().collect(),
            ..commit.clone()
        }
    }

    pub(super) fn place(&self) -> grid::NodeProcesses {
        grid::NodeProcesses {
            host: self.hello.host.clone(),
            addresses: self.hello.addresses.clone(),
            processors: self.hello.processors,
            processes: self.count,
        }
    }

    /// A message with the indices of the subjob; `None` for a process that the node does not have.
    pub(super) fn translate(&mut self, message: FromAgent) -> Option<FromAgent> {
        let (first, count) = (self.first, self.count);
        let of = |index: u32| (index < count).then(|| first + index);
        Some(match message {
            FromAgent::Arrived(mut list) => {
                for arrival in &mut list {
                    arrival.index = of(arrival.index)?;
                }
                FromAgent::Arrived(list)
            }
            FromAgent::Output { index, stream, bytes } => FromAgent::Output {
                index: of(index)?,
                stream,
                bytes,
            },
            FromAgent::Exited(mut list) => {
                for (index, _) in &mut list {
                    *index = of(*index)?;
                }
                self.ended = self.ended.saturating_add(u32::try_from(list.len()).unwrap_or(u32::MAX));
                FromAgent::Exited(list)
            }
            FromAgent::Finished { index, counters } => FromAgent::Finished {
                index: of(index)?,
                counters,
            },
            FromAgent::Traffic { first, traffic } => FromAgent::Traffic {
                first: of(first)?,
                traffic,
            },
            FromAgent::Time(first, time) => FromAgent::Time(of(first)?, time),
            FromAgent::Waiting { index, waiting } => FromAgent::Waiting {
                index: of(index)?,
                waiting,
            },
            FromAgent::Conditions(mut all) => {
                for one in &mut all {
                    one.index = of(one.index)?;
                }
                FromAgent::Conditions(all)
            }
            FromAgent::Aborted { index, code, reason } => FromAgent::Aborted {
                index: of(index)?,
                code,
                reason,
            },
            FromAgent::Asked { index, question } => FromAgent::Asked {
                index: of(index)?,
                question,
            },
            other => other,
        })
    }

    /// Waits until what was queued is printed.
    pub(super) async fn close(&mut self, deadline: Instant) {
        if let Some((queue, mut printing)) = self.printing.take() {
            drop(queue);
            if timeout_at(deadline, &mut printing).await.is_err() {
                printing.abort();
            }
        }
    }
}

/// Passes output on as fast as the coordinator prints it, and gives the node credit for it.
async fn print(
    mut queue: mpsc::UnboundedReceiver<FromAgent>,
    outbox: Outbox,
    sinks: Sinks,
    node: mpsc::UnboundedSender<Vec<u8>>,
) {
    while let Some(message) = queue.recv().await {
        let FromAgent::Output { index, stream, bytes } = message else {
            outbox.send(&message);
            continue;
        };
        let length = bytes.len();
        let taken = match stream {
            Stream::Output => sinks.output.write(index, stream, bytes).await,
            Stream::Error => sinks.error.write(index, stream, bytes).await,
            Stream::Trace => Sink::Coordinator(outbox.clone()).write(index, stream, bytes).await,
        };
        if !taken {
            return;
        }
        let credit = ToAgent::OutputCredit(u32::try_from(length).unwrap_or(u32::MAX));
        let _ = node.send(credit.encode());
    }
}

/// The sections that have some of `count` processes from `first` on, each with the index of its first one among them.
/// A node without processes has one too.
fn share(sections: &[Section], first: u32, count: u32) -> impl Iterator<Item = (u32, &Section)> {
    let ends = sections.iter().skip(1).map(|next| next.first).chain([u32::MAX]);
    let end = first + count.max(1);
    let shared = sections.iter().zip(ends);
    let shared = shared.filter(move |(section, end_of)| section.first < end && *end_of > first);
    shared.map(move |(section, _)| (section.first.saturating_sub(first), section))
}

/// Deals `count` processes out to the nodes, in order of their index: `even`ly, or as many to each as the scheduler has
/// room for there and what is then left evenly.
pub(super) fn distribute(parts: &mut [AllocatedNode], count: u32, even: bool) {
    parts.sort_by_key(|p| p.node);
    let slots: Vec<u32> = parts.iter().map(|p| if even { 0 } else { p.slots }).collect();
    let mut first = 0;
    for (part, share) in parts.iter_mut().zip(shares(&slots, count)) {
        (part.first, part.count) = (first, share);
        first += share;
    }
}

fn shares(slots: &[u32], count: u32) -> Vec<u32> {
    let mut left = count;
    let mut shares: Vec<u32> = slots
        .iter()
        .map(|slots| {
            let share = left.min(*slots);
            left -= share;
            share
        })
        .collect();
    let nodes = u32::try_from(slots.len()).unwrap_or(u32::MAX).max(1);
    for (node, share) in (0..nodes).zip(&mut shares) {
        *share += left / nodes + u32::from(node < left % nodes);
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_run_the_programs_of_their_processes() {
        let section = |first, program: &str| Section {
            first,
            program: program.to_owned(),
            arguments: vec![],
            environment: vec![],
            directory: String::new(),
            library: String::new(),
        };
        let sections = [section(0, "a"), section(3, "b"), section(4, "c")];
        let shown = |first, count| -> Vec<(u32, &str)> {
            share(&sections, first, count)
                .map(|(first, section)| (first, &*section.program))
                .collect()
        };
        assert_eq!(shown(0, 3), [(0, "a")]);
        assert_eq!(shown(2, 2), [(0, "a"), (1, "b")]);
        assert_eq!(shown(0, 9), [(0, "a"), (3, "b"), (4, "c")]);
        assert_eq!(shown(6, 2), [(0, "c")]);
        assert_eq!(shown(8, 0), [(0, "c")]);
    }

    #[test]
    fn processes_are_dealt_out() {
        assert_eq!(shares(&[0, 0], 5), [3, 2]);
        assert_eq!(shares(&[4, 4], 5), [4, 1]);
        assert_eq!(shares(&[2, 1], 3), [2, 1]);
        assert_eq!(shares(&[1, 1], 5), [3, 2]);
        assert_eq!(shares(&[8, 8, 8], 2), [2, 0, 0]);
        assert_eq!(shares(&[0], 1), [1]);
        for slots in [[0, 0, 0], [u32::MAX, 1, 0], [1, 2, 3]] {
            assert_eq!(shares(&slots, 17).iter().sum::<u32>(), 17);
        }
    }
}
