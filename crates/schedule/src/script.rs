// SPDX-License-Identifier: Apache-2.0
//! How plans are written down.

use crate::step::{Plan, Step};

/// A plan with all its steps.
#[derive(Default)]
pub(crate) struct Script {
    steps: Vec<Step>,
    given: usize,
    scratch: Vec<u64>,
}

impl Plan for Script {
    fn scratch(&self) -> &[u64] {
        &self.scratch
    }
    fn next_step(&mut self) -> Option<Step> {
        let step = self.steps.get(self.given)?.clone();
        self.given += 1;
        Some(step)
    }
}
