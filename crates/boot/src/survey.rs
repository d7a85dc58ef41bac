// SPDX-License-Identifier: Apache-2.0
//! Measuring the links between local areas when a job begins: one process of each speaks for it.
//!
//! Round trips are measured between all pairs at once, since that takes a few frames. Rates are measured in rounds: in
//! each round every local area is in one pair at most, so that measurements do not share a line. MPI_Init waits for
//! them, at most a second in all; rates that take longer are known later.

use std::time::{Duration, Instant};

use isthmus_net::{Measurements, Prober, Round};
use isthmus_topology::{LinkEstimates, Measured, Origin, Topology, combine};

use crate::routes::{peer_of, rank_of};

/// Most local areas that are measured when a job begins; more would take too long. Their links are measured by live
/// traffic.
const MOST_AREAS: usize = 32;
/// Longest wait for round trips and rates together.
const LONGEST: Duration = Duration::from_secs(1);
/// Round trips after which the shortest is hardly longer than it must be.
const SETTLED_TRIPS: u32 = 8;
/// Round trips that are waited for.
const TRIPS: u32 = 2;

/// Who measures what.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Survey {
    /// One process of each local area, in order.
    pub(crate) speakers: Vec<u32>,
    /// Speakers with whom this process measures round trips.
    partners: Vec<u32>,
    rounds: Vec<Round>,
}

impl Survey {
    /// The survey that is due; the same at all processes but for what they do in it.
    pub(crate) fn plan(topology: &Topology, estimates: &LinkEstimates, me: u32) -> Option<Self> {
        let speakers = speakers(topology);
        let count = speakers.len() as u32;
        let open = |a: u32, b: u32| {
            let origins = estimates.origins(a, b);
            [origins.latency, origins.rate].contains(&Origin::Assumed)
        };
        let any = (0..count).any(|a| (a + 1..count).any(|b| open(a, b)));
        if count < 2 || speakers.len() > MOST_AREAS || !any {
            return None;
        }
        let mut survey = Self {
            partners: Vec::new(),
            rounds: Vec::new(),
            speakers,
        };
        let Some(mine) = survey.speakers.iter().position(|&s| s == me) else {
            return Some(survey);
        };
        let mine = mine as u32;
        let speaker = |area: u32| survey.speakers[area as usize];
        survey.partners = (0..count)
            .filter(|&a| a != mine && open(a, mine))
            .map(speaker)
            .collect();
        let with = opponents(mine, count).filter(|&a| estimates.origins(a, mine).rate == Origin::Assumed);
        survey.rounds = with
            .map(|area| Round {
                peer: peer_of(speaker(area)),
                // Each receives about as often as it sends.
                receive: ((area + mine) % 2 == 0) == (mine < area),
            })
            .collect();
        Some(survey)
    }

    /// Measures, for a bounded time.
    pub(crate) fn run(&self, prober: &Prober, me: u32) {
        if self.partners.is_empty() {
            return;
        }
        let end = Instant::now() + LONGEST;
        let dial = self.partners.iter().copied().filter(|&p| p > me).map(peer_of).collect();
        prober.start(dial, self.rounds.clone());
        let met = |m: &Measurements| {
            let trips = |rank: &u32| m.estimates.get(&peer_of(*rank)).map_or(0, |e| e.trips);
            self.partners.iter().all(|rank| trips(rank) >= TRIPS)
        };
        prober.wait(LONGEST, met);
        let left = end.saturating_duration_since(Instant::now());
        prober.wait(left, |m| m.rounds_over);
    }
}

/// The first process of each local area.
fn speakers(topology: &Topology) -> Vec<u32> {
    let mut speakers: Vec<Option<u32>> = Vec::new();
    for rank in 0..topology.size() {
        let area = topology.clusters_of(rank)[0] as usize;
        if area >= speakers.len() {
            speakers.resize(area + 1, None);
        }
        speakers[area].get_or_insert(rank);
    }
    speakers.into_iter().flatten().collect()
}

/// Whom one of `count` meets in the rounds of a tournament, in order: in each round everybody meets one other at most.
fn opponents(me: u32, count: u32) -> impl Iterator<Item = u32> {
    // The last place stays, the others go round by one; with an odd number nobody sits there.
    let even = count + count % 2;
    let circle = even - 1;
    let meets = move |round: u32| {
        if me == circle {
            return round;
        }
        // Two in the circle meet when their numbers add up to twice the round; who would meet itself meets the last
        // place.
        let other = (2 * round + circle - me) % circle;
        if other == me { circle } else { other }
    };
    (0..circle).map(meets).filter(move |&other| other < count)
}

/// What this process has measured, by pair of local areas. `settled`: only of connections that were measured often
/// enough to say something else than is known.
pub(crate) fn measured(prober: &Prober, topology: &Topology, me: u32, settled: bool) -> Vec<Measured> {
    let area = |rank: u32| topology.clusters_of(rank)[0];
    prober.look(|m| {
        let known = m.estimates.iter().filter(|(peer, _)| area(rank_of(**peer)) != area(me));
        combine(known.map(|(&peer, estimate)| {
            let (mine, theirs) = (area(me), area(rank_of(peer)));
            Measured {
                between: (mine.min(theirs), mine.max(theirs)),
                latency: estimate
                    .round_trip
                    .filter(|_| !settled || estimate.trips >= SETTLED_TRIPS)
                    .and_then(|trip| u64::try_from(trip.as_nanos() / 2).ok())
                    .filter(|&l| l > 0),
                rate: estimate.rate,
            }
        }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use isthmus_topology::Rate;

    #[test]
    fn everybody_meets_everybody_once_and_one_at_a_time() {
        for count in 2..12 {
            let all: Vec<Vec<u32>> = (0..count).map(|me| opponents(me, count).collect()).collect();
            for me in 0..count {
                let mut met = all[me as usize].clone();
                met.sort_unstable();
                let others: Vec<u32> = (0..count).filter(|&o| o != me).collect();
                assert_eq!(met, others, "{count}");
            }
            // With an even number nobody pauses, so the same place in two lists is the same round.
            if count % 2 == 0 {
                for (me, row) in all.iter().enumerate() {
                    for (round, &other) in row.iter().enumerate() {
                        assert_eq!(all[other as usize][round], me as u32);
                    }
                }
            }
        }
    }

    fn topology() -> Topology {
        let places = [0, 0, 1, 2, 2].map(|site| [site, site, site]);
        Topology::from_clusters(places)
    }

    #[test]
    fn what_is_known_is_not_measured() {
        let measured = |between, rate: Option<u64>| Measured {
            between,
            latency: Some(5),
            rate: rate.map(Rate::bare),
        };
        let estimates =
            LinkEstimates::default().learn(&[measured((0, 1), Some(1)), measured((0, 2), None)], Origin::Cached);
        let survey = |me| Survey::plan(&topology(), &estimates, me);
        let (first, second) = (survey(0).unwrap(), survey(2).unwrap());
        assert_eq!(first.speakers, [0, 2, 3]);
        assert_eq!((first.partners, second.partners), (vec![3], vec![3]));
        assert_eq!((first.rounds.len(), second.rounds.len()), (1, 1));
        let third = survey(3).unwrap();
        assert_eq!((third.partners, third.rounds.len()), (vec![0, 2], 2));
        for round in third.rounds {
            let other = survey(rank_of(round.peer)).unwrap().rounds[0];
            assert_eq!((other.peer, other.receive), (peer_of(3), !round.receive));
        }
        assert_eq!(survey(1).unwrap().partners, []);
        let all = [measured((0, 2), Some(1)), measured((1, 2), Some(1))];
        assert_eq!(
            Survey::plan(&topology(), &estimates.learn(&all, Origin::Cached), 0),
            None
        );
    }
}
