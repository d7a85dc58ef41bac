// SPDX-License-Identifier: Apache-2.0
//! Opening a barrier: ranks, places and certificates for the subjobs of one world.

use crate::credentials::Credentials;
use crate::links::{JobLinks, LinkOptions};
use isthmus_job::Job;
use isthmus_job::numbering::{self, Machine};
use isthmus_wire::gateway::Paths;
use isthmus_wire::grid::Commit;
use isthmus_wire::place::PlaceTable;

/// What opens the barrier at each subjob of a world, and what is known of its links.
pub(crate) struct World {
    pub(crate) commits: Vec<Commit>,
    /// What it is called, and the secret of its members.
    pub(crate) name: String,
    pub(crate) secret: [u8; 32],
    pub(crate) links: JobLinks,
    /// Who is where.
    pub(crate) places: PlaceTable,
    /// What the user should know.
    pub(crate) notice: Option<String>,
}

/// The world of a job all of whose processes have arrived; `name`: what it is called, `hosts`: where its agents are.
pub(crate) fn world(
    name: &str,
    job: &Job,
    mut machines: Vec<Machine>,
    hosts: &[String],
    credentials: &Credentials,
    links: &LinkOptions,
    paths: &[Paths],
) -> Result<World, String> {
    let places = numbering::place_table(job, &machines).ok_or("the place table is incomplete")?;
    let authority = credentials.authority();
    let (links, notice) = JobLinks::new(job, hosts, links);
    let table = links.table();
    let mut commits = Vec::with_capacity(machines.len());
    for ((subjob, machine), first_rank) in (0u32..).zip(&mut machines).zip(job.first_ranks()) {
        machine.arrivals.sort_by_key(|a| a.index);
        let certificates = machine
            .arrivals
            .iter()
            .map(|a| credentials.certificate(first_rank + a.index, a));
        commits.push(Commit {
            name: name.to_owned(),
            subjob,
            secret: credentials.secret,
            authority: authority.clone(),
            certificates: certificates.collect::<Result<_, _>>()?,
            places: places.clone(),
            links: table.clone(),
            paths: paths.get(subjob as usize).cloned().unwrap_or_default(),
        });
    }
    Ok(World {
        commits,
        name: name.to_owned(),
        secret: credentials.secret,
        links,
        places,
        notice,
    })
}
