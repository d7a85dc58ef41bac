// SPDX-License-Identifier: Apache-2.0
//! Where the processes of `isthmus run` go: hosts of a list, nodes of an allocation, or sites.

use super::arguments::Run;
use super::bound;
use crate::{allocated, reach};
use isthmus_job::catalogue::Catalogue;
use isthmus_job::forms::hosts::Share;
use isthmus_job::forms::{Described, hosts};
use isthmus_job::sites::{self, SiteSpec};
use isthmus_job::{Contact, JobErrors, Subjob};

/// The job. `total`: how many processes; `chosen`: the sites that a condition has chosen.
pub(super) fn described(
    arguments: &Run,
    total: Option<u32>,
    chosen: Option<Vec<String>>,
    catalogue: &Catalogue,
    template: &Subjob,
) -> Result<Described, JobErrors> {
    let placement = bound::placement(arguments)?;
    let noted = |described: Described| Described {
        notes: [described.notes, placement.notes.clone()].concat(),
        ..described
    };
    let each = arguments.ppn.as_deref().map(sites::parse_each).transpose()?;
    let each = each.or(placement.per_host);
    let share = |total| Share {
        total,
        per_host: each,
        evenly: placement.evenly,
    };
    if let Some(list) = &arguments.hosts {
        let total = bound::total(&placement, total, false)?;
        return hosts::job(list, &mut |host| reach::is_home(host), share(total), template).map(noted);
    }
    if arguments.sites.is_empty() && chosen.is_none() {
        // As mpiexec does, and other launchers.
        if let Some((nodes, lan)) = allocated::hosts()? {
            let here = nodes.iter().all(|node| node.contact == Contact::Home);
            let total = bound::total(&placement, total, here)?;
            return hosts::allocated(nodes, &lan, share(total), template).map(noted);
        }
    }
    let alone = arguments.sites.is_empty() && chosen.is_none();
    let counted = !alone && arguments.sites.iter().all(|site| site.contains(':'));
    let total = match counted {
        true => total,
        false => bound::total(&placement, total, alone)?,
    };
    let mut specs = chosen
        .as_ref()
        .unwrap_or(&arguments.sites)
        .iter()
        .map(|s| SiteSpec::parse_known(s, &|site| catalogue.scheduler(site)))
        .collect::<Result<Vec<_>, _>>()?;
    if specs.is_empty() {
        specs.push(SiteSpec::parse("home")?);
    }
    if let Some(each) = each {
        sites::fill(&mut specs, total, each)?;
    }
    let mut described = noted(Described::of(sites::job_of_sites(&specs, total, template)?));
    described
        .notes
        .extend(arguments.sites.iter().filter_map(|s| sites::port_note_of_site(s)));
    Ok(described)
}
