// SPDX-License-Identifier: Apache-2.0
//! `mpiexec` and `isthmus run` inside an allocation of a batch system use its nodes, one or many, as other
//! launchers do.

use crate::reach;
use isthmus_job::forms::nodes::{self, Layout};
use isthmus_job::hostfile::{Host, at_home};
use isthmus_job::{Contact, JobError, JobErrors, forms, sites};

/// Local network of the nodes of Slurm, where it has no name.
const SLURM: &str = "slurm";

/// The nodes of the allocation that this process is in, and their local network.
pub(crate) fn hosts() -> Result<Option<(Vec<Host>, String)>, JobErrors> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let found = match of_slurm(&variable, &crate::job::environment())? {
        Some(found) => Some(found),
        None => SYSTEMS
            .iter()
            .find(|system| system.is_here(&variable))
            .map(|system| {
                let read = |file: &str| crate::given::read(file.as_ref()).map_err(|e| e.to_string());
                Ok::<_, JobError>((system.hosts(&variable, &read)?, system.lan.to_owned()))
            })
            .transpose()?,
    };
    if found.is_none() {
        unread(&variable).iter().for_each(crate::diagnostic::note);
    }
    let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let mut is_own = |host: &str| first(host) == first(&own) || reach::is_home(host);
    Ok(found
        .map(|(hosts, lan)| (at_home(hosts, &mut is_own), lan))
        .filter(|(hosts, _)| !hosts.is_empty()))
}

/// Batch systems whose jobs are not read: a variable that only a job has, and what lists its nodes.
const UNREAD: [(&str, &str, &str); 4] = [
    ("FLUX_JOB_ID", "Flux", "flux hostlist local"),
    ("PJM_JOBID", "Fujitsu's job manager", "cat $PJM_O_NODEINF"),
    ("NQSV_JOBID", "NQSV", "cat $PBS_NODEFILE"),
    ("_CONDOR_SLOT", "HTCondor", "the job's machine list"),
];

/// What to say in a job of such a system.
fn unread(variable: &dyn Fn(&str) -> Option<String>) -> Option<JobError> {
    let (_, name, list) = UNREAD.iter().find(|(job, ..)| variable(job).is_some())?;
    let note = JobError::new(format!(
        "this is a job of {name}, whose nodes and slots are not read: processes start on this machine, one unless -n says more"
    ));
    Some(note.hint(format!("name the hosts with their slots, -host A:8,B:8 ({list})")))
}

/// The first part of a name.
fn first(host: &str) -> &str {
    host.split('.').next().unwrap_or_default()
}

/// So many processes on this machine.
fn here(slots: u32) -> Vec<Host> {
    vec![Host {
        contact: Contact::Home,
        slots: Some(slots),
    }]
}

/// The nodes of a job of Slurm; `all`: its variables.
fn of_slurm(variable: &dyn Fn(&str) -> Option<String>, all: &str) -> Result<Option<(Vec<Host>, String)>, JobErrors> {
    if variable("SLURM_JOB_ID").is_none() {
        return Ok(None);
    }
    let number = |name: &str| variable(name)?.parse::<u32>().ok();
    let nodes = number("SLURM_JOB_NUM_NODES").or_else(|| number("SLURM_NNODES"));
    let lists = ["SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_HET_SIZE"];
    if nodes.is_some_and(|nodes| nodes > 1) || lists.into_iter().any(|name| variable(name).is_some()) {
        return forms::allocated(all).map(Some);
    }
    let slots = number("SLURM_TASKS_PER_NODE").or_else(|| number("SLURM_NTASKS"));
    Ok(slots
        .filter(|slots| *slots > 0)
        .map(|slots| (here(slots), SLURM.to_owned())))
}

/// Another batch system, and where it tells the nodes of a job.
struct System {
    name: &'static str,
    lan: &'static str,
    /// Variables that only a job has.
    job: &'static [&'static str],
    /// Variables that tell its nodes.
    lists: &'static [List],
    /// Variables with the number of slots in all, and of nodes, for a job that has no list.
    slots: (&'static str, &'static str),
}

/// A variable that tells nodes.
struct List {
    name: &'static str,
    layout: Layout,
    /// Whether they stand in the file that it names.
    file: bool,
}

const fn file(name: &'static str, layout: Layout) -> List {
    List {
        name,
        layout,
        file: true,
    }
}

const fn value(name: &'static str, layout: Layout) -> List {
    List {
        name,
        layout,
        file: false,
    }
}

const SYSTEMS: [System; 6] = [
    System {
        name: "PBS",
        lan: "pbs",
        job: &["PBS_JOBID"],
        lists: &[file("PBS_NODEFILE", Layout::Lines)],
        slots: ("PBS_NP", "PBS_NUM_NODES"),
    },
    System {
        name: "Grid Engine",
        lan: "grid-engine",
        job: &["JOB_ID"],
        lists: &[file("PE_HOSTFILE", Layout::Counted)],
        slots: ("NSLOTS", "NHOSTS"),
    },
    System {
        name: "LSF",
        lan: "lsf",
        job: &["LSB_JOBID"],
        lists: &[
            value("LSB_MCPU_HOSTS", Layout::Pairs),
            file("LSB_DJOB_HOSTFILE", Layout::Lines),
            value("LSB_HOSTS", Layout::Words),
        ],
        slots: ("LSB_DJOB_NUMPROC", "LSB_DJOB_NUMHOSTS"),
    },
    System {
        name: "OAR",
        lan: "oar",
        job: &["OAR_JOB_ID", "OAR_JOBID"],
        lists: &[
            file("OAR_NODEFILE", Layout::Lines),
            file("OAR_NODE_FILE", Layout::Lines),
        ],
        slots: ("", ""),
    },
    System {
        name: "Cobalt",
        lan: "cobalt",
        job: &["COBALT_JOBID"],
        lists: &[file("COBALT_NODEFILE", Layout::Lines)],
        slots: ("", ""),
    },
    System {
        name: "LoadLeveler",
        lan: "loadleveler",
        job: &["LOADL_STEP_ID"],
        lists: &[file("LOADL_HOSTFILE", Layout::Lines)],
        slots: ("", ""),
    },
];

impl System {
    /// Whether this process is in a job of it that says where it runs. A list that was left in the environment is none.
    fn is_here(&self, variable: &dyn Fn(&str) -> Option<String>) -> bool {
        let told = |name: &str| variable(name).is_some();
        self.job.iter().any(|name| told(name)) && (self.lists.iter().any(|list| told(list.name)) || told(self.slots.0))
    }

    /// The nodes; none where it does not say.
    fn hosts(
        &self,
        variable: &dyn Fn(&str) -> Option<String>,
        read: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Vec<Host>, JobError> {
        for list in self.lists {
            let Some(value) = variable(list.name) else { continue };
            let text = match list.file {
                true => read(&value).map_err(JobError::new),
                false => Ok(value.clone()),
            };
            let hosts = text
                .and_then(|text| nodes::read(list.layout, &text))
                .map_err(|error| nodes::blamed(self.name, list.name, &value, &error))?;
            if !hosts.is_empty() {
                return Ok(hosts);
            }
        }
        let (slots, nodes) = self.slots;
        let several = variable(nodes).is_some_and(|nodes| nodes.parse::<u32>().is_ok_and(|nodes| nodes > 1));
        match variable(slots).filter(|_| !several) {
            Some(value) => sites::parse_count(&value)
                .map(here)
                .map_err(|error| nodes::blamed(self.name, slots, &value, &error)),
            None => Ok(Vec::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables<'a>(environment: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| {
            let named = environment.iter().find(|(n, _)| *n == name);
            named.map(|(_, value)| (*value).to_owned())
        }
    }

    fn short(hosts: &[Host]) -> String {
        let words = hosts.iter().map(|h| format!("{} {}", h.contact, h.slots.unwrap_or(0)));
        words.collect::<Vec<_>>().join(", ")
    }

    /// What the batch system of this environment tells; files have a slot of Grid Engine or three of the others.
    fn told(environment: &[(&str, &str)]) -> String {
        let variable = variables(environment);
        let read = |file: &str| match file {
            "pe" => Ok("n1.x 8 all.q@n1.x UNDEFINED\n".to_owned()),
            "lines" => Ok("n1\nn1\nn1\n".to_owned()),
            "empty" => Ok(String::new()),
            _ => Err("No such file".to_owned()),
        };
        match SYSTEMS.iter().find(|system| system.is_here(&variable)) {
            None => "no job".to_owned(),
            Some(system) => system.hosts(&variable, &read).map_or_else(
                |error| error.problem,
                |hosts| format!("{}: {}", system.name, short(&hosts)),
            ),
        }
    }

    #[test]
    fn one_node_of_each_batch_system() {
        for (environment, expected) in [
            (&[("PBS_JOBID", "1"), ("PBS_NODEFILE", "lines")][..], "PBS: n1 3"),
            (&[("PBS_JOBID", "1"), ("PBS_NP", "8")], "PBS: home 8"),
            (
                &[("PBS_JOBID", "1"), ("PBS_NODEFILE", "empty"), ("PBS_NP", "8")],
                "PBS: home 8",
            ),
            (&[("PBS_JOBID", "1"), ("PBS_NP", "8"), ("PBS_NUM_NODES", "2")], "PBS: "),
            (&[("PBS_JOBID", "1"), ("PBS_NP", "x")], "PBS_NP is 'x': "),
            (
                &[("JOB_ID", "1"), ("PE_HOSTFILE", "pe"), ("NSLOTS", "8")],
                "Grid Engine: n1.x 8",
            ),
            (&[("JOB_ID", "1"), ("NSLOTS", "1")], "Grid Engine: home 1"),
            (&[("LSB_JOBID", "1"), ("LSB_MCPU_HOSTS", "a 8")], "LSF: a 8"),
            (&[("LSB_JOBID", "1"), ("LSB_DJOB_HOSTFILE", "lines")], "LSF: n1 3"),
            (&[("LSB_JOBID", "1"), ("LSB_HOSTS", "a a b")], "LSF: a 2, b 1"),
            (&[("LSB_JOBID", "1"), ("LSB_DJOB_NUMPROC", "8")], "LSF: home 8"),
            (&[("OAR_JOB_ID", "1"), ("OAR_NODEFILE", "lines")], "OAR: n1 3"),
            (&[("COBALT_JOBID", "1"), ("COBALT_NODEFILE", "lines")], "Cobalt: n1 3"),
            (
                &[("LOADL_STEP_ID", "1"), ("LOADL_HOSTFILE", "lines")],
                "LoadLeveler: n1 3",
            ),
            // A list that was left in the environment is no allocation; nor is the number of another program's job.
            (&[("PBS_NODEFILE", "lines"), ("LSB_JOBID", "1")], "no job"),
            (&[("JOB_ID", "1")], "no job"),
        ] {
            let told = told(environment);
            match expected.ends_with("': ") {
                true => assert!(told.starts_with(expected), "{environment:?}: {told}"),
                false => assert_eq!(told, expected, "{environment:?}"),
            }
        }
    }

    #[test]
    fn slurm_tells_one_node_too() {
        let told = |environment: &[(&str, &str)]| {
            let all: String = environment.iter().map(|(n, v)| format!("{n}={v}\n")).collect();
            let found = of_slurm(&variables(environment), &all);
            found.map(|found| found.map(|(hosts, _)| short(&hosts)))
        };
        let some = |text: &str| Ok(Some(text.to_owned()));
        let job = ("SLURM_JOB_ID", "7");
        assert_eq!(
            told(&[job, ("SLURM_JOB_NODELIST", "n1"), ("SLURM_TASKS_PER_NODE", "8")]),
            some("n1 8")
        );
        assert_eq!(
            told(&[job, ("SLURM_NNODES", "1"), ("SLURM_NTASKS", "8")]),
            some("home 8")
        );
        assert_eq!(told(&[job]), Ok(None));
        assert_eq!(told(&[("SLURM_JOB_NODELIST", "n1"), ("SLURM_NTASKS", "8")]), Ok(None));
        assert!(told(&[job, ("SLURM_JOB_NUM_NODES", "2")]).is_err());
        let het = [
            ("SLURM_HET_SIZE", "1"),
            ("SLURM_JOB_NODELIST_HET_GROUP_0", "n1"),
            ("SLURM_TASKS_PER_NODE_HET_GROUP_0", "4"),
        ];
        assert_eq!(told(&[&[job], &het[..]].concat()), some("n1 4"));
    }

    #[test]
    fn an_empty_variable_is_none() {
        let all = "SLURM_JOB_NODELIST=n1\nSLURM_TASKS_PER_NODE=\nSLURM_NTASKS=\nSLURM_NTASKS_PER_NODE=2\n";
        let found = of_slurm(&variables(&[("SLURM_JOB_ID", "7"), ("SLURM_JOB_NODELIST", "n1")]), all);
        assert_eq!(
            found.map(|found| found.map(|(hosts, _)| short(&hosts))),
            Ok(Some("n1 2".to_owned()))
        );
    }

    #[test]
    fn a_job_of_a_system_that_is_not_read_is_told_of() {
        let note = unread(&variables(&[("FLUX_JOB_ID", "f1")])).unwrap();
        assert!(note.problem.contains("a job of Flux"), "{}", note.problem);
        assert_eq!(unread(&variables(&[("PBS_JOBID", "1")])), None);
    }

    #[test]
    fn who_is_to_blame_is_the_variable() {
        let missing = told(&[("PBS_JOBID", "1"), ("PBS_NODEFILE", "/x")]);
        assert_eq!(missing, "PBS_NODEFILE is '/x': No such file");
        assert!(told(&[("PBS_JOBID", "1"), ("PBS_NODEFILE", "pe")]).starts_with("PBS_NODEFILE is 'pe': "));
    }
}
