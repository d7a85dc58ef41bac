// SPDX-License-Identifier: Apache-2.0
//! Processes dealt out to hosts.

use crate::forms::hostfile::Host;
use crate::model::Contact;

/// Hosts with slots, dealt out in order and again from the beginning when more are asked for than there are.
pub(crate) struct Pool {
    hosts: Vec<Host>,
    per_host: Option<u32>,
    /// Host and slot that are next.
    next: (usize, u32),
}

/// Gives each host its even share of so many processes, and drops those that get none.
pub(crate) fn spread(hosts: &mut Vec<Host>, count: u32) {
    let number = u32::try_from(hosts.len()).unwrap_or(u32::MAX).max(1);
    let share = |host: u32| count / number + u32::from(host < count % number);
    (0..)
        .zip(hosts.iter_mut())
        .for_each(|(host, found)| found.slots = Some(share(host)));
    hosts.retain(|host| host.slots != Some(0));
}

impl Pool {
    pub(crate) fn new(hosts: Vec<Host>, per_host: Option<u32>) -> Self {
        Self {
            hosts,
            per_host,
            next: (0, 0),
        }
    }

    fn slots(&self, host: usize) -> u32 {
        self.hosts[host].slots.or(self.per_host).unwrap_or(1).max(1)
    }

    /// Hosts and counts for so many processes; by default as many as there are slots.
    pub(crate) fn deal(&mut self, count: Option<u32>) -> Vec<(Contact, u32)> {
        if self.hosts.is_empty() {
            return vec![(Contact::Home, count.unwrap_or(1))];
        }
        let all = (0..self.hosts.len()).fold(0u32, |sum, h| sum.saturating_add(self.slots(h)));
        let mut left = count.unwrap_or(all);
        let mut counts = vec![0u32; self.hosts.len()];
        let mut order = Vec::new();
        while left > 0 {
            let (host, used) = self.next;
            let take = left.min(self.slots(host) - used);
            if counts[host] == 0 {
                order.push(host);
            }
            counts[host] += take;
            left -= take;
            let full = used + take == self.slots(host);
            self.next = if full {
                ((host + 1) % self.hosts.len(), 0)
            } else {
                (host, used + take)
            };
        }
        order
            .into_iter()
            .map(|host| (self.hosts[host].contact.clone(), counts[host]))
            .collect()
    }
}
