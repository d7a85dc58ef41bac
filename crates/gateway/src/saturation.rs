// SPDX-License-Identifier: Apache-2.0
//! How many threads a gateway needs: as many as are saturated, and one more, as long as processors have nothing else to
//! do.
//!
//! Nothing here looks at clocks or counters; it is told what was measured since it was asked last.

/// Share of the time that a thread works above which it is saturated: what it is given then waits.
const SATURATED: f64 = 0.9;
/// Below this share a thread has room for streams of others.
pub(crate) const ROOM: f64 = 0.5;
/// Looks in a row at which a thread must be saturated: one may be the beginning of a short message train.
const LOOKS: u32 = 2;
/// Processors that must have been idle: another thread on a busy machine takes from the processes what it gives to the
/// gateway.
const SPARE: f64 = 0.5;
/// Looks without another step, so that what the last one did can be seen.
const REST: u32 = 8;

/// What a thread did since the last look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Share of the time in which it worked.
    pub(crate) busy: f64,
    /// Streams that are worth moving.
    pub(crate) heavy: usize,
    /// It has connections to carry something.
    pub(crate) ready: bool,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Stay,
    /// Some streams of this thread shall move.
    Spread(usize),
    /// There shall be one more thread.
    Another,
}

/// Decides.
#[derive(Debug)]
pub(crate) struct Saturation {
    /// As many as the user wants, whatever is measured.
    pinned: Option<usize>,
    most: usize,
    saturated: Vec<u32>,
    rest: u32,
}

impl Saturation {
    /// With at most so many threads; `pinned`: with so many as soon as there is something to be divided.
    pub(crate) fn new(pinned: Option<usize>, most: usize) -> Self {
        Self {
            pinned,
            most: pinned.unwrap_or(most).max(1),
            saturated: Vec::new(),
            rest: 0,
        }
    }

    /// Most threads.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Somebody else has changed something.
    pub(crate) fn disturbed(&mut self) {
        self.rest = REST;
    }

    /// What to do after this; `spare`: processors that had nothing to do, `None`: not known.
    pub(crate) fn look(&mut self, loads: &[Load], spare: Option<f64>) -> Step {
        self.saturated.resize(loads.len(), 0);
        for (looks, load) in self.saturated.iter_mut().zip(loads) {
            *looks = if load.busy >= SATURATED { *looks + 1 } else { 0 };
        }
        if self.rest > 0 {
            self.rest -= 1;
            return Step::Stay;
        }
        let step = if self.pinned.is_some() {
            self.pinned(loads)
        } else {
            self.measured(loads, spare)
        };
        if step != Step::Stay {
            self.rest = REST;
        }
        step
    }

    fn pinned(&self, loads: &[Load]) -> Step {
        let most = (0..loads.len()).max_by_key(|&i| loads[i].heavy).unwrap_or(0);
        if loads[most].heavy < 2 {
            return Step::Stay;
        }
        let least = loads.iter().filter(|l| l.ready).map(|l| l.heavy).min();
        match least {
            _ if loads.len() < self.most => Step::Another,
            Some(least) if least + 2 <= loads[most].heavy => Step::Spread(most),
            _ => Step::Stay,
        }
    }

    fn measured(&self, loads: &[Load], spare: Option<f64>) -> Step {
        let full = |i: &usize| self.saturated[*i] >= LOOKS && loads[*i].heavy >= 2;
        let busiest = (0..loads.len())
            .filter(full)
            .max_by(|&a, &b| loads[a].busy.total_cmp(&loads[b].busy));
        let Some(busiest) = busiest else { return Step::Stay };
        if loads.iter().any(|l| l.ready && l.busy < ROOM) {
            return Step::Spread(busiest);
        }
        if loads.len() < self.most && spare.is_some_and(|s| s >= SPARE) {
            return Step::Another;
        }
        Step::Stay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Load = Load {
        busy: 0.97,
        heavy: 4,
        ready: true,
    };
    const IDLE: Load = Load {
        busy: 0.1,
        heavy: 0,
        ready: true,
    };

    /// The first step that is not to stay, and after how many looks.
    fn step(saturation: &mut Saturation, loads: &[Load], spare: Option<f64>) -> (Step, usize) {
        (1..100)
            .map(|n| (saturation.look(loads, spare), n))
            .find(|(step, _)| *step != Step::Stay)
            .unwrap_or((Step::Stay, 0))
    }

    #[test]
    fn a_saturated_thread_gets_another_one_beside_it_while_processors_are_idle() {
        let spare = Some(3.0);
        assert_eq!(step(&mut Saturation::new(None, 4), &[FULL], spare), (Step::Another, 2));
        for (load, spare, most) in [
            // Not saturated, nothing to be divided, no processor for it, not known, one thread at most.
            (IDLE, spare, 4),
            (Load { heavy: 1, ..FULL }, spare, 4),
            (FULL, Some(0.3), 4),
            (FULL, None, 4),
            (FULL, spare, 1),
        ] {
            assert_eq!(step(&mut Saturation::new(None, most), &[load], spare).0, Step::Stay);
        }
    }

    #[test]
    fn one_look_is_not_enough() {
        let mut saturation = Saturation::new(None, 4);
        for _ in 0..20 {
            assert_eq!(saturation.look(&[FULL], Some(3.0)), Step::Stay);
            assert_eq!(saturation.look(&[IDLE], Some(3.0)), Step::Stay);
        }
    }

    #[test]
    fn streams_move_to_a_thread_that_has_room_once_it_is_connected() {
        let mut saturation = Saturation::new(None, 2);
        let connecting = Load { ready: false, ..IDLE };
        assert_eq!(step(&mut saturation, &[FULL, connecting], Some(1.0)).0, Step::Stay);
        assert_eq!(step(&mut saturation, &[FULL, IDLE], Some(0.0)), (Step::Spread(0), 1));
        // What that did is seen before the next step.
        let (next, looks) = step(&mut saturation, &[IDLE, FULL], Some(0.0));
        assert_eq!(next, Step::Spread(1));
        assert_eq!(looks, REST as usize + 1);
        // Both are full: that is all that can be had.
        assert_eq!(step(&mut saturation, &[FULL, FULL], Some(1.0)).0, Step::Stay);
    }

    #[test]
    fn a_number_that_the_user_gave_needs_no_saturation() {
        let mut saturation = Saturation::new(Some(2), 8);
        let light = Load { heavy: 3, ..IDLE };
        assert_eq!(step(&mut saturation, &[Load { heavy: 1, ..IDLE }], None).0, Step::Stay);
        assert_eq!(step(&mut saturation, &[light], None), (Step::Another, 1));
        assert_eq!(step(&mut saturation, &[light, IDLE], None).0, Step::Spread(0));
        let (one, two) = (Load { heavy: 1, ..IDLE }, Load { heavy: 2, ..IDLE });
        assert_eq!(step(&mut saturation, &[one, two], None).0, Step::Stay);
        assert_eq!(saturation.most(), 2);
    }
}
