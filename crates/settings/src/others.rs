// SPDX-License-Identifier: Apache-2.0
//! Launchers of others: who started a process, as its environment tells. Looked at in this order:
//!
//! | launcher | says how many it started in | who it is |
//! |---|---|---|
//! | our agent | the world, later | `ISTHMUS_RENDEZVOUS` |
//! | Open MPI, PRRTE | `OMPI_COMM_WORLD_SIZE` | `PMIX_NAMESPACE`, `PMIX_RANK` |
//! | MVAPICH (`mpirun_rsh`) | `MV2_COMM_WORLD_SIZE` | `MV2_COMM_WORLD_RANK` |
//! | MPICH, Intel MPI (hydra) | `PMI_SIZE` | `HYDI_CONTROL_FD`; with `-pmi-port` only `PMI_PORT`, `PMI_ID` |
//! | `srun` | `SLURM_STEP_NUM_TASKS`, `PMI_SIZE` | `SLURM_STEP_ID` |
//! | `flux run` | `FLUX_JOB_SIZE`, `PMI_SIZE` | `FLUX_TASK_RANK` |
//! | Cray PALS | nowhere | `PALS_RANKID` |
//! | Cray ALPS (`aprun`) | nowhere | `ALPS_APP_PE` |
//! | IBM `jsrun` | `JSM_NAMESPACE_SIZE` | `JSM_NAMESPACE_RANK` |
//!
//! A batch script has `SLURM_NTASKS` and `SLURM_PROCID` too and is alone: only a step is a parallel start.

use std::ffi::OsString;

/// A parallel start by somebody else.
#[derive(Debug, PartialEq, Eq)]
pub struct Others {
    /// Who that is, for a sentence.
    pub launcher: &'static str,
    /// How many processes it started, if it says so.
    pub count: Option<u32>,
}

impl Others {
    /// The other launcher that has started a process with these variables, with others beside it or without saying that
    /// there are none.
    pub fn of(variable: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        let said = |name: &str| variable(name).is_some();
        let number = |name: &str| variable(name).and_then(|text| text.parse::<u32>().ok());
        let own = |name: &'static str| variable(name).map(OsString::from);
        if crate::ALONE.read(own) {
            return None;
        }
        // What a process of a job of ours starts is alone; its launcher's variables are ours.
        if said(crate::REACH.name) {
            return None;
        }
        let in_step = said("SLURM_STEP_ID") || said("SLURM_STEPID");
        let step = number("SLURM_STEP_NUM_TASKS").filter(|_| in_step);
        let (launcher, count) = if let Some(count) = number("OMPI_COMM_WORLD_SIZE") {
            ("Open MPI's mpiexec", Some(count))
        } else if in_step && (step.is_some() || said("PMI_SIZE") || said("PMIX_RANK")) {
            ("srun", step.or_else(|| number("PMI_SIZE")))
        } else if said("FLUX_TASK_RANK") {
            ("flux run", number("FLUX_JOB_SIZE").or_else(|| number("PMI_SIZE")))
        } else if let Some(count) = number("MV2_COMM_WORLD_SIZE") {
            ("MVAPICH's mpirun_rsh", Some(count))
        } else if let Some(count) = number("PMI_SIZE") {
            ("MPICH's mpiexec", Some(count))
        } else if said("PMI_PORT") && said("PMI_ID") {
            ("MPICH's mpiexec", None)
        } else if said("PMIX_NAMESPACE") || said("PMIX_RANK") {
            ("prterun, or another launcher that speaks PMIx,", None)
        } else if said("PALS_RANKID") {
            ("the launcher of Cray systems (PALS)", None)
        } else if said("ALPS_APP_PE") {
            ("aprun", None)
        } else if let Some(count) = number("JSM_NAMESPACE_SIZE") {
            ("jsrun", Some(count))
        } else {
            return None;
        };
        (count != Some(1)).then_some(Self { launcher, count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(environment: &[(&str, &str)]) -> Option<Others> {
        let variable = |name: &str| {
            let named = environment.iter().find(|(n, _)| *n == name);
            named.map(|(_, value)| (*value).to_owned())
        };
        Others::of(&variable)
    }

    fn started(launcher: &'static str, count: Option<u32>) -> Option<Others> {
        Some(Others { launcher, count })
    }

    #[test]
    fn launchers_of_others_are_known() {
        assert_eq!(
            found(&[("OMPI_COMM_WORLD_SIZE", "4"), ("PMIX_RANK", "1")]),
            started("Open MPI's mpiexec", Some(4))
        );
        assert_eq!(
            found(&[("PMI_SIZE", "2"), ("PMI_RANK", "0"), ("PMI_FD", "7")]),
            started("MPICH's mpiexec", Some(2))
        );
        assert_eq!(
            found(&[("PMI_PORT", "h:1"), ("PMI_ID", "0")]),
            started("MPICH's mpiexec", None)
        );
        assert_eq!(
            found(&[("SLURM_STEP_ID", "0"), ("SLURM_STEP_NUM_TASKS", "4")]),
            started("srun", Some(4))
        );
        assert_eq!(
            found(&[("SLURM_STEP_ID", "0"), ("PMI_SIZE", "3")]),
            started("srun", Some(3))
        );
        assert_eq!(
            found(&[("FLUX_TASK_RANK", "1"), ("FLUX_JOB_SIZE", "2"), ("PMI_SIZE", "2")]),
            started("flux run", Some(2))
        );
        assert_eq!(
            found(&[("MV2_COMM_WORLD_SIZE", "4"), ("PMI_SIZE", "4")]),
            started("MVAPICH's mpirun_rsh", Some(4))
        );
        assert_eq!(found(&[("ALPS_APP_PE", "1")]), started("aprun", None));
        assert!(found(&[("PMIX_NAMESPACE", "a"), ("PMIX_RANK", "0")]).is_some());
    }

    #[test]
    fn who_is_alone_is_left_alone() {
        assert_eq!(found(&[]), None);
        assert_eq!(found(&[("OMPI_COMM_WORLD_SIZE", "1"), ("PMIX_RANK", "0")]), None);
        assert_eq!(found(&[("PMI_SIZE", "1")]), None);
        assert_eq!(
            found(&[
                ("SLURM_STEP_ID", "0"),
                ("SLURM_STEP_NUM_TASKS", "1"),
                ("PMIX_RANK", "0")
            ]),
            None
        );
        // A batch script, and a shell of salloc.
        assert_eq!(
            found(&[("SLURM_JOB_ID", "7"), ("SLURM_NTASKS", "4"), ("SLURM_PROCID", "0")]),
            None
        );
        assert_eq!(found(&[("ISTHMUS_ALONE", "1"), ("PMI_SIZE", "4")]), None);
        assert!(found(&[("ISTHMUS_ALONE", "0"), ("PMI_SIZE", "4")]).is_some());
        assert_eq!(
            found(&[("ISTHMUS_REACH", "node"), ("PMI_SIZE", "4")]),
            None,
            "a child of a rank of ours"
        );
    }
}
