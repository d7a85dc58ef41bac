// SPDX-License-Identifier: Apache-2.0
//! From command line, TOML and host files to one [`Job`]; co-allocation as a state machine.
//!
//! Everything here is pure: text and events come in, values and actions go out. Time is an argument.
//!
//! * [`model`]: what a job is and what makes one valid.
//! * [`program`], [`sections`]: the programs of a subjob.
//! * [`naming`]: names of jobs.
//! * [`moved`]: a job whose coordinator is at another site.
//! * [`forms`]: how people write jobs: command lines, `--site`, host files, RSL, `job.toml`; read and written.
//! * [`grid`]: the file that describes sites and links for `isthmus simulate` and `isthmus explain`.
//! * [`links`]: what job files, topology files and files of pins say about links.
//! * [`cache`]: what earlier jobs measured of links.
//! * [`address`]: IPv6 addresses as people write hosts.
//! * [`quantity`]: sizes, times and rates.
//! * [`allocation`]: what a subjob may ask of a scheduler.
//! * [`terms`]: on which terms a subjob takes part in a job.
//! * [`coallocation`]: the life of a job over all its sites.
//! * [`gathering`]: parts that are started by hand and become one job.
//! * [`numbering`]: ranks and the place table.
#![forbid(unsafe_code)]

pub mod address;
pub mod allocation;
mod asked;
pub mod attributes;
pub mod cache;
pub mod catalogue;
pub mod coallocation;
mod contact;
pub mod error;
pub mod forms;
pub mod gathering;
pub mod grid;
pub mod links;
pub mod model;
pub mod moved;
pub mod naming;
pub mod network;
pub mod numbering;
pub mod placement;
pub mod program;
pub mod quantity;
mod quoted;
pub mod scratch;
pub mod sections;
mod source;
mod staging;
mod subjob;
pub mod terms;
pub mod transfer;

pub use error::{JobError, JobErrors, Location, Paint};
pub use forms::{document, hostfile, mpiexec, rsl, sites};
pub use isthmus_wire::grid::{Allocation, Scheduler};
pub use model::{Contact, Job, Program, Section, Subjob};
pub use naming::JobName;
pub use terms::{Need, OnLoss, StartType, Substitute, Terms};

struct Nothing;

impl mpiexec::Outside for Nothing {
    fn read(&mut self, _: &str) -> Result<String, String> {
        Err("no files here".to_owned())
    }
    fn variable(&mut self, _: &str) -> Option<String> {
        None
    }
    fn is_own(&mut self, _: &str) -> bool {
        false
    }
    fn parts(&mut self, _part: isthmus_topology::processors::HardwareType) -> usize {
        1
    }
    fn allocated(&mut self) -> Result<Option<(Vec<hostfile::Host>, String)>, JobErrors> {
        Ok(None)
    }
}

/// Fuzz entry: no bytes may make the parsers panic or take more than linear memory.
pub fn fuzz(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = document::parse(text, "fuzz.toml", None);
    let _ = grid::parse(text, "fuzz.toml");
    let _ = catalogue::parse(text, "fuzz.toml");
    if let Ok(input) = transfer::Input::parse(text) {
        assert_eq!(transfer::Input::parse(&input.to_string()), Ok(input));
    }
    let _ = links::parse(text, "fuzz.toml");
    if let Ok(cache) = cache::parse(text, "fuzz.toml") {
        assert_eq!(cache::parse(&cache.format(), "again.toml"), Ok(cache));
    }
    let _ = hostfile::parse(text, "fuzz.hosts");
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    let _ = mpiexec::parse(&words, &mut Nothing);
    let _ = text.lines().map(sites::SiteSpec::parse).count();
}
