// SPDX-License-Identifier: Apache-2.0
//! Ways between local areas: the gateways of a job, what they find out, and what processes are told.

mod relayed;
mod wishes;

use crate::Options;
use isthmus_identity::derived;
use isthmus_job::Job;
use isthmus_wire::control::Trunk;
use isthmus_wire::gateway::{
    Area, AreaPath, Carried, Carrier, FromGateway, Open, Paths, Relay, Settled, ToGateway, Ways,
};
use isthmus_wire::place::PlaceTable;
use isthmus_wire::rate::Rate;
pub(crate) use relayed::MOST_RELAYED;
use relayed::Relayed;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
pub use wishes::Policy;
use wishes::{addresses, policy, setting};

/// Longest wait for ways to be found out, once all gateways are there; then processes try everything.
const SETTLING: Duration = Duration::from_secs(3);
/// Longest wait for a gateway to be there.
const APPEARING: Duration = Duration::from_secs(3);

/// Pairs of processes of two local areas from which on they connect through the gateways, unless the user says
/// otherwise: each pair would have a connection of its own, and each process a port; what that costs firewalls, their
/// tables and the kernels is more than what a gateway costs.
const MANY: u64 = 1024;
/// A launcher tells a gateway less often where the others are.
const EPOCHS: u32 = 1 << 16;

/// How two local areas are connected, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathReport {
    /// Names of the two.
    pub between: (String, String),
    /// `direct`; `forward` or `reverse`: the first or the second dials; `gateway`, `ssh` or `none`.
    pub path: &'static str,
    /// Round trip on the trunk between the gateways.
    pub round_trip: Option<Duration>,
    /// When it was measured.
    pub rate: Option<Rate>,
    /// What came of attempts from the first to the second, and back; empty where one succeeded.
    pub refused: (String, String),
    /// Address and port that answered, from the first to the second, and back.
    pub reached: (String, String),
    /// How long after the last gateway was there this was known.
    pub settled_after: Option<Duration>,
}

struct Gateway {
    name: String,
    /// The site whose agent has it.
    site: usize,
    policy: Policy,
    /// Of its local area.
    processes: u64,
    open: Open,
    listening: Option<(u16, Vec<String>)>,
    epoch: u32,
    failed: Option<String>,
}

/// A gateway that is to be started.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    /// First message to it.
    pub(crate) first: Vec<u8>,
    /// The user wants the processes there, which are all that their local area has, to reach others through it only.
    pub(crate) is_only_way: bool,
}

/// All gateways of a job.
pub(crate) struct Crossings {
    gateways: Vec<Gateway>,
    /// Local area of each subjob.
    areas: Vec<u32>,
    /// Of which those of areas and of pairs of gateways are made.
    secret: [u8; 32],
    settled: BTreeMap<(u32, u32), Settled>,
    /// When it was certain enough what works between two.
    certain: BTreeMap<(usize, usize), Instant>,
    /// The job is over.
    ending: bool,
    /// What trunks have carried.
    carried: BTreeMap<(u32, u32), Carried>,
    /// What gateways have sent through the launcher and others have not taken.
    relayed: Relayed,
    began: Instant,
    /// When the last of them was there.
    complete: Option<Instant>,
    /// What gateways need when they begin anew.
    places: Option<(Vec<u32>, PlaceTable)>,
}

/// Messages for sites; those that carry data of processes come after others.
pub(crate) type Messages = Vec<(usize, ToGateway)>;

impl Crossings {
    /// For a job of several local areas. Where every site is pinned to direct connections there are no gateways. A job
    /// of one area has one where the user wants it to be reached by other jobs through that only, or where it meets
    /// others at a host to which the launcher has no way from nodes of a scheduler.
    pub(crate) fn new(name: &str, job: &Job, options: &Options) -> std::io::Result<Self> {
        let secret = isthmus_stage::guarded::random::<32>()?;
        let local = job.local_areas();
        let mut areas = vec![0; job.subjobs().len()];
        let mut gateways = Vec::new();
        for (number, (lan, subjobs)) in (0u32..).zip(&local) {
            subjobs.iter().for_each(|&s| areas[s] = number);
            let subjob = &job.subjobs()[subjobs[0]];
            let from = |name: &'static str| setting(subjob, options, name);
            let ports = isthmus_settings::PORTS.read(from);
            let ports = ports.map_or((0, 0), |range| (*range.start(), *range.end()));
            // The table has no larger number.
            let few = |number: u64| u8::try_from(number).unwrap_or(u8::MAX);
            gateways.push(Gateway {
                name: (*lan).to_owned(),
                site: subjobs[0],
                policy: policy(subjob, options),
                processes: subjobs.iter().map(|&s| u64::from(job.subjobs()[s].count)).sum(),
                open: Open {
                    job: name.to_owned(),
                    area: number,
                    secret: derived(&secret, &number.to_le_bytes()),
                    ports,
                    streams: few(isthmus_settings::TRUNK_STREAMS.read(from)),
                    // 0: as many as are found to be needed.
                    threads: isthmus_settings::GATEWAY_THREADS.read(from).map_or(0, few),
                    addresses: addresses(subjob, options),
                },
                listening: None,
                epoch: 0,
                failed: None,
            });
        }
        let is_needed = match &gateways[..] {
            [only] => {
                let has_nodes = job.subjobs().iter().any(|subjob| subjob.allocation.is_some());
                only.policy == Policy::Gateway || only.policy == Policy::Any && has_nodes && options.meet.is_some()
            }
            all => all.iter().any(|g| g.policy != Policy::Direct),
        };
        if !is_needed {
            gateways.iter_mut().for_each(|g| g.failed = Some(String::new()));
        }
        Ok(Self {
            gateways,
            areas,
            secret,
            settled: BTreeMap::new(),
            certain: BTreeMap::new(),
            ending: false,
            carried: BTreeMap::new(),
            relayed: Relayed::default(),
            began: Instant::now(),
            complete: None,
            places: None,
        })
    }

    /// Gateways know what an earlier launcher told them: what this one tells them is newer.
    pub(crate) fn go_on_after(&mut self, launchers: u32) {
        let epochs = launchers.saturating_mul(EPOCHS);
        self.gateways.iter_mut().for_each(|gateway| gateway.epoch = epochs);
    }

    /// The gateway that a site's agent shall start.
    pub(crate) fn open(&self, site: usize) -> Option<Opening> {
        let gateway = self.gateways.iter().find(|g| g.site == site && g.failed.is_none())?;
        let mut others = self.gateways.iter().filter(|g| g.site != site);
        let area = self.areas.get(site);
        Some(Opening {
            first: ToGateway::Open(gateway.open.clone()).encode(),
            is_only_way: others.all(|other| through(gateway, other))
                && self.areas.iter().filter(|a| Some(*a) == area).count() == 1,
        })
    }

    /// Whose agent has the gateway of a site's local area, and its port, if it works.
    pub(crate) fn gateway_of(&self, site: usize) -> Option<(usize, u16)> {
        let gateway = self.gateways.get(*self.areas.get(site)? as usize)?;
        let (port, _) = gateway.listening.as_ref()?;
        Some((gateway.site, *port))
    }

    /// A gateway says. What is to be said to others, and to the user.
    pub(crate) fn said(&mut self, site: usize, body: &[u8]) -> (Messages, Option<String>) {
        let Some(area) = self.gateways.iter().position(|g| g.site == site) else {
            return (Vec::new(), None);
        };
        let number = u32::try_from(area).unwrap_or(u32::MAX);
        let to = |other: u32| self.gateways.get(other as usize).map(|g| g.site);
        let message = FromGateway::decode(body);
        let other = message.as_ref().ok().and_then(FromGateway::area);
        if let Some(wrong) = other.filter(|other| *other == number || to(*other).is_none()) {
            let why = format!("it spoke of its way to area {wrong}, which is none");
            return (Vec::new(), Some(self.fails(area, why)));
        }
        match message {
            Ok(FromGateway::Listening { port, addresses }) => (self.listens(area, port, addresses), None),
            // As gateways end, those that are left know less and less.
            Ok(FromGateway::Settled(_)) if self.ending => (Vec::new(), None),
            Ok(FromGateway::Settled(settled)) => {
                let other = settled.area as usize;
                self.settled.insert((number, settled.area), settled);
                self.note_certain(area.min(other), area.max(other));
                (Vec::new(), None)
            }
            Ok(FromGateway::Carried(carried)) => {
                self.carried.insert((number, carried.area), carried);
                (Vec::new(), None)
            }
            // One that does not work carries nothing, and nothing is carried to it.
            Ok(FromGateway::Relay(relay)) if self.has_failed(number) || self.has_failed(relay.area) => {
                (Vec::new(), None)
            }
            Ok(FromGateway::Relay(relay)) if !self.relayed.takes(number, &relay) => {
                let why = "it sent more through the launcher than the other gateway had taken";
                (Vec::new(), Some(self.fails(area, why.to_owned())))
            }
            Ok(FromGateway::Relay(relay)) => {
                let piece = |site| {
                    (
                        site,
                        ToGateway::Relay(Relay {
                            area: number,
                            ..relay.clone()
                        }),
                    )
                };
                (to(relay.area).map(piece).into_iter().collect(), None)
            }
            Ok(FromGateway::Credit { area, epoch, bytes }) => {
                self.relayed.taken(area, number, epoch, bytes);
                let credit = ToGateway::Credit {
                    area: number,
                    epoch,
                    bytes,
                };
                (to(area).map(|site| (site, credit)).into_iter().collect(), None)
            }
            Ok(FromGateway::Failed(why)) => (Vec::new(), Some(self.fails(area, why))),
            Err(error) => (Vec::new(), Some(self.fails(area, format!("it sent nonsense: {error}")))),
        }
    }

    /// What trunks have carried, per direction.
    pub(crate) fn trunks(&self) -> Vec<Trunk> {
        let name = |area: u32| {
            self.gateways
                .get(area as usize)
                .map_or("", |g| g.name.as_str())
                .to_owned()
        };
        let all = self.carried.iter().map(|((from, to), carried)| {
            let carrier = self.settled.get(&(*from, *to)).map_or(Carrier::None, |s| s.carrier);
            let path = match carrier {
                Carrier::None => "",
                Carrier::Direct => "a connection of the gateways",
                Carrier::Relay => "inside the launcher's ssh connections",
            };
            Trunk {
                from: name(*from),
                to: name(*to),
                path: path.to_owned(),
                sent: carried.sent,
                received: carried.received,
                streams: carried.streams,
                connections: carried.connections,
                round_trip: carried.round_trip,
            }
        });
        all.collect()
    }

    /// The gateway of a site has said that it had taken what is still on its way to it.
    pub(crate) fn deaf(&mut self, site: usize) -> Option<String> {
        let area = self
            .gateways
            .iter()
            .position(|g| g.site == site && g.failed.is_none())?;
        Some(self.fails(area, "it says that it has taken what it has not read".to_owned()))
    }

    fn has_failed(&self, area: u32) -> bool {
        self.gateways.get(area as usize).is_some_and(|g| g.failed.is_some())
    }

    fn fails(&mut self, area: usize, why: String) -> String {
        let gateway = &mut self.gateways[area];
        let text = format!("the gateway of '{}' does not work: {why}", gateway.name);
        gateway.failed = Some(why);
        gateway.listening = None;
        text
    }

    /// What ran at a site is gone; perhaps there will be something else.
    pub(crate) fn leave(&mut self, site: usize) {
        for gateway in self.gateways.iter_mut().filter(|g| g.site == site) {
            gateway.listening = None;
        }
    }

    /// The job is over: what is known now is what will be reported.
    pub(crate) fn end(&mut self) {
        self.ending = true;
    }

    /// A site will not be there.
    pub(crate) fn absent(&mut self, site: &str) {
        let found = self
            .gateways
            .iter_mut()
            .find(|g| g.name == site && g.listening.is_none());
        if let Some(gateway) = found {
            gateway.failed = Some("the site cannot be reached".into());
        }
        if self.complete.is_none()
            && self
                .gateways
                .iter()
                .all(|g| g.listening.is_some() || g.failed.is_some())
        {
            self.complete = Some(Instant::now());
        }
    }

    fn listens(&mut self, area: usize, port: u16, addresses: Vec<String>) -> Messages {
        let gateway = &mut self.gateways[area];
        gateway.epoch += 1;
        gateway.listening = Some((port, addresses));
        if self.complete.is_none()
            && self
                .gateways
                .iter()
                .all(|g| g.listening.is_some() || g.failed.is_some())
        {
            self.complete = Some(Instant::now());
        }
        let me = self.gateways[area].site;
        let mut messages = Vec::new();
        for other in 0..self.gateways.len() {
            if other == area || self.gateways[other].listening.is_none() {
                continue;
            }
            let site = self.gateways[other].site;
            messages.push((me, ToGateway::Areas(vec![self.area(area, other)])));
            messages.push((site, ToGateway::Areas(vec![self.area(other, area)])));
            let (a, b) = (number(area), number(other));
            self.settled.remove(&(a, b));
            self.settled.remove(&(b, a));
        }
        if let Some((areas, table)) = &self.places {
            messages.push((me, ToGateway::Places(areas.clone(), table.clone())));
        }
        messages
    }

    /// What the gateway of one is told of another's.
    fn area(&self, one: usize, other: usize) -> Area {
        let (own, gateway) = (&self.gateways[one], &self.gateways[other]);
        let (port, addresses) = gateway.listening.clone().unwrap_or_default();
        Area {
            area: number(other),
            epoch: own.epoch + gateway.epoch,
            ways: if [own.policy, gateway.policy].contains(&Policy::Ssh) {
                Ways::Relay
            } else {
                Ways::Any
            },
            port,
            secret: self.secret_of_pair(number(one), number(other)),
            addresses,
        }
    }

    /// What the gateways of two areas, and nobody else, know.
    fn secret_of_pair(&self, one: u32, other: u32) -> [u8; 32] {
        let pair = [one.min(other).to_le_bytes(), one.max(other).to_le_bytes()];
        derived(&self.secret, pair.as_flattened())
    }

    /// Where the processes of these sites are; told to all gateways.
    pub(crate) fn place(&mut self, sites: &[usize], places: &PlaceTable) -> Messages {
        let of = |subjob: u32| sites.get(subjob as usize).map_or(0, |s| self.areas[*s]);
        let areas: Vec<u32> = places.places.iter().map(|p| of(p.subjob)).collect();
        let there = self.gateways.iter().filter(|g| g.listening.is_some());
        let messages = there.map(|g| (g.site, ToGateway::Places(areas.clone(), places.clone())));
        let messages = messages.collect();
        self.places = Some((areas, places.clone()));
        messages
    }

    /// Until when processes have to wait for ways to be found out; `None`: not any more.
    pub(crate) fn unsettled_until(&self) -> Option<Instant> {
        if self.gateways.iter().all(|g| g.failed.is_some()) {
            return None;
        }
        let end = match self.complete {
            None => self.began + APPEARING,
            Some(at) => at + SETTLING,
        };
        let now = Instant::now();
        if now >= end {
            return None;
        }
        // It has no other one to find ways to.
        if self.gateways.len() == 1 && self.complete.is_none() {
            return Some(end);
        }
        let open = |g: &Gateway| g.failed.is_none();
        let count = self.gateways.len();
        let pairs = (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b)));
        let mut again = now;
        for (a, b) in pairs.filter(|&(a, b)| open(&self.gateways[a]) && open(&self.gateways[b])) {
            again = again.max(self.pair_settled_at(a, b).unwrap_or(end));
        }
        (again > now).then_some(again.min(end))
    }

    /// When it is certain enough what works between two; `None`: nobody knows.
    fn pair_settled_at(&self, a: usize, b: usize) -> Option<Instant> {
        let there = self.settled.get(&(number(a), number(b)))?;
        let back = self.settled.get(&(number(b), number(a)))?;
        let known = |s: &Settled| !s.outward.is_empty() || !s.why.is_empty();
        let carried = there.carrier != Carrier::None && back.carrier != Carrier::None;
        if carried && known(there) && known(back) {
            return self.complete;
        }
        // What works would have answered by now: three round trips for a handshake, and a little.
        let trip = Duration::from_nanos(there.round_trip.max(back.round_trip));
        carried.then(|| self.complete.map(|at| at + 4 * trip + Duration::from_millis(250)))?
    }

    fn note_certain(&mut self, a: usize, b: usize) {
        if let Some(at) = self.pair_settled_at(a, b) {
            let at = at.max(Instant::now());
            let known = self.certain.entry((a, b)).or_insert(at);
            *known = at.min(*known);
        }
    }

    /// Whether everything that can be found out has been.
    pub(crate) fn all_known(&self) -> bool {
        let there = |g: &Gateway| g.listening.is_some();
        let known = |a: usize, b: usize| {
            let settled = self.settled.get(&(number(a), number(b)));
            settled.is_some_and(|s| s.carrier != Carrier::None && (!s.outward.is_empty() || !s.why.is_empty()))
        };
        let count = self.gateways.len();
        let pairs = (0..count)
            .flat_map(|a| (0..count).map(move |b| (a, b)))
            .filter(|(a, b)| a != b);
        let mut open = pairs.filter(|&(a, b)| there(&self.gateways[a]) && there(&self.gateways[b]));
        self.complete.is_some() && open.all(|(a, b)| known(a, b))
    }

    /// Asks one gateway after the other to measure: the number of the pair, and whether its rate is known.
    pub(crate) fn measure(&self, pair: usize) -> Option<(usize, ToGateway, bool)> {
        let count = self.gateways.len();
        let mut pairs = (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b)));
        let (a, b) = pairs.nth(pair)?;
        let known = self.settled.get(&(number(a), number(b)));
        let done = known.is_none_or(|s| s.carrier == Carrier::None || s.rate.is_some());
        Some((self.gateways[a].site, ToGateway::Measure(number(b)), done))
    }

    /// What the processes of each of the sites of a world are told. Local areas have numbers within the world.
    pub(crate) fn paths(&self, sites: &[usize]) -> Vec<Paths> {
        let mut areas: Vec<usize> = Vec::new();
        for site in sites {
            let area = self.areas[*site] as usize;
            if !areas.contains(&area) {
                areas.push(area);
            }
        }
        sites.iter().map(|site| self.paths_of(*site, &areas)).collect()
    }

    fn paths_of(&self, subjob: usize, areas: &[usize]) -> Paths {
        let area = self.areas[subjob] as usize;
        let own = &self.gateways[area];
        let (port, addresses) = own.listening.clone().unwrap_or_default();
        let way = |other: usize| match (own.policy, self.gateways[other].policy) {
            _ if area != other && through(own, &self.gateways[other]) => AreaPath::OnlyGateway,
            (Policy::Direct, _) | (_, Policy::Direct) => AreaPath::OnlyDirect,
            _ => self.way(area, other),
        };
        Paths {
            port,
            addresses,
            secret: own.open.secret,
            ways: areas.iter().map(|other| way(*other)).collect(),
        }
    }

    /// Whether processes of two local areas of this job are known to reach each other directly, or are to do so only.
    pub(crate) fn are_direct(&self, a: &str, b: &str) -> bool {
        let area = |lan: &str| self.gateways.iter().position(|gateway| gateway.name == lan);
        match (area(a), area(b)) {
            _ if a == b => true,
            (Some(a), Some(b)) => {
                let is_pinned = |area: usize| self.gateways[area].policy == Policy::Direct;
                is_pinned(a) || is_pinned(b) || matches!(self.way(a, b), AreaPath::Direct | AreaPath::Reverse)
            }
            _ => false,
        }
    }

    fn way(&self, a: usize, b: usize) -> AreaPath {
        let outward = |a: usize, b: usize| {
            let known = self.settled.get(&(number(a), number(b)));
            known.is_some_and(|s| !s.outward.is_empty())
        };
        let carried = |s: &Settled| s.carrier != Carrier::None;
        if outward(a, b) {
            AreaPath::Direct
        } else if outward(b, a) {
            AreaPath::Reverse
        } else if self.settled.get(&(number(a), number(b))).is_some_and(carried) {
            AreaPath::Gateway
        } else {
            AreaPath::Unknown
        }
    }

    /// Names of local areas and, by site, whose agent has the gateway.
    pub(crate) fn report(&self) -> Vec<PathReport> {
        let count = self.gateways.len();
        let pairs = (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b)));
        pairs.map(|(a, b)| self.report_of(a, b)).collect()
    }

    fn report_of(&self, a: usize, b: usize) -> PathReport {
        let none = Settled::default();
        let there = self.settled.get(&(number(a), number(b))).unwrap_or(&none);
        let back = self.settled.get(&(number(b), number(a))).unwrap_or(&none);
        let (one, other) = (&self.gateways[a], &self.gateways[b]);
        let trip = [there.round_trip, back.round_trip].into_iter().filter(|t| *t > 0).min();
        let path = match (there.outward.is_empty(), back.outward.is_empty()) {
            _ if [one.policy, other.policy].contains(&Policy::Ssh) => "ssh",
            _ if through(one, other) && there.carrier == Carrier::Relay => "ssh",
            _ if through(one, other) => "gateway",
            (false, false) => "direct",
            (false, true) => "forward",
            (true, false) => "reverse",
            _ if there.carrier == Carrier::Relay || back.carrier == Carrier::Relay => "ssh",
            _ => "none",
        };
        let refusal = |s: &Settled, failed: &Option<String>| match failed {
            Some(why) if !why.is_empty() => why.clone(),
            _ if s.outward.is_empty() && s.why.is_empty() => "no answer".to_owned(),
            _ if s.outward.is_empty() => s.why.clone(),
            _ => String::new(),
        };
        PathReport {
            between: (one.name.clone(), other.name.clone()),
            path,
            round_trip: trip.map(Duration::from_nanos),
            rate: there.rate.or(back.rate),
            refused: (refusal(there, &one.failed), refusal(back, &other.failed)),
            reached: (there.outward.clone(), back.outward.clone()),
            settled_after: self
                .certain
                .get(&(a, b))
                .zip(self.complete)
                .map(|(at, complete)| at.saturating_duration_since(complete)),
        }
    }
}

/// Whether the processes of two local areas reach each other through the gateways only.
fn through(one: &Gateway, other: &Gateway) -> bool {
    let policies = [one.policy, other.policy];
    policies.iter().any(|p| matches!(p, Policy::Gateway | Policy::Ssh))
        || policies == [Policy::Any; 2] && one.processes * other.processes > MANY
}

fn number(area: usize) -> u32 {
    u32::try_from(area).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
