// SPDX-License-Identifier: Apache-2.0
//! What co-allocation decides is done here.

use super::{Coordinator, losing, spawning};
use crate::console::Print;
use crate::events::JobEvent;
use crate::session::Session;
use crate::worlds::{self, World};
use isthmus_job::catalogue::Catalogue;
use isthmus_job::coallocation::Action;
use isthmus_job::{Contact, JobError, Subjob, Substitute};
use isthmus_wire::boot::Gone;
use isthmus_wire::grid::ToAgent;
use isthmus_wire::place::PlaceTable;

impl Coordinator {
    pub(super) fn act(&mut self, action: Action) {
        match action {
            Action::Commit(sites) => self.committing.push(sites),
            Action::Dismiss(sites) => {
                for site in sites {
                    self.connections.send_lasting(site, &ToAgent::Dismiss);
                }
            }
            Action::NotStarted { sites, problem, hint } => spawning::not_started(self, &sites, &problem, &hint),
            Action::Retire(sites) => {
                spawning::retire(self, &sites);
                self.agreements.doubt();
            }
            Action::Drop { site, problem, goes_on } => self.drop_site(site, &problem, goes_on),
            Action::Substitute { site, place, problem } => self.substitute(site, place.as_ref(), &problem),
            Action::Ask { site, problem, hint } => self.ask(site, &problem, &hint),
            Action::Settled { site } => {
                self.printer.notice_of(&self.subjobs[site].site, "is there now");
                self.questions_settled(site);
            }
            Action::Lost {
                site,
                indices,
                whole,
                problem,
            } => losing::lose(self, site, &indices, whole, &problem),
            Action::Gone {
                sites,
                of,
                goes_on,
                number,
                first,
                count,
                reason,
            } => {
                let gone = Gone {
                    number,
                    goes_on,
                    world: [0; 16],
                    first,
                    count,
                    reason,
                };
                losing::tell(self, &sites, of, gone);
                self.agreements.doubt();
            }
            Action::Abort { code, reason } => {
                self.committing.clear();
                let abort = ToAgent::Abort { code, reason };
                (0..self.subjobs.len()).for_each(|site| self.connections.send_lasting(site, &abort));
            }
            Action::Signal(signal) => self.connections.send_all(&ToAgent::Signal(signal)),
            Action::Leave => {
                self.committing.clear();
                self.leaving = true;
                self.crossings.end();
                self.connections.end_all();
            }
        }
    }

    pub(super) fn commit(&mut self, sites: &[usize]) {
        // The answer comes before anything that the processes record.
        self.ping();
        match self.world(sites) {
            Ok(world) => {
                self.tally.begin();
                if self.shared.options.trace.is_some() {
                    // Those of other parts are in the traces of these.
                    let is_part = |site: usize| matches!(self.subjobs[site].contact, Contact::Part(_));
                    let number_of = |site, index| self.machine.subjobs().number_of(site, index);
                    let number = |site, index| (!is_part(site)).then(|| number_of(site, index));
                    self.printer.print(Print::Traced(traced(sites, &world.places, number)));
                }
                if !self.worlds.have_begun() {
                    let messages = self.crossings.place(sites, &world.places);
                    self.connections.send_gateways(&messages);
                }
                // Those that another coordinator has begun have theirs.
                for (&site, commit) in sites.iter().zip(world.commits).filter(|_| !self.shared.is_taken_up()) {
                    self.connections.send(site, &ToAgent::Commit(Box::new(commit)));
                }
                self.worlds.begin(world.links);
                if let Some(notice) = world.notice {
                    self.printer.notice(notice);
                }
                let names: Vec<&str> = sites.iter().map(|&s| self.subjobs[s].site.as_str()).collect();
                let processes = sites.iter().map(|&s| self.subjobs[s].count).sum();
                self.printer.tell(&JobEvent::start(&names, processes));
                self.hold(sites);
                self.agreements.begun(&world.secret, &world.name, sites);
                spawning::begun(self, sites);
            }
            Err(problem) => {
                let problem = format!("{problem}; please report this");
                self.machine.handle_failed(&problem, "", self.began.elapsed());
            }
        }
    }

    /// Asks all agents whether they are there, and for their clocks.
    pub(super) fn ping(&mut self) {
        self.ticks += 1;
        self.clocks.ask(self.ticks);
        self.connections.send_all(&ToAgent::Ping(self.ticks));
    }

    fn world(&mut self, sites: &[usize]) -> Result<World, String> {
        let part = sites.iter().map(|&site| self.subjobs[site].clone()).collect();
        let job = self.job.with_subjobs(part).map_err(|error| error.to_string())?;
        let machines = self.board.take_machines(sites);
        let hosts: Vec<String> = sites.iter().map(|&s| self.connections.host(s).to_owned()).collect();
        // Gateways serve the first world; processes of others connect by themselves.
        let paths = if self.worlds.have_begun() {
            Vec::new()
        } else {
            self.crossings.paths(sites)
        };
        let connects = self.job.spans_nodes() || sites.iter().any(|&site| site >= self.shared.planned);
        let (name, credentials) = self.worlds.prepare(&self.name, connects)?;
        let links = &self.link_options;
        let mut world = worlds::world(&name, &job, machines, &hosts, credentials, links, &paths)?;
        let chosen = self.session.as_ref().and_then(Session::chosen_name);
        let title = chosen.unwrap_or_else(|| self.name.strip_prefix("isthmus-").unwrap_or(&self.name));
        for commit in &mut world.commits {
            title.clone_into(&mut commit.title);
        }
        Ok(world)
    }

    fn drop_site(&mut self, site: usize, problem: &str, goes_on: bool) {
        self.connections.end_subjob(site);
        self.crossings.leave(site);
        self.questions_settled(site);
        let name = &self.subjobs[site].site;
        self.printer.tell(&JobEvent::drop(name, problem));
        let unread = self.inputs.remove(site);
        // What becomes of the job without any subjob, its end says.
        if !goes_on {
            return;
        }
        let mut text = format!("{problem}; the job goes on without it");
        if unread {
            text.push_str(", and nobody reads its standard input");
        }
        self.printer.notice(text);
    }

    fn substitute(&mut self, site: usize, place: Option<&Substitute>, problem: &str) {
        self.questions_settled(site);
        if let Some(place) = place {
            let options = &self.shared.options;
            let described = options.described.get(site).unwrap_or(&self.subjobs[site]);
            match at_place(described, place, &options.catalogue) {
                Ok(subjob) => self.subjobs[site] = subjob,
                Err(error) => {
                    self.printer.notice(format!("{problem}; trying '{place}'"));
                    let hint = error.hint.unwrap_or_default();
                    let own = format!("site '{}': ", self.subjobs[site].site);
                    let why = error.problem.strip_prefix(&own).unwrap_or(&error.problem);
                    return self.machine.handle_site_failed(site, why, &hint, self.began.elapsed());
                }
            }
        }
        self.board
            .begin_again(site, place.map(|p| format!("at {p}")).unwrap_or_default());
        let subjob = self.subjobs[site].clone();
        let now_at = place.map_or_else(|| subjob.contact.to_string(), Substitute::to_string);
        self.printer.tell(&JobEvent::substitute(&subjob.site, &now_at, problem));
        self.printer.notice(format!("{problem}; trying '{now_at}'"));
        let input = self.inputs.again(site, self.machine.subjobs().number_of(site, 0));
        self.crossings.leave(site);
        let gateway = self.crossings.open(site);
        self.connections.start(site, subjob, input, gateway);
    }
}

/// A subjob as it was described, at another place, with what is known of that.
fn at_place(described: &Subjob, place: &Substitute, catalogue: &Catalogue) -> Result<Subjob, JobError> {
    let mut subjob = place.apply(described);
    catalogue.complete_subjob(&mut subjob)?;
    Ok(subjob)
}

/// The processes of a world for the trace: number, site and host. `sites`: its subjobs.
fn traced(
    sites: &[usize],
    places: &PlaceTable,
    number: impl Fn(usize, u32) -> Option<u32>,
) -> Vec<(u32, String, String)> {
    let name = |place: &isthmus_wire::place::Place, rank: u32| {
        let subjob = places.subjobs.get(place.subjob as usize)?;
        let site = *sites.get(place.subjob as usize)?;
        let host = places.nodes.get(place.node as usize).map_or("", |n| n.host.as_str());
        let index = rank.checked_sub(subjob.first_rank)?;
        Some((number(site, index)?, subjob.name.clone(), host.to_owned()))
    };
    let all = (0u32..).zip(&places.places);
    all.filter_map(|(rank, place)| name(place, rank)).collect()
}
