// SPDX-License-Identifier: Apache-2.0
//! How the `mpiexec` of a vendor MPI is told the nodes of an allocation. Agents on nodes run it inside an
//! allocation that a scheduler has made for the subjob.

use std::path::Path;

/// Variables that the run of an `mpiexec` inside an allocation needs, and those that must not reach it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Within {
    /// To be set.
    pub environment: Vec<(&'static str, String)>,
    /// To be removed.
    pub hidden: Vec<String>,
}

/// What Slurm tells the processes of a step of itself, and the options of srun that it hands on: for an `mpiexec` they
/// are those of another step, the one in which agents were started with one task a node.
const OF_A_STEP: [&str; 25] = [
    "SLURM_STEPID",
    "SLURM_STEP_ID",
    "SLURM_STEP_NODELIST",
    "SLURM_STEP_NUM_NODES",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_STEP_TASKS_PER_NODE",
    "SLURM_STEP_LAUNCHER_PORT",
    "SLURM_STEP_RESV_PORTS",
    "SLURM_SRUN_COMM_HOST",
    "SLURM_SRUN_COMM_PORT",
    "SLURM_LAUNCH_NODE_IPADDR",
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "SLURM_NODEID",
    "SLURM_GTIDS",
    "SLURM_TASK_PID",
    "SLURM_MPI_TYPE",
    "SLURM_DISTRIBUTION",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_MEM_PER_NODE",
    "SLURM_CPU_BIND",
    "SLURM_CPU_BIND_TYPE",
    "SLURM_CPU_BIND_LIST",
    "SLURM_CPU_BIND_VERBOSE",
    "SLURM_EXPORT_ENV",
];

/// For an `mpiexec` that starts so many processes on each of these nodes. `variable` is the agent's environment.
pub fn within_allocation(hosts: &[(String, u32)], variable: impl Fn(&str) -> Option<String>) -> Within {
    if variable("SLURM_JOB_ID").is_none() {
        return Within::default();
    }
    let all: u32 = hosts.iter().map(|(_, processes)| processes).sum();
    let tasks: Vec<String> = hosts.iter().map(|(_, processes)| processes.to_string()).collect();
    let tasks = tasks.join(",");
    Within {
        environment: vec![
            ("SLURM_TASKS_PER_NODE", tasks),
            ("SLURM_NTASKS", all.to_string()),
            ("SLURM_NPROCS", all.to_string()),
            // The step of the agents holds what the next one is to use.
            ("SLURM_OVERLAP", "1".to_owned()),
        ],
        hidden: OF_A_STEP.map(str::to_owned).to_vec(),
    }
}

/// Options with which an `mpiexec` fills these nodes one after the other. All families know `-host`; srun wants a node
/// for each process.
pub fn placement(mpiexec: &Path, hosts: &[(String, u32)]) -> Vec<String> {
    let name = mpiexec.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with("srun") {
        let tasks = hosts
            .iter()
            .flat_map(|(host, processes)| std::iter::repeat_n(host.as_str(), *processes as usize));
        let tasks: Vec<&str> = tasks.collect();
        let nodes = hosts.len();
        return vec![
            format!("--nodes={nodes}"),
            "--distribution=arbitrary".to_owned(),
            format!("--nodelist={}", tasks.join(",")),
        ];
    }
    let slots = hosts.iter().map(|(host, processes)| format!("{host}:{processes}"));
    vec!["-host".to_owned(), slots.collect::<Vec<_>>().join(",")]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts() -> Vec<(String, u32)> {
        vec![("n1".into(), 2), ("n2".into(), 1)]
    }

    #[test]
    fn nodes_are_filled_one_after_the_other() {
        assert_eq!(
            placement(Path::new("/opt/bin/mpiexec.x"), &hosts()),
            ["-host", "n1:2,n2:1"]
        );
        assert_eq!(
            placement(Path::new("/usr/bin/srun"), &hosts()),
            ["--nodes=2", "--distribution=arbitrary", "--nodelist=n1,n1,n2"]
        );
    }

    #[test]
    fn a_step_of_slurm_is_hidden_from_the_next_one() {
        assert_eq!(within_allocation(&hosts(), |_| None), Within::default());
        let within = within_allocation(&hosts(), |name| (name == "SLURM_JOB_ID").then(|| "7".to_owned()));
        assert!(within.hidden.iter().any(|name| name == "SLURM_STEPID"));
        assert!(within.environment.contains(&("SLURM_TASKS_PER_NODE", "2,1".to_owned())));
        // What is set is not removed again.
        let set = |name: &String| within.environment.iter().any(|(n, _)| n == name);
        assert!(!within.hidden.iter().any(set));
    }
}
