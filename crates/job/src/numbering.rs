// SPDX-License-Identifier: Apache-2.0
//! Ranks and the place table: processes are numbered subjob by subjob.

use crate::model::Job;
use isthmus_wire::grid::{Arrival, NodeProcesses};
use isthmus_wire::place::{Node, Place, PlaceTable, Subjob};

/// What is known of a machine once its processes have arrived.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Its nodes, in the order of the processes on them.
    pub parts: Vec<NodeProcesses>,
    /// Its processes, in any order.
    pub arrivals: Vec<Arrival>,
}

impl Machine {
    /// A machine of which nothing is known yet.
    pub fn unknown() -> Self {
        Self {
            parts: Vec::new(),
            arrivals: Vec::new(),
        }
    }
}

/// The place table of a job all of whose processes have arrived.
///
/// `None` when an index is missing or doubled, or the nodes do not make up the subjob: the caller's book-keeping is
/// wrong.
pub fn place_table(job: &Job, machines: &[Machine]) -> Option<PlaceTable> {
    let mut table = PlaceTable::default();
    for (number, (subjob, machine)) in (0u32..).zip(job.subjobs().iter().zip(machines)) {
        table.subjobs.push(Subjob {
            name: subjob.site.clone(),
            lan: subjob.lan.clone(),
            first_rank: u32::try_from(table.places.len()).ok()?,
            count: subjob.count,
            programs: subjob.numbers(),
        });
        let mut arrivals: Vec<_> = machine.arrivals.iter().collect();
        arrivals.sort_by_key(|a| a.index);
        let complete = (0..subjob.count).eq(arrivals.iter().map(|a| a.index));
        let parts: u64 = machine.parts.iter().map(|p| u64::from(p.processes)).sum();
        if !complete || parts != u64::from(subjob.count) {
            return None;
        }
        let mut arrivals = arrivals.into_iter();
        for part in machine.parts.iter().filter(|p| p.processes > 0) {
            let node = u32::try_from(table.nodes.len()).ok()?;
            table.nodes.push(Node {
                host: part.host.clone(),
                addresses: part.addresses.clone(),
                subjob: number,
                processes: part.processes,
                processors: part.processors,
            });
            table
                .places
                .extend((0..part.processes).zip(&mut arrivals).map(|(slot, arrival)| Place {
                    subjob: number,
                    node,
                    port: arrival.port,
                    slot,
                    representation: arrival.representation,
                    vendor: arrival.vendor,
                }));
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
            vendor: None,
            signing_request: vec![],
        });
        Machine {
            parts: vec![part(host, indices.len() as u32)],
            arrivals: arrivals.collect(),
        }
    }

    fn part(host: &str, processes: u32) -> NodeProcesses {
        NodeProcesses {
            host: host.into(),
            addresses: vec![],
            processors: 0,
            processes,
        }
    }

    #[test]
    fn a_machine_of_several_nodes() {
        let job = Job::new(vec![subjob("a", 1), subjob("b", 3)]).unwrap();
        let mut cluster = machine("n1", &[2, 1, 0]);
        cluster.parts = vec![part("n1", 2), part("idle", 0), part("n2", 1)];
        let table = place_table(&job, &[machine("x", &[0]), cluster.clone()]).unwrap();
        let hosts: Vec<_> = table
            .nodes
            .iter()
            .map(|n| (n.host.as_str(), n.subjob, n.processes))
            .collect();
        assert_eq!(hosts, [("x", 0, 1), ("n1", 1, 2), ("n2", 1, 1)]);
        let places: Vec<_> = table.places.iter().map(|p| (p.node, p.slot)).collect();
        assert_eq!(places, [(0, 0), (1, 0), (1, 1), (2, 0)]);
        cluster.parts.pop();
        assert_eq!(place_table(&job, &[machine("x", &[0]), cluster]), None);
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
