// SPDX-License-Identifier: Apache-2.0
//! OpenPBS and PBS Professional: qsub, qstat, qdel; pbs_tmrsh for the nodes.

use crate::adaptor::{
    Adaptor, Cause, JobId, Refusal, Request, State, Verified, Wait, clock, identifier, judge_cancel, refused, silent,
};
use crate::command::{Command, Output, words};
use isthmus_wire::grid::Scheduler;

const SCHEDULER: Scheduler = Scheduler::Pbs;
/// Exit status of a job from which on a signal ended it.
const SIGNALLED: i64 = 256;

#[derive(Debug)]
pub(crate) struct Pbs;

impl Adaptor for Pbs {
    fn scheduler(&self) -> Scheduler {
        SCHEDULER
    }

    fn verified(&self) -> Verified {
        Verified::Recorded
    }

    /// Variables handed to qsub can be read by everybody with `qstat -f` at many sites.
    fn carries_environment(&self) -> bool {
        false
    }

    fn submit(&self, request: &Request<'_>) -> Result<Command, Refusal> {
        let asked = request.allocation;
        let per_node = request.per_node().unwrap_or(request.count);
        let select = match (asked.nodes, request.count % per_node) {
            // The last node may have fewer.
            (0 | 1, _) | (_, 0) => chunk(request.count.div_ceil(per_node), per_node),
            (_, rest) => format!("{}+{}", chunk(request.count / per_node, per_node), chunk(1, rest)),
        };
        let mut command = Command::new("qsub").args(["-S", "/bin/sh", "-j", "oe", "-o", "/dev/null", "-r", "n", "-N"]);
        command = command.args([request.name, "-l", &format!("select={select}")]);
        let place = match (asked.nodes, asked.exclusive) {
            (0, false) => "free",
            (0, true) => "free:excl",
            (1, false) => "pack",
            (1, true) => "pack:excl",
            (_, false) => "scatter",
            (_, true) => "scatter:excl",
        };
        command = command.args(["-l".to_owned(), format!("place={place}")]);
        if asked.limit > 0 {
            command = command.args(["-l".to_owned(), format!("walltime={}", clock(asked.limit))]);
        }
        if !asked.queue.is_empty() {
            command = command.args(["-q", &asked.queue]);
        }
        if !asked.account.is_empty() {
            command = command.args(["-A", &asked.account]);
        }
        Ok(command
            .args(&asked.directives)
            .input(request.agent.script(self.nodes())))
    }

    fn submitted(&self, said: &Output) -> Result<JobId, Refusal> {
        if !said.succeeded() {
            let complaint = said.complaint("qsub: ");
            let hint = if complaint.to_lowercase().contains("queue") {
                "qstat -Q lists the queues of the site"
            } else {
                ""
            };
            return Err(refused(SCHEDULER, complaint, hint));
        }
        identifier(
            SCHEDULER,
            said.output.trim_end().lines().next_back().unwrap_or_default().trim(),
        )
    }

    fn poll(&self, id: &JobId) -> Command {
        // Its times are local ones.
        Command::new("qstat").form("TZ", "UTC0").args(["-x", "-f", id.as_str()])
    }

    fn polled(&self, _id: &JobId, said: &Output) -> Result<State, Refusal> {
        if said.errors.contains("Unknown Job") {
            return Ok(State::Unknown);
        }
        if !said.succeeded() {
            return Err(silent(SCHEDULER, &said.complaint("qstat: ")));
        }
        let comment = || words(field(&said.output, "comment").unwrap_or_default());
        Ok(match field(&said.output, "job_state") {
            None => State::Unknown,
            Some("Q") if comment().starts_with("Can Never Run") => State::Never(comment()),
            Some("Q" | "H" | "W" | "T" | "M") => State::Queued(Wait {
                why: comment(),
                start: field(&said.output, "estimated.start_time").and_then(seconds),
            }),
            Some("E") => State::Ending(Cause::Unsaid),
            Some("F" | "X" | "C") => State::Ended(ending(&said.output)),
            Some("S" | "U") => State::Suspended,
            Some(_) => State::Running,
        })
    }

    fn cancel(&self, id: &JobId) -> Command {
        Command::new("qdel").arg(id.as_str())
    }

    fn cancelled(&self, id: &JobId, said: &Output) -> Result<(), Refusal> {
        judge_cancel(SCHEDULER, id, said, &["Unknown Job", "has finished"])
    }

    fn nodes(&self) -> &'static str {
        r#"hosts=$(awk '{ if (!($1 in slots)) order[++n] = $1; slots[$1]++ } END { for (i = 1; i <= n; i++) print order[i], slots[order[i]] }' "$PBS_NODEFILE")
nodes=$(echo "$hosts" | wc -l)
node=0
while read -r host slots; do
    if test $node = 0; then
        sh -c "$ISTHMUS_NODE" isthmus $node $nodes $slots &
    else
        pbs_tmrsh "$host" /bin/sh "$ISTHMUS_SPOOL/node" $node $nodes $slots </dev/null &
    fi
    node=$((node + 1))
done <<END
$hosts
END
wait
"#
    }
}

fn chunk(nodes: u32, per_node: u32) -> String {
    format!("{nodes}:ncpus={per_node}:mpiprocs={per_node}")
}

/// `Fri Nov 27 14:05:00 2026` as seconds since 1970; nothing for what looks otherwise.
fn seconds(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let mut parts = text.split_whitespace().skip(1);
    let month = parts.next().and_then(|m| MONTHS.iter().position(|known| *known == m))? as u64;
    let day: u64 = parts.next()?.parse().ok().filter(|day| (1..=31).contains(day))?;
    let mut clock = parts
        .next()?
        .splitn(3, ':')
        .map(|part| part.parse::<u64>().ok().filter(|n| *n < 61));
    let clock = [clock.next()??, clock.next()??, clock.next()??];
    let year: u64 = parts
        .next()?
        .parse()
        .ok()
        .filter(|year| (1970..10_000).contains(year))?;
    // Years that begin in March have the day that is not always there at their end.
    let (year, month) = if month < 2 {
        (year - 1, month + 10)
    } else {
        (year, month - 2)
    };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    let seconds = clock[0] * 3600 + clock[1] * 60 + clock[2];
    Some(days.checked_sub(719_468)? * 86_400 + seconds)
}

/// `    name = value` in `qstat -f`.
fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let mut pairs = text.lines().filter_map(|l| l.trim().split_once(" = "));
    pairs.find(|(n, _)| *n == name).map(|(_, value)| value.trim())
}

fn ending(text: &str) -> Cause {
    let comment = words(field(text, "comment").unwrap_or_default());
    let status = field(text, "Exit_status").and_then(|s| s.parse::<i64>().ok());
    match status {
        _ if comment.contains("walltime") => Cause::TimeLimit,
        Some(0) => Cause::Unsaid,
        Some(-29) => Cause::TimeLimit,
        Some(status @ SIGNALLED..) => Cause::Other(format!("it was ended by signal {}", status - SIGNALLED)),
        Some(status) => Cause::Other(format!("its script ended with status {status}")),
        None => Cause::said(comment),
    }
}
