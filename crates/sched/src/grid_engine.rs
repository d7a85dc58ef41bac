// SPDX-License-Identifier: Apache-2.0
//! Grid Engine: qsub, qstat, qdel, qacct; qrsh for the nodes.

use crate::adaptor::{
    Adaptor, Cause, JobId, Refusal, Request, State, Verified, Wait, identifier, judge_cancel, refused, silent,
};
use crate::command::{Command, Output, words};
use isthmus_wire::grid::Scheduler;

const SCHEDULER: Scheduler = Scheduler::GridEngine;

#[derive(Debug)]
pub(crate) struct GridEngine;

impl Adaptor for GridEngine {
    fn scheduler(&self) -> Scheduler {
        SCHEDULER
    }

    fn verified(&self) -> Verified {
        Verified::Live
    }

    /// Variables handed to qsub can be read by everybody with `qstat -j`.
    fn carries_environment(&self) -> bool {
        false
    }

    fn submit(&self, request: &Request<'_>) -> Result<Command, Refusal> {
        let asked = request.allocation;
        if asked.nodes > 1 {
            return Err(Refusal::new(
                "Grid Engine takes the number of nodes from the rule of the parallel environment",
                "leave out 'nodes', or name an environment with directives = [\"-pe\", \"NAME\", \"SLOTS\"]",
            ));
        }
        let mut command =
            Command::new("qsub").args(["-terse", "-S", "/bin/sh", "-wd", "/", "-j", "y", "-o", "/dev/null"]);
        command = command.args(["-r", "n", "-N", request.name]);
        if !asked.queue.is_empty() {
            command = command.args(["-q", &asked.queue]);
        }
        if !asked.account.is_empty() {
            command = command.args(["-P", &asked.account]);
        }
        if asked.limit > 0 {
            command = command.args(["-l".to_owned(), format!("h_rt={}", asked.limit)]);
        }
        if asked.exclusive {
            command = command.args(["-l", "exclusive=true"]);
        }
        if request.count > 1 && !asked.directives.iter().any(|d| d == "-pe") {
            command = command.args(["-pe".to_owned(), "*".to_owned(), request.count.to_string()]);
        }
        // What no queue could ever run is refused now; otherwise it would wait for ever. Values that hosts measure
        // count for nothing there, so it goes without that where the user asks for resources.
        if !asked.directives.iter().any(|d| d == "-l") {
            command = command.args(["-w", "e"]);
        }
        Ok(command
            .args(&asked.directives)
            .input(request.agent.script(self.nodes())))
    }

    fn submitted(&self, said: &Output) -> Result<JobId, Refusal> {
        if !said.succeeded() {
            let complaint = said.complaint("Unable to run job: ").replace("; Exiting.", "");
            let hint = match complaint.to_lowercase() {
                c if c.contains("no suitable queues") => {
                    "no queue could ever run this: qstat -g c lists the queues, qconf -sq QUEUE their limits"
                }
                c if c.contains("queue") => "qconf -sql lists the queues of the site",
                c if c.contains("unknown resource") => {
                    "qconf -sc lists the resources of the site; 'exclusive' asks for one of that name"
                }
                c if c.contains("project") => "qconf -sprjl lists the projects (accounts) of the site",
                c if c.contains("parallel environment") => "qconf -spl lists the parallel environments of the site",
                _ => "",
            };
            return Err(refused(SCHEDULER, complaint, hint));
        }
        let last = said.output.trim_end().lines().next_back().unwrap_or_default();
        identifier(SCHEDULER, last.split('.').next().unwrap_or_default().trim())
    }

    fn poll(&self, _id: &JobId) -> Command {
        Command::new("qstat")
    }

    fn polled(&self, id: &JobId, said: &Output) -> Result<State, Refusal> {
        if !said.succeeded() {
            return Err(silent(SCHEDULER, &said.complaint("error: ")));
        }
        // job-ID prior name user state ...; names without white space, for they are ours.
        let rows = said.output.lines().map(|l| l.split_whitespace().collect::<Vec<_>>());
        let row = rows.into_iter().find(|r| r.len() > 4 && r[0] == id.as_str());
        Ok(row.map_or(State::Unknown, |row| state_of(row[4])))
    }

    fn inquire(&self, id: &JobId) -> Option<Command> {
        Some(Command::new("qacct").args(["-j", id.as_str()]))
    }

    fn cause(&self, said: &Output) -> Option<Cause> {
        let field = |name: &str| {
            let line = said
                .output
                .lines()
                .find(|l| l.split_whitespace().next() == Some(name))?;
            Some(line.trim_start().strip_prefix(name)?.trim().to_owned())
        };
        let failed = field("failed")?;
        let status = field("exit_status").unwrap_or_default();
        let code = failed.split_whitespace().next().unwrap_or_default();
        Some(match (code, status.split_whitespace().next().unwrap_or_default()) {
            _ if failed.contains("h_rt") || failed.contains("s_rt") => Cause::TimeLimit,
            ("0", "0") => Cause::Unsaid,
            ("0", status) => Cause::Other(format!("its script ended with status {}", words(status))),
            ("100", _) => Cause::Killed,
            _ => Cause::said(words(&failed)),
        })
    }

    fn cancel(&self, id: &JobId) -> Command {
        Command::new("qdel").arg(id.as_str())
    }

    fn cancelled(&self, id: &JobId, said: &Output) -> Result<(), Refusal> {
        judge_cancel(SCHEDULER, id, said, &["does not exist", "is already in deletion"])
    }

    fn nodes(&self) -> &'static str {
        r#"if test -z "$PE_HOSTFILE"; then
    exec sh -c "$ISTHMUS_NODE" isthmus 0 1 "${NSLOTS:-1}"
fi
hosts=$(awk '{ if (!($1 in slots)) order[++n] = $1; slots[$1] += $2 } END { for (i = 1; i <= n; i++) print order[i], slots[order[i]] }' "$PE_HOSTFILE")
nodes=$(echo "$hosts" | wc -l)
here=$(hostname); here=${here%%.*}
node=0
while read -r host slots; do
    if test "${host%%.*}" = "$here"; then
        sh -c "$ISTHMUS_NODE" isthmus $node $nodes $slots &
    else
        qrsh -inherit -nostdin "$host" /bin/sh "$ISTHMUS_SPOOL/node" $node $nodes $slots </dev/null &
    fi
    node=$((node + 1))
done <<END
$hosts
END
wait
"#
    }
}

fn state_of(code: &str) -> State {
    match code {
        // By qdel, or because of a limit: qacct says so later.
        c if c.contains('d') => State::Ending(Cause::Unsaid),
        c if c.contains('E') => State::Ended(Cause::Other(format!(
            "it is in the error state {}: qstat -j says why",
            words(c)
        ))),
        c if c.contains('q') || c.contains('w') => State::Queued(Wait::because(words(c))),
        // Stopped by its user, its queue or a threshold.
        c if c.contains(['s', 'S', 'T']) => State::Suspended,
        _ => State::Running,
    }
}
