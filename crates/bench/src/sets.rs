// SPDX-License-Identifier: Apache-2.0
//! What is measured: named sets of runs of the benchmark program.

use crate::error::Error;
use crate::program::Program;

/// A named set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Set {
    /// One machine: ping-pong of two ranks, collectives of eight.
    Local,
    /// One machine: everything that shared memory is for: messages of two ranks, collectives of 4, 8 and 16.
    Node,
    /// One machine: data in pieces packed, unpacked and sent between two ranks.
    Datatypes,
    /// Two sites: ping-pong of one rank each, collectives of four each.
    Wide,
    /// Two hosts of one site: messages of two ranks over TCP.
    Tcp,
    /// The same hosts as two sites: one long message, over TLS where a library has that.
    Tls,
    /// Init and Finalize of 2, 16 and 64 ranks; resident memory of a rank.
    Startup,
    /// CPU time of a rank that waits in MPI_Recv for ten seconds.
    Blocked,
    /// One machine whose processors are wanted by others too: ranks that wait or look, alone, beside a busy process,
    /// more ranks than processors, all on one processor.
    Busy,
    /// The same over TCP between two hosts of one site.
    BusyTcp,
    /// The same hosts as two sites: over TLS where a library has that.
    BusyTls,
    /// Two ranks on another MPI, alone and underneath this library, also with a rank of a second site that is idle.
    Vendor,
}

/// One job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) program: Program,
    /// Ranks of the whole job; over two sites half of them at each.
    pub(crate) ranks: usize,
    /// Arguments of the program; none measures the time of the whole job.
    pub(crate) arguments: &'static [&'static str],
    /// What else the machine does meanwhile.
    pub(crate) beside: Beside,
}

/// What else a machine does while a job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    Nothing,
    /// A process that always computes.
    Worker,
    /// Nothing, and the job has one processor only.
    OneProcessor,
}

/// More ranks than processors only with short messages: some libraries need seconds for each long one then.
const LOCAL: [Run; 3] = [
    Run {
        program: Program::Messages,
        ranks: 2,
        arguments: &[
            "-t",
            "0.3",
            "latency:0",
            "latency:8",
            "latency:64",
            "latency:4096",
            "latency:65536",
            "bandwidth:1048576",
            "bandwidth:16777216",
        ],
        beside: Beside::Nothing,
    },
    Run {
        program: Program::Messages,
        ranks: 2,
        arguments: &[
            "-t",
            "0.2",
            "bcast:1048576",
            "reduce:1048576",
            "allreduce:1048576",
            "alltoall:1048576",
        ],
        beside: Beside::Nothing,
    },
    Run {
        program: Program::Messages,
        ranks: 8,
        arguments: &[
            "-t",
            "0.2",
            "barrier",
            "bcast:8",
            "allreduce:8",
            "allgather:8",
            "alltoall:8",
        ],
        beside: Beside::Nothing,
    },
];

const COLLECTIVES: [&[&str]; 4] = [
    &[
        "-t",
        "0.1",
        "barrier",
        "bcast:8",
        "allreduce:8",
        "allgather:8",
        "alltoall:8",
    ],
    &[
        "-t",
        "0.1",
        "bcast:4096",
        "allreduce:4096",
        "allgather:4096",
        "alltoall:4096",
    ],
    &[
        "-t",
        "0.1",
        "bcast:65536",
        "allreduce:65536",
        "allgather:65536",
        "alltoall:65536",
    ],
    &[
        "-t",
        "0.1",
        "bcast:1048576",
        "allreduce:1048576",
        "allgather:1048576",
        "alltoall:1048576",
    ],
];

const NODE: [Run; 14] = [
    messages(
        2,
        &[
            "-t",
            "0.2",
            "latency:0",
            "latency:8",
            "latency:64",
            "latency:512",
            "latency:4096",
            "latency:65536",
        ],
    ),
    messages(
        2,
        &[
            "-t",
            "0.2",
            "bandwidth:65536",
            "bandwidth:262144",
            "bandwidth:1048576",
            "bandwidth:4194304",
            "rate:8",
        ],
    ),
    messages(4, COLLECTIVES[0]),
    messages(4, COLLECTIVES[1]),
    messages(4, COLLECTIVES[2]),
    messages(4, COLLECTIVES[3]),
    messages(8, COLLECTIVES[0]),
    messages(8, COLLECTIVES[1]),
    messages(8, COLLECTIVES[2]),
    messages(8, COLLECTIVES[3]),
    messages(16, COLLECTIVES[0]),
    messages(16, COLLECTIVES[1]),
    messages(16, COLLECTIVES[2]),
    messages(16, COLLECTIVES[3]),
];

const fn messages(ranks: usize, arguments: &'static [&'static str]) -> Run {
    Run {
        program: Program::Messages,
        ranks,
        arguments,
        beside: Beside::Nothing,
    }
}

/// A job for each kind of layout, so that libraries follow each other closely.
const DATATYPES: [Run; 6] = [
    datatypes(&[
        "vector/8:32768",
        "vector/32:32768",
        "vector/256:32768",
        "vector/4096:32768",
    ]),
    datatypes(&[
        "vector/8:4194304",
        "vector/32:4194304",
        "vector/256:4194304",
        "vector/4096:4194304",
    ]),
    datatypes(&[
        "nested/8:32768",
        "nested/64:32768",
        "nested/8:4194304",
        "nested/64:4194304",
    ]),
    datatypes(&[
        "indexed/8:32768",
        "indexed/256:32768",
        "indexed/8:4194304",
        "indexed/256:4194304",
    ]),
    datatypes(&["struct:32768", "struct:4194304"]),
    datatypes(&[
        "xface:32768",
        "yface:32768",
        "zface:32768",
        "xface:4194304",
        "yface:4194304",
        "zface:4194304",
    ]),
];

const fn datatypes(arguments: &'static [&'static str]) -> Run {
    Run {
        program: Program::Datatypes,
        ranks: 2,
        arguments,
        beside: Beside::Nothing,
    }
}

const WIDE: [Run; 2] = [
    Run {
        program: Program::Messages,
        ranks: 2,
        arguments: &["-a", "7", "latency:8", "-a", "3", "bandwidth:67108864"],
        beside: Beside::Nothing,
    },
    Run {
        program: Program::Messages,
        ranks: 8,
        arguments: &[
            "-a",
            "3",
            "barrier",
            "bcast:8",
            "allreduce:8",
            "allgather:8",
            "bcast:1048576",
            "allreduce:1048576",
            "alltoall:131072",
        ],
        beside: Beside::Nothing,
    },
];

const TCP: [Run; 2] = [
    messages(
        2,
        &["-t", "0.3", "latency:0", "latency:8", "latency:64", "latency:4096"],
    ),
    messages(
        2,
        &[
            "-t",
            "0.5",
            "bandwidth:65536",
            "bandwidth:1048576",
            "bandwidth:4194304",
            "bandwidth:67108864",
        ],
    ),
];
const TLS: [Run; 1] = [messages(2, &["-t", "1", "bandwidth:67108864"])];

const STARTUP: [Run; 4] = [
    messages(2, &[]),
    messages(16, &[]),
    messages(64, &[]),
    messages(64, &["rss", "pss"]),
];
const BLOCKED: [Run; 1] = [Run {
    program: Program::Messages,
    ranks: 2,
    arguments: &["blocked:10000"],
    beside: Beside::Nothing,
}];

const WAITS: &[&str] = &["-m", "-t", "1", "latency:8", "polled:8", "probed:8", "bandwidth:65536"];
const ALL_WAIT: &[&str] = &[
    "-m",
    "-t",
    "1",
    "all-latency:8",
    "all-polled:8",
    "all-probed:8",
    "bandwidth:65536",
];

/// On a machine with two processors: two ranks, and twice as many ranks as processors.
fn busy(processors: usize) -> Vec<Run> {
    let run = |ranks, beside| Run {
        beside,
        ..messages(ranks, if ranks == 2 { WAITS } else { ALL_WAIT })
    };
    let many = 2 * processors;
    vec![
        run(2, Beside::Nothing),
        run(2, Beside::Worker),
        run(2, Beside::OneProcessor),
        run(many, Beside::Nothing),
        run(many, Beside::Worker),
    ]
}

/// The third rank of ours is at a site of its own; the others have none.
const VENDOR: [Run; 2] = [
    Run {
        program: Program::Messages,
        ranks: 2,
        arguments: &[
            "-t",
            "0.2",
            "latency:8",
            "bandwidth:1048576",
            "allreduce:8",
            "bcast:8",
            "alltoall:8",
            "allreduce:65536",
            "bcast:65536",
            "alltoall:65536",
        ],
        beside: Beside::Nothing,
    },
    Run {
        program: Program::Messages,
        ranks: 3,
        arguments: &["pending:8", "any:8"],
        beside: Beside::Nothing,
    },
];

impl Set {
    const ALL: [Self; 12] = [
        Self::Local,
        Self::Node,
        Self::Datatypes,
        Self::Wide,
        Self::Tcp,
        Self::Tls,
        Self::Startup,
        Self::Blocked,
        Self::Busy,
        Self::BusyTcp,
        Self::BusyTls,
        Self::Vendor,
    ];

    /// The sets with these names, or all of them.
    pub(crate) fn named(names: &[String]) -> Result<Vec<Self>, Error> {
        if names.iter().any(|name| name == "all") {
            return Ok(Self::ALL.to_vec());
        }
        let find = |name: &String| {
            Self::ALL
                .into_iter()
                .find(|set| set.name() == name)
                .ok_or_else(|| unknown(name))
        };
        names.iter().map(find).collect()
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Node => "node",
            Self::Datatypes => "datatypes",
            Self::Wide => "wide",
            Self::Tcp => "tcp",
            Self::Tls => "tls",
            Self::Startup => "startup",
            Self::Blocked => "blocked",
            Self::Busy => "busy",
            Self::BusyTcp => "busy-tcp",
            Self::BusyTls => "busy-tls",
            Self::Vendor => "vendor",
        }
    }

    /// Whether it measures what depends on how far processors of this machine are apart, emulated hosts included.
    pub(crate) fn minds_distance(self) -> bool {
        matches!(self, Self::Local | Self::Node | Self::Vendor | Self::Tcp | Self::Tls)
    }

    /// Its jobs, on a machine with so many processors.
    pub(crate) fn runs(self, processors: usize) -> Vec<Run> {
        match self {
            Self::Local => LOCAL.to_vec(),
            Self::Node => NODE.to_vec(),
            Self::Datatypes => DATATYPES.to_vec(),
            Self::Wide => WIDE.to_vec(),
            Self::Tcp => TCP.to_vec(),
            Self::Tls => TLS.to_vec(),
            Self::Startup => STARTUP.to_vec(),
            Self::Blocked => BLOCKED.to_vec(),
            Self::Busy | Self::BusyTcp | Self::BusyTls => busy(processors),
            Self::Vendor => VENDOR.to_vec(),
        }
    }
}

impl Beside {
    /// Behind the name of a test.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::Worker => "+busy",
            Self::OneProcessor => "+one-core",
        }
    }
}

impl Run {
    /// Whether the last rank does nothing.
    pub(crate) fn idle_rank(&self) -> bool {
        self.arguments.iter().any(|a| a.starts_with("pending"))
    }

    /// Whether what it measures depends on how far two processors are apart: those of two ranks, or all there are.
    pub(crate) fn minds_distance(&self, processors: usize) -> bool {
        let of_memory = self.arguments.iter().any(|a| ["rss", "pss"].contains(a));
        let moves = self.program == Program::Messages && !self.arguments.is_empty() && !of_memory;
        moves && (self.ranks <= 3 || processors == 2)
    }

    pub(crate) fn label(&self) -> String {
        let first = self
            .arguments
            .iter()
            .find(|a| a.starts_with(|c: char| c.is_ascii_lowercase()));
        format!("{} ranks, {}", self.ranks, first.map_or("whole job", |a| *a))
    }
}

fn unknown(name: &str) -> Error {
    let known = Set::ALL.map(Set::name).join(", ") + ", all";
    Error::Unknown {
        kind: "set",
        name: name.to_owned(),
        known,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_find_sets() {
        let names = |list: &[&str]| Set::named(&list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>());
        assert_eq!(names(&["wide", "local"]).unwrap(), [Set::Wide, Set::Local]);
        assert_eq!(names(&["all"]).unwrap().len(), 12);
        assert!(
            names(&["lokal"])
                .unwrap_err()
                .to_string()
                .contains("local, node, datatypes, wide")
        );
    }
}
