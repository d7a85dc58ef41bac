// SPDX-License-Identifier: Apache-2.0
//! IBM Spectrum LSF: bsub, bjobs, bkill; blaunch for the nodes.

use crate::adaptor::{
    Adaptor, Cause, JobId, Refusal, Request, State, Verified, Wait, identifier, judge_cancel, refused, silent,
};
use crate::command::{Command, Output, words};
use isthmus_wire::grid::Scheduler;

const SCHEDULER: Scheduler = Scheduler::Lsf;

#[derive(Debug)]
pub(crate) struct Lsf;

impl Adaptor for Lsf {
    fn scheduler(&self) -> Scheduler {
        SCHEDULER
    }

    fn verified(&self) -> Verified {
        Verified::Recorded
    }

    /// It hands variables on, but blaunch need not.
    fn carries_environment(&self) -> bool {
        false
    }

    fn submit(&self, request: &Request<'_>) -> Result<Command, Refusal> {
        let asked = request.allocation;
        let mut command = Command::new("bsub").args(["-J", request.name, "-n", &request.count.to_string()]);
        command = command.args(["-i", "/dev/null", "-o", "/dev/null", "-rn", "-cwd", "/"]);
        if let Some(per_node) = request.per_node() {
            command = command.args(["-R".to_owned(), format!("span[ptile={per_node}]")]);
        }
        if asked.limit > 0 {
            // Whole minutes, rounded up.
            let minutes = asked.limit.div_ceil(60);
            command = command.args(["-W".to_owned(), format!("{}:{:02}", minutes / 60, minutes % 60)]);
        }
        if !asked.queue.is_empty() {
            command = command.args(["-q", &asked.queue]);
        }
        if !asked.account.is_empty() {
            command = command.args(["-P", &asked.account]);
        }
        let command = command.arg_if(asked.exclusive, "-x").args(&asked.directives);
        Ok(command.input(request.agent.script(self.nodes())))
    }

    fn submitted(&self, said: &Output) -> Result<JobId, Refusal> {
        if !said.succeeded() {
            let complaint = said
                .complaint("")
                .replace("; Job not submitted.", "")
                .replace(". Job not submitted.", "");
            let hint = if complaint.to_lowercase().contains("queue") {
                "bqueues lists the queues of the site"
            } else {
                ""
            };
            return Err(refused(SCHEDULER, complaint, hint));
        }
        // Job <17> is submitted to queue <normal>.
        let line = said
            .output
            .lines()
            .find(|l| l.trim_start().starts_with("Job <"))
            .unwrap_or(&said.output);
        let id = line
            .split_once('<')
            .and_then(|(_, rest)| rest.split_once('>'))
            .map_or(line, |(id, _)| id);
        identifier(SCHEDULER, id)
    }

    fn poll(&self, id: &JobId) -> Command {
        let format = "stat exit_code exit_reason pend_reason delimiter='|'";
        Command::new("bjobs").args(["-noheader", "-o", format, id.as_str()])
    }

    fn polled(&self, _id: &JobId, said: &Output) -> Result<State, Refusal> {
        if said.errors.contains("is not found") || said.output.contains("is not found") {
            return Ok(State::Unknown);
        }
        if !said.succeeded() {
            return Err(silent(SCHEDULER, &said.complaint("")));
        }
        let line = said.output.lines().find(|l| l.contains('|')).unwrap_or_default();
        let mut fields = line.splitn(4, '|').map(|f| f.trim().trim_matches('-'));
        let mut next = || fields.next().unwrap_or_default();
        let (state, code, reason, pending) = (next(), next(), next(), next());
        Ok(match state {
            "" => State::Unknown,
            "PEND" | "PSUSP" | "WAIT" | "PROV" => State::Queued(Wait::because(words(pending))),
            "DONE" => State::Ended(Cause::Unsaid),
            "EXIT" if reason.contains("RUNLIMIT") => State::Ended(Cause::TimeLimit),
            "EXIT" if !reason.is_empty() => State::Ended(Cause::said(words(reason))),
            "EXIT" => State::Ended(Cause::Other(format!("its script ended with status {}", words(code)))),
            "ZOMBI" | "UNKWN" => State::Ended(Cause::said("LSF lost its node")),
            "USUSP" | "SSUSP" => State::Suspended,
            _ => State::Running,
        })
    }

    fn cancel(&self, id: &JobId) -> Command {
        Command::new("bkill").arg(id.as_str())
    }

    fn cancelled(&self, id: &JobId, said: &Output) -> Result<(), Refusal> {
        judge_cancel(
            SCHEDULER,
            id,
            said,
            &["already finished", "No matching job", "is not found"],
        )
    }

    fn nodes(&self) -> &'static str {
        r#"set -- $LSB_MCPU_HOSTS
nodes=$(($# / 2))
node=0
while test $# -gt 1; do
    if test $node = 0; then
        sh -c "$ISTHMUS_NODE" isthmus $node $nodes "$2" &
    else
        blaunch "$1" /bin/sh "$ISTHMUS_SPOOL/node" $node $nodes "$2" </dev/null &
    fi
    node=$((node + 1))
    shift 2
done
wait
"#
    }
}
