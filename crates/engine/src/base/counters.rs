// SPDX-License-Identifier: Apache-2.0
//! What was sent, per operation and level of the network.

use isthmus_schedule::Operation as What;
use isthmus_wire::boot;

/// Levels of the network that are counted: wide area 0 … node 4.
pub(crate) const LEVELS: usize = 5;

/// Between the numbers of two operations in tags; all of them fit in the 2^15 numbers that are called.
const APART: u32 = (1 << 15) / (What::ALL.len() + OTHERS) as u32;
/// Places there for what is none of the program's operations, taken in turn: all processes name them in one order.
const OTHERS: usize = 4;

/// Names an operation for the counters; small. [`Operation::POINT_TO_POINT`] is always there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operation(pub(crate) u16);

impl Operation {
    /// Messages that the user sends.
    pub const POINT_TO_POINT: Self = Self(0);
}

#[derive(Debug)]
pub(crate) struct Table {
    names: Vec<&'static str>,
    apart: Vec<u32>,
    sent: Vec<[boot::LevelCounters; LEVELS]>,
    calls: Vec<u64>,
}

impl Table {
    pub(crate) fn new() -> Self {
        let mut table = Self {
            names: vec![],
            apart: vec![],
            sent: vec![],
            calls: vec![],
        };
        table.operation("point-to-point");
        table
    }

    /// The operation with this name, new if need be.
    pub(crate) fn operation(&mut self, name: &'static str) -> Operation {
        if let Some(at) = self.names.iter().position(|n| *n == name) {
            return Operation(at as u16);
        }
        let place = What::ALL.iter().position(|what| what.name() == name);
        let is_known = |name: &&&str| What::ALL.iter().any(|what| what.name() == **name);
        let others = self.names.len() - self.names.iter().filter(is_known).count();
        let place = place.unwrap_or(What::ALL.len() + others % OTHERS);
        self.apart.push(APART * place as u32);
        self.names.push(name);
        self.sent.push(Default::default());
        self.calls.push(0);
        Operation(self.names.len() as u16 - 1)
    }

    pub(crate) fn name(&self, operation: Operation) -> &'static str {
        self.names.get(operation.0 as usize).copied().unwrap_or("unknown")
    }

    /// How far the numbers in the tags of this operation's messages are from its own number, equal in all processes. So
    /// what one member sends for an operation is never taken for a part of another one that has the same number.
    #[inline]
    pub(crate) fn apart(&self, operation: Operation) -> u32 {
        self.apart.get(operation.0 as usize).copied().unwrap_or(0)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.names.iter().copied()
    }

    #[inline]
    pub(crate) fn sent(&mut self, operation: Operation, level: u8, bytes: u64) {
        let levels = self.sent.get_mut(operation.0 as usize);
        if let Some(counter) = levels.and_then(|levels| levels.get_mut(level as usize)) {
            counter.messages += 1;
            counter.bytes += bytes;
        }
    }

    pub(crate) fn sent_in_memory(&mut self, operation: Operation, operations: u64, bytes: u64) {
        let counter = &mut self.sent[operation.0 as usize][LEVELS - 1];
        counter.messages += operations;
        counter.bytes += bytes;
    }

    #[inline]
    pub(crate) fn called(&mut self, operation: Operation) {
        self.calls[operation.0 as usize] += 1;
    }

    pub(crate) fn export(&self) -> boot::Counters {
        let mut out = boot::Counters::default();
        for (name, levels) in self.names.iter().zip(&self.sent) {
            for (level, counter) in levels.iter().enumerate().filter(|(_, c)| c.messages > 0) {
                out.rows.push(((*name).into(), level as u8, *counter));
            }
        }
        // Every message of the user is one call; counting it twice would cost time where it matters most.
        let sends: u64 = self.sent[0].iter().map(|c| c.messages).sum();
        let calls = std::iter::once(&sends).chain(&self.calls[1..]);
        out.calls = self
            .names
            .iter()
            .zip(calls)
            .filter(|(_, n)| **n > 0)
            .map(|(name, n)| ((*name).into(), *n))
            .collect();
        out
    }
}
