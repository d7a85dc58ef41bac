// SPDX-License-Identifier: Apache-2.0
//! How a site is reached; contact strings of GRAM, read as sites that ssh reaches:
//! `[https://]HOST[:PORT][/SERVICE][:SUBJECT]`.

use crate::address::{is_ipv6, without_brackets};
use crate::error::JobError;
use crate::naming::check_name;
use std::fmt::Display;

/// How a site is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contact {
    /// This machine.
    Home,
    /// A destination for the ssh client.
    Ssh(String),
    /// The launcher of another part of a world that is put together by hand, which has called.
    Part(u32),
}

impl Contact {
    /// From what the user wrote: `home` or an ssh destination.
    pub fn parse(text: &str) -> Result<Self, JobError> {
        if text == "home" {
            return Ok(Self::Home);
        }
        let destination = without_brackets(text)?;
        check_destination(&destination)?;
        Ok(Self::Ssh(destination))
    }
}

impl Contact {
    /// As it stands in front of a colon and a number: an IPv6 address in brackets.
    pub(crate) fn bracketed(&self) -> String {
        let text = self.to_string();
        let (user, host) = text.rsplit_once('@').map_or(("", &*text), |(user, host)| (user, host));
        match is_ipv6(host) {
            true if user.is_empty() => format!("[{host}]"),
            true => format!("{user}@[{host}]"),
            false => text,
        }
    }
}

impl Display for Contact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Home => f.write_str("home"),
            Self::Ssh(destination) => f.write_str(destination),
            Self::Part(number) => write!(f, "part {number}"),
        }
    }
}

/// A destination that the ssh client would take for an option is refused.
pub(crate) fn check_destination(text: &str) -> Result<(), JobError> {
    check_name("site", text)?;
    // The system takes `4` for the address 0.0.0.4.
    if text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(JobError::new(format!("'{text}' is a number, not a host"))
            .hint("the number of processes follows the host's name: NAME:N"));
    }
    let (_, host) = text.rsplit_once('@').unwrap_or(("", text));
    if host.is_empty() || host.starts_with(':') && !is_ipv6(host) {
        return Err(
            JobError::new(format!("'{text}' names no host")).hint("write HOST or USER@HOST, as for ssh, or home")
        );
    }
    if let (None, Some((_, behind))) = (text.find("://"), host.rsplit_once(':')) {
        if !is_ipv6(host) && behind.bytes().all(|b| b.is_ascii_digit()) {
            return Err(JobError::new(format!("'{text}' has two numbers"))
                .hint("the number of processes follows the host's name: NAME:N; with a port it is ssh://NAME:PORT:N"));
        }
    }
    if text.starts_with('-') {
        return Err(JobError::new(format!("'{text}' is not an ssh destination"))
            .hint("a site is 'home' or what you would write after ssh: HOST or USER@HOST"));
    }
    Ok(())
}

/// What a contact string says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gram {
    /// The host, as an ssh destination; `home` and `localhost` are this machine.
    pub(crate) contact: Contact,
    /// `slurm` of the service `jobmanager-slurm`.
    pub(crate) scheduler: Option<String>,
    /// Parts that mean something to Globus only.
    pub(crate) dropped: Vec<&'static str>,
}

/// Reads a contact string.
pub(crate) fn parse(text: &str) -> Result<Gram, JobError> {
    let wrong = |why: &str| {
        Err(
            JobError::new(format!("contact '{}' {why}", crate::quoted::shown(text))).hint(
                "write HOST or USER@HOST as for ssh, or home; HOST:PORT/jobmanager-SCHEDULER:SUBJECT is understood too",
            ),
        )
    };
    if text.starts_with("ssh://") {
        return Ok(plain(Contact::parse(text)?));
    }
    let bare = text.strip_prefix("https://").unwrap_or(text);
    let (host, mut rest) = split_host(bare);
    if host.is_empty() {
        return wrong("names no host");
    }
    let mut gram = plain(match host {
        "localhost" => Contact::Home,
        _ => Contact::parse(host)?,
    });
    if let Some(after) = rest.strip_prefix(':') {
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let (port, after) = after.split_at(digits);
        if !port.is_empty() {
            gram.dropped.push("port");
        } else if !after.starts_with(['/', ':']) {
            return wrong("has no number after its ':'");
        }
        rest = after;
    }
    if let Some(after) = rest.strip_prefix('/') {
        let end = after.find(':').unwrap_or(after.len());
        let service = &after[..end];
        match service.strip_prefix("jobmanager") {
            Some("") => {}
            Some(name) if name.len() > 1 && name.starts_with('-') => gram.scheduler = Some(ours(&name[1..]).to_owned()),
            _ => return wrong("names a service that is not a job manager"),
        }
        rest = &after[end..];
    }
    if rest.strip_prefix(':').is_some_and(|subject| !subject.is_empty()) {
        gram.dropped.push("subject");
    } else if !rest.is_empty() {
        return wrong("has something after its host that is not understood");
    }
    Ok(gram)
}

/// A contact string for this contact and scheduler.
pub(crate) fn write(contact: &Contact, scheduler: Option<&str>) -> String {
    let contact = contact.bracketed();
    match scheduler {
        Some(scheduler) if scheduler == GRID_ENGINE.1 => format!("{contact}/jobmanager-{}", GRID_ENGINE.0),
        Some(scheduler) => format!("{contact}/jobmanager-{scheduler}"),
        None => contact,
    }
}

/// Grid Engine has another name in Globus.
const GRID_ENGINE: (&str, &str) = ("sge", "grid-engine");

fn ours(scheduler: &str) -> &str {
    if scheduler == GRID_ENGINE.0 {
        GRID_ENGINE.1
    } else {
        scheduler
    }
}

fn plain(contact: Contact) -> Gram {
    Gram {
        contact,
        scheduler: None,
        dropped: Vec::new(),
    }
}

/// The host ends at the first `:` or `/` that is not within the brackets of an address.
fn split_host(text: &str) -> (&str, &str) {
    let inside = match text.find('[') {
        Some(open) => text[open..].find(']').map_or(0, |close| open + close),
        None => 0,
    };
    let end = text[inside..].find([':', '/']).map_or(text.len(), |end| inside + end);
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (String, Option<String>, usize) {
        let gram = parse(text).unwrap();
        (gram.contact.to_string(), gram.scheduler, gram.dropped.len())
    }

    #[test]
    fn forms() {
        let slurm = || Some("slurm".to_owned());
        for (text, want) in [
            ("lab", ("lab".to_owned(), None, 0)),
            ("me@lab", ("me@lab".to_owned(), None, 0)),
            ("localhost", ("home".to_owned(), None, 0)),
            ("lab:2119", ("lab".to_owned(), None, 1)),
            ("lab:2119/jobmanager-slurm", ("lab".to_owned(), slurm(), 1)),
            ("lab/jobmanager", ("lab".to_owned(), None, 0)),
            (
                "https://lab:/jobmanager-slurm:/O=Grid/CN=a b",
                ("lab".to_owned(), slurm(), 1),
            ),
            ("lab::/O=Grid/CN=x", ("lab".to_owned(), None, 1)),
            ("[::1]:7/jobmanager", ("::1".to_owned(), None, 1)),
            ("ssh://me@lab:2222", ("ssh://me@lab:2222".to_owned(), None, 0)),
        ] {
            assert_eq!(read(text), want, "{text}");
        }
        assert_eq!(write(&Contact::Ssh("lab".into()), Some("pbs")), "lab/jobmanager-pbs");
        assert_eq!(write(&Contact::Ssh("me@::1".into()), None), "me@[::1]");
    }

    #[test]
    fn what_is_no_contact_is_named() {
        for text in [
            "",
            ":2119",
            "lab:",
            "lab:x",
            "lab:2119x",
            "lab/gridftp",
            "lab/jobmanager-",
            "-oX",
            "a b",
        ] {
            assert!(parse(text).is_err(), "'{text}' was accepted");
        }
    }
}
