// SPDX-License-Identifier: Apache-2.0
//! What has become of processes that the user has added.

use isthmus_wire::control::Reply;
use std::collections::BTreeMap;
use tokio::sync::oneshot;

/// Outcomes that are kept; older ones are forgotten.
const KEPT: usize = 64;

/// By number: how it went, once that is known.
#[derive(Debug, Default)]
pub(super) struct Added {
    last: u32,
    all: BTreeMap<u32, Option<Result<(), String>>>,
    /// Commands that ask.
    waiting: Vec<(u32, oneshot::Sender<Reply>)>,
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
        self.answer(|asked| asked == number);
    }

    /// A command asks, and waits for news: the job may have ended when it asks again.
    pub(super) fn ask(&mut self, number: u32, reply: oneshot::Sender<Reply>) {
        self.waiting.push((number, reply));
        if !matches!(self.all.get(&number), Some(None)) {
            self.answer(|asked| asked == number);
        }
    }

    /// Time passes: who has asked hears that there is no news.
    pub(super) fn tick(&mut self) {
        self.answer(|_| true);
    }

    fn answer(&mut self, which: impl Fn(u32) -> bool) {
        let (told, rest) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|(number, _)| which(*number));
        self.waiting = rest;
        let told: Vec<_> = told;
        for (number, reply) in told {
            // Who asked may be gone.
            let _ = reply.send(self.tell(number));
        }
    }

    /// What there is to tell of them.
    fn tell(&self, number: u32) -> Reply {
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
        let (reply, mut told) = oneshot::channel();
        added.ask(first, reply);
        assert!(told.try_recv().is_err(), "there is no news");
        added.settle(first, Ok(()));
        assert_eq!(told.try_recv(), Ok(Reply::Done));
        let (reply, mut told) = oneshot::channel();
        added.ask(first, reply);
        assert_eq!(told.try_recv(), Ok(Reply::Done));
        let second = added.begin();
        added.settle(second, Err("no".into()));
        assert_eq!(added.tell(second), Reply::Refused("no".into()));
        let third = added.begin();
        let (reply, mut told) = oneshot::channel();
        added.ask(third, reply);
        added.tick();
        assert_eq!(told.try_recv(), Ok(Reply::Adding(third)));
        for _ in 0..KEPT {
            added.begin();
        }
        added.settle(first, Ok(()));
        assert!(matches!(added.tell(first), Reply::Refused(_)));
    }
}
