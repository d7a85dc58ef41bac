// SPDX-License-Identifier: Apache-2.0
//! `mpiexec` inside an allocation of a scheduler uses its nodes, as other launchers do.

use crate::reach;
use isthmus_job::hostfile::{Host, at_home};
use isthmus_job::{JobError, JobErrors, Scheduler, form};

/// The nodes of the allocation that this process is in, when there are several, and their local network.
pub(crate) fn hosts() -> Result<Option<(Vec<Host>, String)>, JobErrors> {
    let variable = |name: &str| std::env::var(name).ok();
    if several_of_slurm(&variable) {
        return form::allocated(&crate::job::environment()).map(Some);
    }
    let Some(told) = told(&variable) else { return Ok(None) };
    let hosts = told.hosts(&|file| crate::given::read(file.as_ref()).map_err(|e| e.to_string()))?;
    let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let hosts = at_home(hosts, &mut |host| first(host) == first(&own) || reach::is_home(host));
    Ok((hosts.len() > 1).then(|| (hosts, told.scheduler.keyword().to_owned())))
}

/// The first part of a name.
fn first(host: &str) -> &str {
    host.split('.').next().unwrap_or_default()
}

fn several_of_slurm(variable: &dyn Fn(&str) -> Option<String>) -> bool {
    let many = |name: &str| variable(name)?.parse::<u32>().ok().filter(|nodes| *nodes > 1);
    variable("SLURM_JOB_ID").is_some() && many("SLURM_JOB_NUM_NODES").or_else(|| many("SLURM_NNODES")).is_some()
}

/// Where a scheduler tells the nodes of a job.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    scheduler: Scheduler,
    /// The variable that tells them.
    name: &'static str,
    /// Its value: the nodes for LSF, otherwise a file that has them.
    value: String,
}

fn told(variable: &dyn Fn(&str) -> Option<String>) -> Option<Told> {
    let places = [
        (Scheduler::Pbs, "PBS_JOBID", "PBS_NODEFILE"),
        (Scheduler::GridEngine, "JOB_ID", "PE_HOSTFILE"),
        (Scheduler::Lsf, "LSB_JOBID", "LSB_MCPU_HOSTS"),
    ];
    places.into_iter().find_map(|(scheduler, job, name)| {
        let value = variable(job)
            .and_then(|_| variable(name))
            .filter(|value| !value.is_empty())?;
        Some(Told { scheduler, name, value })
    })
}

impl Told {
    fn hosts(&self, read: &dyn Fn(&str) -> Result<String, String>) -> Result<Vec<Host>, JobError> {
        let text = match self.scheduler {
            Scheduler::Lsf => Ok(self.value.clone()),
            _ => read(&self.value).map_err(JobError::new),
        };
        let hosts = text.and_then(|text| form::nodes::read(self.scheduler, &text));
        hosts.map_err(|error| {
            let Self { scheduler, name, value } = self;
            form::nodes::blamed(*scheduler, name, value, &error)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(environment: &[(&str, &str)]) -> Option<Told> {
        told(&|name| {
            let named = environment.iter().find(|(n, _)| *n == name);
            named.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn each_scheduler_has_its_own_place() {
        assert_eq!(
            found(&[("PBS_JOBID", "1"), ("PBS_NODEFILE", "/x")]).unwrap().name,
            "PBS_NODEFILE"
        );
        assert_eq!(
            found(&[("JOB_ID", "1"), ("PE_HOSTFILE", "/x")]).unwrap().name,
            "PE_HOSTFILE"
        );
        assert_eq!(
            found(&[("LSB_JOBID", "1"), ("LSB_MCPU_HOSTS", "a 1")]).unwrap().name,
            "LSB_MCPU_HOSTS"
        );
        // A file that was left in the environment is no allocation.
        assert_eq!(found(&[("PBS_NODEFILE", "/x"), ("LSB_JOBID", "1")]), None);
        let one = |name: &str| (name == "SLURM_JOB_ID").then(|| "1".to_owned());
        assert!(!several_of_slurm(&one));
    }

    #[test]
    fn who_is_to_blame_is_the_variable() {
        let pbs = found(&[("PBS_JOBID", "1"), ("PBS_NODEFILE", "/x")]).unwrap();
        let missing = pbs.hosts(&|_| Err("No such file".to_owned())).unwrap_err();
        assert!(
            missing.problem.contains("PBS_NODEFILE is '/x': No such file"),
            "{missing}"
        );
        let junk = pbs.hosts(&|_| Ok("root:x:0:0 root\n".to_owned())).unwrap_err();
        assert!(junk.problem.contains("PBS_NODEFILE is '/x': "), "{junk}");
        let lsf = found(&[("LSB_JOBID", "1"), ("LSB_MCPU_HOSTS", "a 2 b 1")]).unwrap();
        assert_eq!(lsf.hosts(&|_| Err(String::new())).unwrap().len(), 2);
    }
}
