// SPDX-License-Identifier: Apache-2.0
//! Ranks and the place table: processes are numbered subjob by subjob.

use crate::model::Job;
use isthmus_wire::grid::Arrival;
use isthmus_wire::place::{Node, Place, PlaceTable, Subjob};

/// What is known of a machine once its processes have arrived.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Host name.
    pub host: String,
    /// Addresses, most promising first.
    pub addresses: Vec<String>,
    /// Processors that its processes share; 0: not known.
    pub processors: u32,
    /// Its processes, in any order.
    pub arrivals: Vec<Arrival>,
}

impl Machine {
    /// A machine of which nothing is known yet.
    pub fn unknown() -> Self {
        Self {
            host: String::new(),
            addresses: Vec::new(),
            processors: 0,
            arrivals: Vec::new(),
        }
    }
}

/// The place table of a job all of whose processes have arrived. Today a subjob is one node.
///
/// `None` when an index is missing or doubled: the caller's book-keeping is wrong.
pub fn place_table(job: &Job, machines: &[Machine]) -> Option<PlaceTable> {
    let mut table = PlaceTable::default();
    for (number, (subjob, machine)) in (0u32..).zip(job.subjobs().iter().zip(machines)) {
        table.subjobs.push(Subjob {
            name: subjob.site.clone(),
            lan: subjob.lan.clone(),
            first_rank: u32::try_from(table.places.len()).ok()?,
            count: subjob.count,
            appnum: subjob.appnum,
        });
        table.nodes.push(Node {
            host: machine.host.clone(),
            addresses: machine.addresses.clone(),
            subjob: number,
            processes: subjob.count,
            processors: machine.processors,
        });
        let mut arrivals: Vec<_> = machine.arrivals.iter().collect();
        arrivals.sort_by_key(|a| a.index);
        for (slot, arrival) in (0..subjob.count).zip(&arrivals) {
            if arrival.index != slot || arrivals.len() != subjob.count as usize {
                return None;
            }
            table.places.push(Place {
                subjob: number,
                node: number,
                port: arrival.port,
                slot,
                representation: arrival.representation,
            });
        }
    }
    (table.places.len() == job.processes() as usize).then_some(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::subjob;
    use isthmus_wire::place::Representation;

    fn machine(host: &str, indices: &[u32]) -> Machine {
        let arrivals = indices.iter().map(|&index| Arrival {
            index,
            pid: 100 + index,
            port: 1000 + index as u16,
            representation: Representation([1; 8]),
            signing_request: vec![],
        });
        Machine {
            host: host.into(),
            addresses: vec![],
            processors: 0,
            arrivals: arrivals.collect(),
        }
    }

    #[test]
    fn ranks_are_numbered_subjob_by_subjob_whatever_the_order_of_arrival() {
        let job = Job::new(vec![subjob("a", 2), subjob("b", 3)]).unwrap();
        let table = place_table(&job, &[machine("x", &[1, 0]), machine("y", &[2, 0, 1])]).unwrap();
        assert_eq!(table.subjobs[1].first_rank, 2);
        let ports: Vec<u16> = table.places.iter().map(|p| p.port).collect();
        assert_eq!(ports, [1000, 1001, 1000, 1001, 1002]);
        assert_eq!(table.places[4].slot, 2);
    }

    #[test]
    fn missing_and_doubled_processes_are_noticed() {
        let job = Job::new(vec![subjob("a", 2)]).unwrap();
        assert_eq!(place_table(&job, &[machine("x", &[1])]), None);
        assert_eq!(place_table(&job, &[machine("x", &[1, 1])]), None);
        assert_eq!(place_table(&job, &[]), None);
    }
}
