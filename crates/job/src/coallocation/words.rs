// SPDX-License-Identifier: Apache-2.0
//! Words for people.

use isthmus_wire::grid::Exit;

/// `rank 3`, `ranks 0-3, 7`.
pub(super) fn list_of_ranks(ranks: &[u32]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut at = 0;
    while at < ranks.len() && parts.len() < 8 {
        let mut end = at;
        while end + 1 < ranks.len() && ranks[end + 1] == ranks[end] + 1 {
            end += 1;
        }
        parts.push(if end > at {
            format!("{}-{}", ranks[at], ranks[end])
        } else {
            ranks[at].to_string()
        });
        at = end + 1;
    }
    if at < ranks.len() {
        parts.push(format!("and {} more", ranks.len() - at));
    }
    format!(
        "{} {}",
        if ranks.len() == 1 { "rank" } else { "ranks" },
        parts.join(", ")
    )
}

/// `'a'`, `'a', 'b' and 3 more`.
pub(super) fn list_of_sites<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let all: Vec<String> = names.map(|name| format!("'{name}'")).collect();
    let (shown, more) = all.split_at(all.len().min(4));
    match more.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// How a job was ended; `by`: by the user of which part, where there are several.
pub(super) fn interruption(by: &str, signal: u32) -> String {
    let what = match signal {
        1 => "the terminal was closed (SIGHUP)",
        13 => "the reader of the output has closed it",
        15 => "interrupted (SIGTERM)",
        _ => "interrupted",
    };
    match (by, signal) {
        ("", _) => what.to_owned(),
        (by, 1 | 13) => format!("{by}: {what}"),
        (by, _) => format!("{by} was {what}"),
    }
}

/// What to do where a limit of the user's has ended a process; may be empty.
pub(super) fn limit_of(exit: Exit) -> &'static str {
    match exit {
        Exit::Signal(24) => "it has used the processor time that it may (ulimit -t)",
        Exit::Signal(25) => "a file that it writes was to be larger than it may (ulimit -f)",
        Exit::Signal(31) => "it made a system call that is forbidden there (seccomp), as in some containers",
        _ => "",
    }
}

/// ` (SIGSEGV)` for the signals that people meet.
pub(super) fn signal_name(signal: u32) -> &'static str {
    match signal {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        3 => " (SIGQUIT)",
        4 => " (SIGILL)",
        5 => " (SIGTRAP)",
        6 => " (SIGABRT)",
        7 => " (SIGBUS)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        10 => " (SIGUSR1)",
        11 => " (SIGSEGV)",
        12 => " (SIGUSR2)",
        13 => " (SIGPIPE)",
        14 => " (SIGALRM)",
        15 => " (SIGTERM)",
        24 => " (SIGXCPU)",
        25 => " (SIGXFSZ)",
        26 => " (SIGVTALRM)",
        27 => " (SIGPROF)",
        29 => " (SIGIO)",
        30 => " (SIGPWR)",
        31 => " (SIGSYS)",
        _ => "",
    }
}
