// SPDX-License-Identifier: Apache-2.0
//! Host files of MPICH and Open MPI as jobs.

use super::described::Described;
use super::input::Input;
use crate::error::JobErrors;
use crate::forms::hostfile::{self, Host};
use crate::forms::mpiexec::{Pool, spread};
use crate::forms::sites::name_apart;
use crate::model::{Contact, Job, Subjob};

/// The program on the hosts of a file.
pub(super) fn read(input: &Input<'_>, program: &Subjob) -> Result<Described, JobErrors> {
    let hosts = hostfile::at_home(hostfile::parse(input.text, input.file)?, &mut |host| {
        (input.is_own)(host)
    });
    let mut described = Described::of(Job::new(deal(hosts, input, program))?);
    let named = input.text.lines().filter_map(|line| line.split_whitespace().next());
    described.notes.extend(named.flat_map(hostfile::ports_in));
    Ok(described)
}

/// How many processes there are, and how hosts share them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Share {
    /// All of them.
    pub total: Option<u32>,
    /// On each host.
    pub per_host: Option<u32>,
    /// The same number on each, and not first those of one host.
    pub evenly: bool,
}

impl Share {
    fn apply(self, hosts: &mut Vec<Host>) {
        match self.total {
            Some(total) if self.evenly => spread(hosts, total),
            _ => {}
        }
    }
}

/// The program on the hosts of a list, as in `-host a:2,b`.
pub fn job(
    list: &str,
    is_own: &mut dyn FnMut(&str) -> bool,
    share: Share,
    program: &Subjob,
) -> Result<Described, JobErrors> {
    let mut hosts = hostfile::at_home(hostfile::parse_list(list)?, is_own);
    share.apply(&mut hosts);
    let input = Input {
        total: share.total,
        per_host: share.per_host,
        ..Input::of("", "")
    };
    let mut described = Described::of(Job::new(deal(hosts, &input, program))?);
    described.notes.extend(hostfile::ports_in(list));
    Ok(described)
}

/// The program on the nodes of an allocation and their local network.
///
/// # Errors
/// Too many processes.
pub fn allocated(mut hosts: Vec<Host>, lan: &str, share: Share, program: &Subjob) -> Result<Described, JobErrors> {
    if share.per_host.is_some() {
        hosts.iter_mut().for_each(|host| host.slots = None);
    }
    share.apply(&mut hosts);
    let input = Input {
        total: share.total,
        per_host: share.per_host,
        lan: hosts.iter().any(|host| host.contact != Contact::Home).then_some(lan),
        ..Input::of("", "")
    };
    Ok(Described::of(Job::new(deal(hosts, &input, program))?))
}

/// Processes on hosts in their order, and again from the beginning when there are more than slots.
pub(super) fn deal(hosts: Vec<Host>, input: &Input<'_>, program: &Subjob) -> Vec<Subjob> {
    let dealt = Pool::new(hosts, input.per_host).deal(input.total);
    let subjobs = dealt.into_iter().map(|(contact, count)| Subjob {
        site: contact.to_string(),
        lan: input.lan.map_or_else(|| contact.to_string(), str::to_owned),
        contact,
        count,
        ..program.clone()
    });
    let mut subjobs: Vec<Subjob> = subjobs.collect();
    name_apart(&mut subjobs);
    subjobs
}

/// A line for every host.
pub(super) fn write(job: &Job, line: impl Fn(&str, u32) -> String) -> String {
    job.subjobs().iter().map(|s| line(&host(&s.contact), s.count)).collect()
}

/// This machine has a name of its own in files that others read.
pub(super) fn host(contact: &Contact) -> String {
    match contact {
        Contact::Home => "localhost".to_owned(),
        Contact::Ssh(_) | Contact::Part(_) => contact.bracketed(),
    }
}
