// SPDX-License-Identifier: Apache-2.0
//! What a subjob is.

use crate::attributes::{Operator, Request, Setting};
use crate::contact::Contact;
use crate::program::Section;
use crate::transfer::Transfers;
use isthmus_wire::grid::Allocation;

/// Most processes of one job on one machine.
pub const MAX_PROCESSES_PER_MACHINE: u32 = 4_096;

/// The part of a job for one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subjob {
    /// Name, unique within the job.
    pub site: String,
    /// How to get there.
    pub contact: Contact,
    /// Number of processes.
    pub count: u32,
    /// Local area: machines with the same one share a local network.
    pub lan: String,
    /// What runs there, in the order of the ranks: one program at least.
    pub sections: Vec<Section>,
    /// Variables to set for all of its programs, in order; the last of a name wins.
    pub environment: Vec<(String, String)>,
    /// Working directory of all programs that have none of their own.
    pub directory: Option<String>,
    /// What to ask of the machine's scheduler; without it the agent starts the processes itself.
    pub allocation: Option<Allocation>,
    /// Whether the job says that no scheduler is asked (`fork`), whatever is known of the site.
    pub forks: bool,
    /// Whether a site gets the program from here; otherwise it runs what it has under that name.
    pub stage: bool,
    /// What else is asked for, kept for whoever can give it.
    pub requests: Vec<Request>,
    /// Commands of a POSIX shell before anything else at the machine.
    pub setup: Vec<String>,
    /// Files that come and go.
    pub files: Transfers,
}

impl Subjob {
    /// The one text of a kept attribute, by its name in RSL.
    pub fn request(&self, name: &str) -> Option<&str> {
        let request = self
            .requests
            .iter()
            .find(|r| r.attribute.name == name && r.operator == Operator::Equal)?;
        request.values.first().and_then(Setting::text)
    }

    /// The command of the vendor MPI that starts the processes, if they are to run on top of that.
    pub fn vendor(&self) -> Option<&str> {
        let wanted = self.request("jobType") == Some("mpi");
        wanted.then(|| self.request("mpiexec").unwrap_or("mpiexec"))
    }

    /// Word for who starts the processes, if the job says so: a scheduler, or `fork`.
    pub fn scheduler(&self) -> Option<&'static str> {
        let asked = self.allocation.as_ref().map(|a| a.scheduler.keyword());
        asked.or_else(|| self.forks.then_some(crate::allocation::FORK))
    }

    /// All texts of a kept attribute, by its name in RSL.
    pub fn request_texts(&self, name: &str) -> Vec<&str> {
        let named = |r: &&Request| r.attribute.name == name && r.operator == Operator::Equal;
        let values = self.requests.iter().filter(named).flat_map(|r| &r.values);
        values.filter_map(Setting::text).collect()
    }

    /// Gives the texts of a kept attribute other values, where there are any.
    pub fn place_text(&mut self, name: &str, place: &mut dyn FnMut(&str) -> Option<String>) {
        let named = self.requests.iter_mut().filter(|r| r.attribute.name == name);
        for value in named.flat_map(|r| &mut r.values) {
            if let Setting::Text(text) = value {
                if let Some(placed) = place(text) {
                    *text = placed;
                }
            }
        }
    }
}
