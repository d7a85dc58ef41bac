// SPDX-License-Identifier: Apache-2.0
//! The worlds of a job. Opening a barrier: ranks, places and certificates for the subjobs of one of them.

use crate::credentials::Credentials;
use crate::links::{JobLinks, LinkOptions};
use isthmus_job::Job;
use isthmus_job::numbering::{self, Machine};
use isthmus_topology::Measured;
use isthmus_wire::gateway::Paths;
use isthmus_wire::grid::Commit;
use isthmus_wire::place::PlaceTable;

/// The worlds of a job: that of its first processes, then those that were spawned or added.
///
/// Each has an authority and a name of its own: nobody is taken for a process of another one.
pub(crate) struct Worlds {
    /// Of the world that begins next.
    credentials: Credentials,
    begun: Option<Begun>,
}

/// Some have begun.
struct Begun {
    /// How many.
    count: u32,
    /// What is known of the links of the first: what the job says of links is said of it.
    links: JobLinks,
}

impl Worlds {
    /// None has begun.
    pub(crate) fn new(first: Credentials) -> Self {
        Self {
            credentials: first,
            begun: None,
        }
    }

    /// The processes of the job have begun.
    pub(crate) fn have_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// What is known of the links of the job, once its processes have begun.
    pub(crate) fn links(&self) -> Option<&JobLinks> {
        self.begun.as_ref().map(|begun| &begun.links)
    }

    /// A process of the job tells what it has seen of its links.
    pub(crate) fn hear(&mut self, seen: &[Measured]) {
        if let Some(begun) = &mut self.begun {
            begun.links.take(seen);
        }
    }

    /// The name of the world that begins next in this job, and what it proves itself with. `connects`: its processes
    /// may be on several nodes.
    pub(crate) fn prepare(&mut self, job: &str, connects: bool) -> Result<(String, &Credentials), String> {
        let Some(begun) = &self.begun else {
            return Ok((job.to_owned(), &self.credentials));
        };
        let name = format!("{job}.{}", begun.count);
        self.credentials = Credentials::new(&name, connects).map_err(|error| error.to_string())?;
        Ok((name, &self.credentials))
    }

    /// It has begun.
    pub(crate) fn begin(&mut self, links: JobLinks) {
        let first = Begun { count: 0, links };
        self.begun.get_or_insert(first).count += 1;
    }
}

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
/// Whoever knows what people call the job tells its commits.
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
            title: String::new(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use isthmus_job::{Program, sites};

    #[test]
    fn two_worlds_of_one_job_have_different_names_and_authorities() {
        let specs = [sites::SiteSpec::parse("home:1").expect("a site")];
        let job = sites::job_of_sites(&specs, None, &sites::template(Program::one("x"), vec![])).expect("a job");
        let links = || JobLinks::new(&job, &["here".to_owned()], &LinkOptions::default()).0;
        let mut worlds = Worlds::new(Credentials::new("isthmus-1", true).expect("a key"));
        let mut seen: Vec<(String, Vec<u8>)> = Vec::new();
        for _ in 0..3 {
            let (name, credentials) = worlds.prepare("isthmus-1", true).expect("a world");
            let world = (name, credentials.authority());
            assert!(
                seen.iter().all(|(name, key)| *name != world.0 && *key != world.1),
                "{}",
                world.0
            );
            seen.push(world);
            worlds.begin(links());
        }
    }
}
