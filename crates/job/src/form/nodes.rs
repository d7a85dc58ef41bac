// SPDX-License-Identifier: Apache-2.0
//! What PBS, Grid Engine and LSF tell a job about its nodes.
//!
//! ```text
//! PBS          a line for each slot     n1
//! Grid Engine  a line for each node     n1.cluster 4 all.q@n1.cluster UNDEFINED
//! LSF          words, in pairs          n1 4 n2 4
//! ```

use crate::error::JobError;
use crate::hostfile::{Host, add};
use crate::model::{Contact, check_count};
use crate::sites::parse_count;
use isthmus_wire::grid::Scheduler;

/// Most words that are looked at.
const MAX_WORDS: usize = 200_000;

/// The nodes of an allocation, in the scheduler's order, each with its slots. Slurm tells its own in another form.
pub fn read(scheduler: Scheduler, text: &str) -> Result<Vec<Host>, JobError> {
    let mut hosts = Vec::new();
    let mut place = |node: &str, slots: &str| -> Result<(), JobError> {
        let slots = parse_count(slots)?;
        check_count(node, slots)?;
        let contact = Contact::parse(node)?;
        add(
            &mut hosts,
            Host {
                contact,
                slots: Some(slots),
            },
        );
        Ok(())
    };
    match scheduler {
        Scheduler::Lsf => {
            let mut words = text.split_whitespace().take(MAX_WORDS);
            while let Some(node) = words.next() {
                place(node, words.next().unwrap_or_default())?;
            }
        }
        _ => {
            let lines = text.lines().take(MAX_WORDS);
            for line in lines.map(str::trim).filter(|line| !line.is_empty()) {
                match line.split_once(char::is_whitespace) {
                    Some((node, rest)) if scheduler == Scheduler::GridEngine => {
                        place(node, rest.split_whitespace().next().unwrap_or_default())?;
                    }
                    _ => place(line, "1")?,
                }
            }
        }
    }
    Ok(hosts)
}

/// What is wrong with the nodes that the value of this variable tells.
pub fn blamed(scheduler: Scheduler, variable: &str, value: &str, error: &JobError) -> JobError {
    let value = crate::quoted::shown(value);
    JobError::new(format!("{variable} is '{value}': {}", error.problem)).hint(format!(
        "{scheduler} sets {variable} inside a job; where its nodes are not to be used, name hosts: -host localhost"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(scheduler: Scheduler, text: &str) -> Vec<(String, Option<u32>)> {
        let hosts = read(scheduler, text).unwrap();
        hosts.into_iter().map(|h| (h.contact.to_string(), h.slots)).collect()
    }

    #[test]
    fn nodes_keep_the_order_of_their_scheduler() {
        let both = [("n2.x".to_owned(), Some(2)), ("n1.x".to_owned(), Some(1))];
        assert_eq!(told(Scheduler::Pbs, "n2.x\nn1.x\nn2.x\n"), both);
        let text = "n2.x 2 all.q@n2.x UNDEFINED\nn1.x 1 all.q@n1.x UNDEFINED\n";
        assert_eq!(told(Scheduler::GridEngine, text), both);
        assert_eq!(told(Scheduler::Lsf, "n2.x 2 n1.x 1"), both);
        assert_eq!(told(Scheduler::Lsf, ""), []);
    }

    #[test]
    fn what_is_no_list_of_nodes_is_refused() {
        for (scheduler, text) in [
            (Scheduler::Pbs, "root:x:0:0 root\n"),
            (Scheduler::GridEngine, "n1 many\n"),
            (Scheduler::GridEngine, "n1 0\n"),
            (Scheduler::Lsf, "n1 4 n2"),
            (Scheduler::Lsf, "-oProxyCommand=x 4"),
        ] {
            assert!(read(scheduler, text).is_err(), "{text}");
        }
    }
}
