// SPDX-License-Identifier: Apache-2.0
//! What a site says of itself.

use super::flag;
use crate::codec::{DecodeError, Reader, Writer};
use crate::grid::Scheduler;

/// What a site has.
///
/// As bytes, in this order: host text, architecture text, system text, processors u32, memory u64, load u32, addresses
/// \[text\], interfaces \[named\], schedulers \[u8\], queues \[queue\], accounts \[text\], compilers \[named\], mpis
/// \[named\], modules text, module names \[text\], shared home u8, home text; `named` is name text, text; `queue` is
/// scheduler u8, name text, nodes u32, cores u32, free u32, memory u64, limit u32, running u32, pending u32, wait u32,
/// open u8, usual u8.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Host name of the machine that answers.
    pub host: String,
    /// As `uname -m` prints it.
    pub architecture: String,
    /// Operating system.
    pub system: String,
    /// Processors of that machine.
    pub processors: u32,
    /// Bytes of its memory.
    pub memory: u64,
    /// Hundredths of processes that want to run there, mean of a minute.
    pub load: u32,
    /// Its addresses, most promising first.
    pub addresses: Vec<String>,
    /// Its network interfaces: name, and rate or state.
    pub interfaces: Vec<Named>,
    /// Schedulers whose commands are there and answer.
    pub schedulers: Vec<Scheduler>,
    /// Their queues.
    pub queues: Vec<Queue>,
    /// Accounts that may be charged.
    pub accounts: Vec<String>,
    /// Compilers: command, version.
    pub compilers: Vec<Named>,
    /// MPI installations: command, version.
    pub mpis: Vec<Named>,
    /// The module system, if there is one.
    pub modules: String,
    /// Modules that have to do with MPI and compilers.
    pub module_names: Vec<String>,
    /// Whether the home directory is on a file system that several machines see.
    pub shared_home: bool,
    /// The home directory.
    pub home: String,
}

/// Something with a name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// The name.
    pub name: String,
    /// What is to say of it.
    pub text: String,
}

/// A queue of a scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Whose.
    pub scheduler: Scheduler,
    /// Its name.
    pub name: String,
    /// Nodes, 0 for unknown.
    pub nodes: u32,
    /// Processors in all.
    pub cores: u32,
    /// Processors that nobody uses.
    pub free: u32,
    /// Bytes of memory of its smallest node, 0 for unknown.
    pub memory: u64,
    /// Longest job, seconds, 0 for none.
    pub limit: u32,
    /// Jobs that run.
    pub running: u32,
    /// Jobs that wait.
    pub pending: u32,
    /// Seconds that a job of one processor would probably wait; [`Queue::UNKNOWN`] when nobody knows.
    pub wait: u32,
    /// Whether it takes and starts jobs.
    pub open: bool,
    /// Whether a job that names no queue goes there.
    pub usual: bool,
}

impl Queue {
    /// A wait that nobody knows.
    pub const UNKNOWN: u32 = u32::MAX;

    fn write(&self, w: &mut Writer) {
        w.u8(self.scheduler as u8).text(&self.name);
        w.u32(self.nodes).u32(self.cores).u32(self.free).u64(self.memory);
        w.u32(self.limit).u32(self.running).u32(self.pending).u32(self.wait);
        w.u8(self.open.into()).u8(self.usual.into());
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            scheduler: Scheduler::read(r)?,
            name: r.text("queue")?,
            nodes: r.u32("nodes")?,
            cores: r.u32("cores")?,
            free: r.u32("free")?,
            memory: r.u64("memory")?,
            limit: r.u32("limit")?,
            running: r.u32("running")?,
            pending: r.u32("pending")?,
            wait: r.u32("wait")?,
            open: flag(r, "open")?,
            usual: flag(r, "usual")?,
        })
    }
}

impl Named {
    fn write(&self, w: &mut Writer) {
        w.text(&self.name).text(&self.text);
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            name: r.text("name")?,
            text: r.text("text")?,
        })
    }
}

fn texts(w: &mut Writer, texts: &[String]) {
    w.list(texts, |w, text| {
        w.text(text);
    });
}

impl Facts {
    pub(super) fn write(&self, w: &mut Writer) {
        w.text(&self.host).text(&self.architecture).text(&self.system);
        w.u32(self.processors).u64(self.memory).u32(self.load);
        texts(w, &self.addresses);
        w.list(&self.interfaces, |w, named| named.write(w));
        w.list(&self.schedulers, |w, s| {
            w.u8(*s as u8);
        });
        w.list(&self.queues, |w, queue| queue.write(w));
        texts(w, &self.accounts);
        w.list(&self.compilers, |w, named| named.write(w));
        w.list(&self.mpis, |w, named| named.write(w));
        w.text(&self.modules);
        texts(w, &self.module_names);
        w.u8(self.shared_home.into()).text(&self.home);
    }

    pub(super) fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let texts = |r: &mut Reader<'_>| r.list("texts", |r| r.text("text"));
        Ok(Self {
            host: r.text("host")?,
            architecture: r.text("architecture")?,
            system: r.text("system")?,
            processors: r.u32("processors")?,
            memory: r.u64("memory")?,
            load: r.u32("load")?,
            addresses: texts(r)?,
            interfaces: r.list("interfaces", Named::read)?,
            schedulers: r.list("schedulers", Scheduler::read)?,
            queues: r.list("queues", Queue::read)?,
            accounts: texts(r)?,
            compilers: r.list("compilers", Named::read)?,
            mpis: r.list("mpis", Named::read)?,
            modules: r.text("modules")?,
            module_names: texts(r)?,
            shared_home: flag(r, "shared home")?,
            home: r.text("home")?,
        })
    }
}

#[cfg(test)]
pub(super) fn example() -> Facts {
    Facts {
        host: "lab1".into(),
        processors: 8,
        memory: 1 << 34,
        addresses: vec!["10.0.0.1".into()],
        schedulers: vec![Scheduler::Slurm],
        queues: vec![Queue {
            scheduler: Scheduler::Slurm,
            name: "debug".into(),
            nodes: 2,
            cores: 16,
            free: 4,
            memory: 0,
            limit: 3600,
            running: 1,
            pending: 0,
            wait: Queue::UNKNOWN,
            open: true,
            usual: true,
        }],
        mpis: vec![Named {
            name: "mpicc".into(),
            text: "MPICH 4.2".into(),
        }],
        ..Facts::default()
    }
}
