// SPDX-License-Identifier: Apache-2.0
//! Slurm: sbatch, squeue, scancel; srun for the nodes.

use crate::adaptor::{
    Adaptor, Cause, JobId, Refusal, Request, State, Verified, Wait, clock, identifier, judge_cancel, refused, silent,
};
use crate::command::{Command, Output, words};
use isthmus_wire::grid::Scheduler;

const SCHEDULER: Scheduler = Scheduler::Slurm;
/// Why a job waits that can never start, as it is asked for.
const NEVER: [&str; 9] = [
    "PartitionNodeLimit",
    "PartitionTimeLimit",
    "BadConstraints",
    "InvalidAccount",
    "InvalidQOS",
    "AccountNotAllowed",
    "QOSNotAllowed",
    "DependencyNeverSatisfied",
    "ReservationDeleted",
];
/// What Slurm says of a job that it has forgotten.
const GONE: &str = "Invalid job id";

#[derive(Debug)]
pub(crate) struct Slurm;

impl Adaptor for Slurm {
    fn scheduler(&self) -> Scheduler {
        SCHEDULER
    }

    fn verified(&self) -> Verified {
        Verified::Live
    }

    fn carries_environment(&self) -> bool {
        true
    }

    fn submit(&self, request: &Request<'_>) -> Result<Command, Refusal> {
        let asked = request.allocation;
        let mut command = Command::new("sbatch").args([
            "--parsable",
            "--no-requeue",
            "--export=ALL",
            "--chdir=/",
            "--input=/dev/null",
            "--output=/dev/null",
            "--error=/dev/null",
        ]);
        command = command.args([
            format!("--job-name={}", request.name),
            format!("--ntasks={}", request.count),
        ]);
        if let Some(per_node) = request.per_node() {
            command = command.arg(format!("--nodes={}", asked.nodes));
            command = command.arg(format!("--ntasks-per-node={per_node}"));
        }
        Ok(command
            .arg_if(asked.limit > 0, format!("--time={}", clock(asked.limit)))
            .arg_if(!asked.queue.is_empty(), format!("--partition={}", asked.queue))
            .arg_if(!asked.account.is_empty(), format!("--account={}", asked.account))
            .arg_if(asked.exclusive, "--exclusive")
            .args(&asked.directives)
            .input(request.agent.script(self.nodes())))
    }

    fn submitted(&self, said: &Output) -> Result<JobId, Refusal> {
        if !said.succeeded() {
            let complaint = said.complaint("sbatch: error: ");
            let hint = hint(&complaint);
            return Err(refused(SCHEDULER, complaint, hint));
        }
        // ID, or ID;CLUSTER; sites that print more do so before it.
        let last = said.output.trim_end().lines().next_back().unwrap_or_default();
        identifier(SCHEDULER, last.split(';').next().unwrap_or_default().trim())
    }

    fn poll(&self, id: &JobId) -> Command {
        // %S: when it started, or is expected to; the variable makes that seconds since 1970, wherever the site is.
        let command = Command::new("squeue").form("SLURM_TIME_FORMAT", "%s");
        command.args(["--noheader", "--states=all", "--format=%T|%r|%S", "--jobs", id.as_str()])
    }

    fn polled(&self, _id: &JobId, said: &Output) -> Result<State, Refusal> {
        if !said.succeeded() {
            return match said.errors.contains(GONE) {
                true => Ok(State::Unknown),
                false => Err(silent(SCHEDULER, &said.complaint("squeue: error: "))),
            };
        }
        let line = said.output.lines().map(str::trim).find(|l| l.contains('|'));
        Ok(line
            .and_then(|l| l.split_once('|'))
            .map_or(State::Unknown, |(state, rest)| {
                let (reason, start) = rest.rsplit_once('|').unwrap_or((rest, ""));
                match state_of(state, reason) {
                    // N/A, or a time in another form: it does not say.
                    State::Queued(wait) => State::Queued(Wait {
                        start: start.trim().parse().ok(),
                        ..wait
                    }),
                    other => other,
                }
            }))
    }

    fn cancel(&self, id: &JobId) -> Command {
        Command::new("scancel").args(["--quiet", id.as_str()])
    }

    fn cancelled(&self, id: &JobId, said: &Output) -> Result<(), Refusal> {
        judge_cancel(SCHEDULER, id, said, &[GONE, "already complet"])
    }

    fn nodes(&self) -> &'static str {
        r#"slots=$SLURM_TASKS_PER_NODE
if test "$SLURM_JOB_NUM_NODES" = 1; then
    exec sh -c "$ISTHMUS_NODE" isthmus 0 1 "$slots"
fi
unset SLURM_MEM_PER_CPU SLURM_MEM_PER_GPU SLURM_MEM_PER_NODE SLURM_CPUS_PER_TASK SLURM_NTASKS_PER_NODE SLURM_NTASKS SLURM_NPROCS
exec srun --nodes="$SLURM_JOB_NUM_NODES" --ntasks="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 --mem=0 --cpu-bind=none \
    --kill-on-bad-exit=0 --wait=0 --mpi=none --input=none --export=ALL \
    sh -c 'exec sh -c "$ISTHMUS_NODE" isthmus "$SLURM_NODEID" "$0" "$1"' "$SLURM_JOB_NUM_NODES" "$slots"
"#
    }
}

fn state_of(state: &str, reason: &str) -> State {
    let reason = match reason.trim() {
        "None" | "(null)" => "",
        other => other,
    };
    let state = state.trim();
    match state {
        "PENDING" if NEVER.contains(&reason) || reason.ends_with("PerJobLimit") => State::Never(words(reason)),
        "PENDING" | "CONFIGURING" | "REQUEUED" | "REQUEUE_HOLD" | "REQUEUE_FED" | "SPECIAL_EXIT" => {
            State::Queued(Wait::because(words(reason)))
        }
        "RUNNING" | "RESIZING" | "SIGNALING" | "STAGE_OUT" => State::Running,
        "SUSPENDED" | "STOPPED" => State::Suspended,
        "COMPLETING" => State::Ending(cause(reason).unwrap_or_else(|| Cause::said(words(reason)))),
        "COMPLETED" => State::Ended(Cause::Unsaid),
        _ => State::Ended(match cause(state) {
            Some(known) => known,
            None if reason.is_empty() => Cause::said(words(state)),
            None => Cause::said(words(&format!("{state}, {reason}"))),
        }),
    }
}

/// What people understand by a state or reason, unless that says it itself.
fn cause(word: &str) -> Option<Cause> {
    Some(Cause::said(match word {
        "TIMEOUT" | "TimeLimit" => return Some(Cause::TimeLimit),
        "CANCELLED" => "it was cancelled",
        "NODE_FAIL" | "NodeDown" | "NodeFail" => "a node failed",
        "PREEMPTED" => "it had to make room for another job",
        "OUT_OF_MEMORY" | "OutOfMemory" => "it used more memory than it was given",
        "DEADLINE" => "it reached its deadline",
        "FAILED" => "its script failed",
        _ => return None,
    }))
}

fn hint(complaint: &str) -> &'static str {
    let complaint = complaint.to_lowercase();
    match () {
        // Slurm's sentence about accounts names partitions too.
        () if complaint.contains("account") => "sacctmgr show associations user=$USER lists your accounts",
        () if complaint.contains("qos") => {
            "sacctmgr show associations user=$USER format=Account,QOS lists what you may ask for"
        }
        () if complaint.contains("reservation") => "scontrol show reservation lists the reservations of the site",
        () if complaint.contains("partition") => "sinfo -s lists the queues (partitions) of the site",
        () if complaint.contains("time limit") => "sinfo shows the longest time limit of each queue",
        () => "",
    }
}
