// SPDX-License-Identifier: Apache-2.0
//! Host files of MPICH and Open MPI: one host a line, with a number of processes.
//!
//! ```text
//! # comment
//! alpha:4               MPICH
//! beta slots=2          Open MPI, also max_slots= and max-slots=
//! n1.x 4 all.q@n1.x UNDEFINED     Grid Engine's $PE_HOSTFILE
//! me@gamma              one process
//! ```

use crate::attributes::Span;
use crate::error::{JobError, JobErrors, MAX_ERRORS};
use crate::forms::sites;
use crate::model::{Contact, check_count, too_many};

/// One host of a host file or a `-host` list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// How to get there; its text is the site's name.
    pub contact: Contact,
    /// Processes it takes, when given.
    pub slots: Option<u32>,
}

/// Most lines of a host file.
const MAX_LINES: usize = 100_000;

/// Reads a host file. A host named several times gets the sum of its slots.
pub fn parse(text: &str, file: &str) -> Result<Vec<Host>, JobErrors> {
    let (mut hosts, mut errors) = (Vec::new(), JobErrors::default());
    for (content, span) in lines(text, file)? {
        match errors.take(parse_line(content).map_err(|e| e.at(file, text, span))) {
            Some(host) => add(&mut hosts, host),
            None if errors.count() >= MAX_ERRORS => break,
            None => {}
        }
    }
    if hosts.is_empty() && errors.is_empty() {
        return Err(none(file).into());
    }
    errors.or(Some(hosts))
}

pub(crate) fn none(file: &str) -> JobError {
    JobError::new(format!("host file '{file}' names no host")).hint("write one host a line: NAME:N")
}

/// The lines. What ends the last one begins none.
pub(super) fn split(text: &str) -> impl Iterator<Item = &str> {
    text.strip_suffix('\n').unwrap_or(text).split('\n')
}

/// The lines that say something, without comments and surrounding white space, and where they stand.
pub(crate) fn lines<'a>(text: &'a str, file: &str) -> Result<Vec<(&'a str, Span)>, JobError> {
    let mut found = Vec::new();
    let mut at = 0;
    for (number, line) in split(text).enumerate() {
        let span = at..at + line.len();
        at += line.len() + 1;
        if number >= MAX_LINES {
            return Err(JobError::new(format!(
                "host file '{file}' has more than {MAX_LINES} lines"
            )));
        }
        let content = line.split('#').next().unwrap_or_default();
        let start = span.start + (content.len() - content.trim_start().len());
        let content = content.trim();
        if !content.is_empty() {
            found.push((content, start..start + content.len()));
        }
    }
    Ok(found)
}

/// Hosts that are this machine (`is_own` tells by name or address) are home; several names of it are one host.
pub fn at_home(hosts: Vec<Host>, is_own: &mut dyn FnMut(&str) -> bool) -> Vec<Host> {
    let mut all = Vec::with_capacity(hosts.len());
    for mut host in hosts {
        // Who names a user or a port means ssh.
        let own = match &host.contact {
            Contact::Ssh(name) => !name.contains('@') && !name.contains("://") && is_own(name),
            Contact::Home | Contact::Part(_) => false,
        };
        if own {
            host.contact = Contact::Home;
        }
        add(&mut all, host);
    }
    all
}

/// Reads a comma-separated list of hosts, as in `-host a:2,b`.
pub fn parse_list(text: &str) -> Result<Vec<Host>, JobError> {
    let mut hosts = Vec::new();
    for item in text.split(',').map(str::trim) {
        if item.is_empty() {
            return Err(JobError::new(format!("the host list '{text}' has an empty entry")));
        }
        add(&mut hosts, parse_host(item)?);
    }
    Ok(hosts)
}

/// Hosts of a list whose number of processes looks like a port.
pub fn ports_in(text: &str) -> impl Iterator<Item = JobError> + '_ {
    text.split(',').filter_map(|item| sites::port_note(item.trim()))
}

/// Puts a host into a list; one that is there already gets the slots of both.
pub(crate) fn add(hosts: &mut Vec<Host>, host: Host) {
    match hosts.iter_mut().find(|h| h.contact == host.contact) {
        Some(known) => {
            known.slots = Some(known.slots.unwrap_or(1).saturating_add(host.slots.unwrap_or(1)));
        }
        None => hosts.push(host),
    }
}

/// A line without the white space around `=`, which Open MPI allows.
fn joined(line: &str) -> String {
    let mut parts = line.split('=').map(str::trim);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |line, part| format!("{line}={part}"))
}

fn parse_line(line: &str) -> Result<Host, JobError> {
    let line = joined(line);
    let mut words = line.split_whitespace();
    let mut host = parse_host(words.next().unwrap_or_default())?;
    let mut rest = words.clone();
    if let (Some(slots), Some(queue), true) = (rest.next(), rest.next(), host.slots.is_none()) {
        if sites::is_number(slots) && !queue.contains('=') {
            host.slots = Some(parse_slots(&host.contact, slots)?);
            return Ok(host);
        }
    }
    let mut most = None;
    for word in words {
        match word.split_once('=') {
            // Words of Open MPI and LAM for the same.
            Some(("slots" | "cpu" | "cpus" | "count", n)) => host.slots = Some(parse_slots(&host.contact, n)?),
            // Alone it is the number of slots too, as in Open MPI; otherwise it changes nothing: nobody is refused.
            Some(("max_slots" | "max-slots" | "slots_max" | "slots-max", n)) => {
                most = Some(parse_slots(&host.contact, n)?)
            }
            _ => {
                let problem = format!("'{word}' is not understood in a host file");
                return Err(JobError::new(problem).hint("write NAME, NAME:N or NAME slots=N"));
            }
        }
    }
    host.slots = host.slots.or(most);
    Ok(host)
}

fn parse_host(text: &str) -> Result<Host, JobError> {
    if text.contains([',', ';']) {
        return Err(JobError::new(format!("'{text}' is not one host"))
            .hint("a host file has one host a line; -host takes a list: -host a:2,b"));
    }
    let (name, slots) = sites::split_host(text);
    let contact = Contact::parse(if name == "localhost" { "home" } else { name })?;
    let slots = slots.map(|n| parse_slots(&contact, n)).transpose()?;
    Ok(Host { contact, slots })
}

fn parse_slots(contact: &Contact, text: &str) -> Result<u32, JobError> {
    if !sites::is_number(text) {
        return Err(JobError::new(format!("'{text}' is not a number of processes")));
    }
    let slots = text.parse().map_err(|_| too_many(text))?;
    check_count(&contact.to_string(), slots)?;
    Ok(slots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_styles_are_read() {
        let text = "# cluster\nalpha:4\r\n beta slots=2 max_slots=8 # two\n\nalpha\nlocalhost\n";
        let hosts = parse(text, "hosts").unwrap();
        let short: Vec<_> = hosts.iter().map(|h| (h.contact.to_string(), h.slots)).collect();
        assert_eq!(
            short,
            [
                ("alpha".into(), Some(5)),
                ("beta".into(), Some(2)),
                ("home".into(), None)
            ]
        );
    }

    #[test]
    fn slots_are_told_in_other_words() {
        let slots = |text: &str| parse(text, "h").map(|all| all.iter().map(|h| h.slots).collect::<Vec<_>>());
        let text = "n1 max_slots=8\nn2 slots=2 max_slots=8\nn3 max-slots=8 slots=2\n";
        assert_eq!(slots(text), Ok(vec![Some(8), Some(2), Some(2)]));
        let text = "n1 slots = 2 max_slots =4\nn2 cpu=3\nn3 count= 2\n";
        assert_eq!(slots(text), Ok(vec![Some(2), Some(3), Some(2)]));
        assert!(slots("n1 slots =\n").is_err());
        let text = "n1.x 4 all.q@n1.x UNDEFINED\nn2.x 2 all.q@n2.x <NULL>\nn1.x 1 fast.q@n1.x UNDEFINED\n";
        assert_eq!(slots(text), Ok(vec![Some(5), Some(2)]));
        assert!(slots("n1 0 all.q@n1 UNDEFINED\n").is_err() && slots("n1 x all.q@n1\n").is_err());
    }

    #[test]
    fn a_file_has_as_many_lines_as_end_in_it() {
        for (last, is_read) in [("h", true), ("h\n", true), ("\nh", false)] {
            let text = format!("{}{last}", "\n".repeat(MAX_LINES - 1));
            assert_eq!(lines(&text, "f").is_ok(), is_read, "{last:?}");
        }
    }

    #[test]
    fn errors_point_into_the_file() {
        let error = parse("alpha\n  beta slots=x\n", "my.hosts").unwrap_err().to_string();
        assert!(
            error.starts_with("my.hosts:2:3: 'x' is not a number of processes"),
            "{error}"
        );
        assert!(
            parse("# none\n", "h")
                .unwrap_err()
                .to_string()
                .contains("names no host")
        );
        assert!(parse("alpha speed=3", "h").is_err());
        for text in ["alpha:99999999999", "alpha slots=99999999999"] {
            let error = parse(text, "h").unwrap_err().to_string();
            assert!(error.contains("99999999999 processes are above"), "{error}");
        }
        assert!(parse("alpha:0", "h").is_err());
        assert!(parse("-oProxyCommand=evil", "h").is_err());
        for text in ["alpha,beta", "alpha;beta", "alpha:2,beta"] {
            assert!(parse(text, "h").is_err(), "{text}");
        }
    }

    #[test]
    fn lists() {
        assert_eq!(parse_list("a:2,b,a").unwrap()[0].slots, Some(3));
        assert!(parse_list("a,,b").is_err());
        let hosts = parse_list("fd00::2,[fd00::3]:4,ssh://h:22,me@[fd00::4]").unwrap();
        let short: Vec<_> = hosts.iter().map(|h| (h.contact.to_string(), h.slots)).collect();
        assert_eq!(
            short,
            [
                ("fd00::2".into(), None),
                ("fd00::3".into(), Some(4)),
                ("ssh://h:22".into(), None),
                ("me@fd00::4".into(), None)
            ]
        );
    }
}
