// SPDX-License-Identifier: Apache-2.0
//! What batch systems other than Slurm tell a job about its nodes.
//!
//! ```text
//! a line for each slot     n1                                     PBS, OAR, Cobalt, LoadLeveler, LSF
//! a line for each node     n1.cluster 4 all.q@n1.cluster UNDEFINED     Grid Engine
//! words, in pairs          n1 4 n2 4                              LSF
//! a word for each slot     n1 n1 n2                               LSF
//! ```

use crate::error::JobError;
use crate::forms::hostfile::{Host, add};
use crate::forms::sites::parse_count;
use crate::model::{Contact, check_count};

/// Most words, of which each may be a slot: three for each process that a job can have.
const MAX_WORDS: usize = 200_000;

/// How a list of nodes is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A line for each slot.
    Lines,
    /// A line for each node, with its slots as the second word.
    Counted,
    /// Words, in pairs: a node and its slots.
    Pairs,
    /// A word for each slot.
    Words,
}

/// The nodes of an allocation, in the order of the list, each with its slots. Slurm tells its own in another form.
pub fn read(layout: Layout, text: &str) -> Result<Vec<Host>, JobError> {
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
    if text.split_whitespace().nth(MAX_WORDS).is_some() {
        return Err(JobError::new(format!("it has more than {MAX_WORDS} words")));
    }
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut words = text.split_whitespace();
    match layout {
        Layout::Lines => lines.try_for_each(|line| place(line, "1"))?,
        Layout::Counted => lines.try_for_each(|line| {
            let (node, rest) = line.split_once(char::is_whitespace).unwrap_or((line, "1"));
            place(node, rest.split_whitespace().next().unwrap_or_default())
        })?,
        Layout::Words => words.try_for_each(|word| place(word, "1"))?,
        Layout::Pairs => {
            while let Some(node) = words.next() {
                place(node, words.next().unwrap_or_default())?;
            }
        }
    }
    Ok(hosts)
}

/// What is wrong with the nodes, or slots, that the value of this variable of a batch system tells.
pub fn blamed(system: &str, variable: &str, value: &str, error: &JobError) -> JobError {
    let value = crate::quoted::shown(value);
    JobError::new(format!("{variable} is '{value}': {}", error.problem)).hint(format!(
        "{system} sets {variable} inside a job; where its nodes are not to be used, name hosts: -host localhost"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(layout: Layout, text: &str) -> Vec<(String, Option<u32>)> {
        let hosts = read(layout, text).unwrap();
        hosts.into_iter().map(|h| (h.contact.to_string(), h.slots)).collect()
    }

    #[test]
    fn nodes_keep_the_order_of_their_scheduler() {
        let both = [("n2.x".to_owned(), Some(2)), ("n1.x".to_owned(), Some(1))];
        assert_eq!(told(Layout::Lines, "n2.x\nn1.x\nn2.x\n"), both);
        let text = "n2.x 2 all.q@n2.x UNDEFINED\nn1.x 1 all.q@n1.x UNDEFINED\n";
        assert_eq!(told(Layout::Counted, text), both);
        assert_eq!(told(Layout::Pairs, "n2.x 2 n1.x 1"), both);
        assert_eq!(told(Layout::Words, "n2.x n1.x n2.x"), both);
        assert_eq!(told(Layout::Pairs, ""), []);
    }

    #[test]
    fn what_is_no_list_of_nodes_is_refused() {
        for (layout, text) in [
            (Layout::Lines, "root:x:0:0 root\n"),
            (Layout::Counted, "n1 many\n"),
            (Layout::Counted, "n1 0\n"),
            (Layout::Pairs, "n1 4 n2"),
            (Layout::Pairs, "-oProxyCommand=x 4"),
        ] {
            assert!(read(layout, text).is_err(), "{text}");
        }
        assert_eq!(
            read(Layout::Lines, &"n1\n".repeat(MAX_WORDS)).map(|hosts| hosts.len()),
            Ok(1)
        );
        // Not a shorter list in its place.
        let error = read(Layout::Lines, &"n1\n".repeat(MAX_WORDS + 1)).unwrap_err();
        assert!(error.problem.contains("more than 200000 words"), "{error}");
    }
}
