// SPDX-License-Identifier: Apache-2.0
//! What has become of processes that the user has added.

use isthmus_wire::control::Reply;
use std::collections::BTreeMap;

/// Outcomes that are kept; older ones are forgotten.
const KEPT: usize = 64;

/// By number: how it went, once that is known.
#[derive(Debug, Default)]
pub(super) struct Added {
    last: u32,
    all: BTreeMap<u32, Option<Result<(), String>>>,
}

impl Added {
    /// The number of the next ones.
    pub(super) fn begin(&mut self) -> u32 {
        self.last += 1;
        self.all.insert(self.last, None);
        while self.all.len() > KEPT {
            self.all.pop_first();
        }
        self.last
    }

    /// They have begun, or will not.
    pub(super) fn settle(&mut self, number: u32, how: Result<(), String>) {
        if let Some(known) = self.all.get_mut(&number) {
            *known = Some(how);
        }
    }

    /// What there is to tell of them.
    pub(super) fn tell(&self, number: u32) -> Reply {
        match self.all.get(&number) {
            Some(None) => Reply::Adding(number),
            Some(Some(Ok(()))) => Reply::Done,
            Some(Some(Err(why))) => Reply::Refused(why.clone()),
            None => Reply::Refused("nothing is known of these processes any more".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_told_of_until_much_more_was() {
        let mut added = Added::default();
        let first = added.begin();
        assert_eq!(added.tell(first), Reply::Adding(first));
        added.settle(first, Ok(()));
        assert_eq!(added.tell(first), Reply::Done);
        let second = added.begin();
        added.settle(second, Err("no".into()));
        assert_eq!(added.tell(second), Reply::Refused("no".into()));
        (0..KEPT).for_each(|_| drop(added.begin()));
        added.settle(first, Ok(()));
        assert!(matches!(added.tell(first), Reply::Refused(_)));
    }
}
