// SPDX-License-Identifier: Apache-2.0
//! Plans that are written down, for operations that are done again and again.

use crate::step::{Plan, Step};
use std::sync::Arc;

/// The steps of a plan, and what executors ask beside. Cheap to clone; each clone is the plan from its beginning.
#[derive(Clone, Debug)]
pub struct Recorded {
    scratch: Arc<[u64]>,
    steps: Arc<[Step]>,
    window: usize,
    ample_window: usize,
    sharers: u32,
    forwards: bool,
}

impl Recorded {
    /// `None`: the plan has more than so many steps.
    pub fn of(mut plan: Box<dyn Plan>, most: usize) -> Option<Self> {
        let mut steps = Vec::new();
        while let Some(step) = plan.next_step() {
            if steps.len() == most {
                return None;
            }
            steps.push(step);
        }
        Some(Self {
            scratch: plan.scratch().into(),
            steps: steps.into(),
            window: plan.window(),
            ample_window: plan.ample_window(),
            sharers: plan.sharers(),
            forwards: plan.forwards(),
        })
    }

    /// The plan.
    pub fn plan(&self) -> Box<dyn Plan> {
        Box::new(Replay {
            recorded: self.clone(),
            next: 0,
        })
    }
}

struct Replay {
    recorded: Recorded,
    next: usize,
}

impl Plan for Replay {
    fn scratch(&self) -> &[u64] {
        &self.recorded.scratch
    }

    fn next_step(&mut self) -> Option<Step> {
        let step = self.recorded.steps.get(self.next)?;
        self.next += 1;
        Some(step.clone())
    }

    fn window(&self) -> usize {
        self.recorded.window
    }

    fn ample_window(&self) -> usize {
        self.recorded.ample_window
    }

    fn sharers(&self) -> u32 {
        self.recorded.sharers
    }

    fn forwards(&self) -> bool {
        self.recorded.forwards
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Call, Network, Operation, plan};
    use isthmus_topology::{Level, Shape};

    #[test]
    fn a_recorded_plan_is_the_plan_each_time() {
        let network = Network::plain(Shape::flat(5, Level::Node));
        let made = || plan(&Call::new(Operation::Allgather, 8), &network, 2);
        let steps = |mut plan: Box<dyn Plan>| std::iter::from_fn(move || plan.next_step()).collect::<Vec<_>>();
        let recorded = Recorded::of(made(), 64).expect("it is short");
        for _ in 0..2 {
            assert_eq!(recorded.plan().scratch(), made().scratch());
            assert_eq!(steps(recorded.plan()), steps(made()));
        }
        let count = steps(made()).len();
        assert!(Recorded::of(made(), count).is_some() && Recorded::of(made(), count - 1).is_none());
    }
}
