// SPDX-License-Identifier: Apache-2.0
//! Whether the launcher is there: silence elsewhere, the state of its process at home.

use isthmus_wire::grid::ToAgent;
use std::time::Duration;
use tokio::time::Instant;

/// An agent that has heard nothing from its coordinator for so long leaves; once it starts processes the coordinator
/// says how long.
const SILENCE: Duration = Duration::from_secs(60);
/// How long a launcher that has said that it stops is waited for.
const STOPPED: Duration = Duration::from_secs(24 * 3600);
/// The agent looks at least so often. Silence is the time that this process has lived through, not the clock's: when
/// the whole machine stood still (suspended, overloaded), what arrived meanwhile is looked at before the job is given
/// up.
pub(crate) const STEP: Duration = Duration::from_millis(500);
/// More than that between two looks was not lived through.
const LONGEST: Duration = Duration::from_secs(1);
/// Looks that follow one another faster count together.
const SHORTEST: Duration = Duration::from_millis(100);
/// A launcher on this machine that has said nothing for so long may have been stopped.
const SUSPICIOUS: Duration = Duration::from_secs(1);

/// What there is to be done about the launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// Nothing.
    Fine,
    /// It has been stopped: its processes stop with it.
    Stopped,
    /// It goes on, and so do they.
    GoesOn,
    /// It is lost.
    Lost,
}

/// Whether the launcher has said that it stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Announced {
    /// It runs.
    No,
    /// It has said so. A ping follows at once, with which it makes sure that we know: that is no sign that it goes on.
    Said,
    /// That ping has come. Whatever comes now says that it goes on.
    Confirmed,
}

/// Watches for the launcher.
#[derive(Debug)]
pub(crate) struct Vigil {
    /// The launcher's process, where it runs on this machine and has started us. Its end closes our input, so silence
    /// means nothing there.
    launcher: Option<u32>,
    limit: Duration,
    silent: Duration,
    counted: Instant,
    announced: Announced,
    /// It was found stopped.
    stopped: bool,
    /// Its connection has ended; for how long another one is still waited for.
    waits: Option<Duration>,
}

impl Vigil {
    /// `home`: whoever has started us is the launcher.
    pub(crate) fn new(home: bool) -> Self {
        let parent = rustix::process::getppid().and_then(|pid| u32::try_from(pid.as_raw_pid()).ok());
        Self {
            launcher: parent.filter(|_| home),
            limit: SILENCE,
            silent: Duration::ZERO,
            counted: Instant::now(),
            announced: Announced::No,
            stopped: false,
            waits: None,
        }
    }

    /// The connection has ended; for so long another one may follow.
    pub(crate) fn wait(&mut self, patience: Duration) {
        self.waits.get_or_insert(patience);
    }

    /// Another connection has followed. `launcher`: the process of the coordinator, where it is on this machine.
    pub(crate) fn welcome(&mut self, launcher: u32) {
        (self.silent, self.announced, self.waits) = (Duration::ZERO, Announced::No, None);
        self.launcher = self.launcher.map(|_| launcher);
    }

    /// The launcher says how long it may be silent.
    pub(crate) fn allow(&mut self, limit: Duration) {
        self.limit = limit;
    }

    /// It has said something.
    pub(crate) fn heard(&mut self, message: &ToAgent) {
        let stop = rustix::process::Signal::TSTP.as_raw() as u32;
        self.silent = Duration::ZERO;
        self.announced = match (message, self.announced) {
            (ToAgent::Signal(signal), _) if *signal == stop => Announced::Said,
            (ToAgent::Ping(_), Announced::Said) => Announced::Confirmed,
            // Not to us.
            (ToAgent::Neighbour { .. }, before) => before,
            // It says more: it has not stopped, or goes on.
            _ => Announced::No,
        };
    }

    /// Time passes.
    pub(crate) fn look(&mut self) -> Finding {
        let passed = self.counted.elapsed();
        if passed < SHORTEST {
            return Finding::Fine;
        }
        let passed = passed.min(LONGEST);
        (self.silent, self.counted) = (self.silent + passed, Instant::now());
        if let Some(left) = &mut self.waits {
            let Some(less) = left.checked_sub(passed) else {
                return Finding::Lost;
            };
            *left = less;
            // What was stopped with a launcher that is gone goes on.
            if std::mem::take(&mut self.stopped) {
                return Finding::GoesOn;
            }
            if self.launcher.is_some() {
                return Finding::Fine;
            }
        }
        let Some(launcher) = self.launcher else {
            let limit = match self.announced {
                Announced::No => self.limit,
                Announced::Said | Announced::Confirmed => STOPPED,
            };
            return if self.silent > limit {
                Finding::Lost
            } else {
                Finding::Fine
            };
        };
        let stopped = self.silent > SUSPICIOUS && is_stopped(launcher);
        match (std::mem::replace(&mut self.stopped, stopped), stopped) {
            (false, true) => Finding::Stopped,
            (true, false) => Finding::GoesOn,
            _ => Finding::Fine,
        }
    }
}

/// Whether a process is stopped by a signal or a debugger.
fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name stands in parentheses and may contain some.
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest);
    state.is_some_and(|state| state.starts_with(['T', 't']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_ends_a_job_elsewhere_unless_it_was_announced() {
        let after = |vigil: &mut Vigil, seconds: u64| {
            let steps = (0..2 * seconds).map(|_| {
                vigil.counted -= STEP;
                vigil.look()
            });
            steps.last()
        };
        let mut vigil = Vigil::new(false);
        vigil.allow(Duration::from_secs(10));
        assert_eq!(after(&mut vigil, 9), Some(Finding::Fine));
        vigil.heard(&ToAgent::Ping(1));
        assert_eq!(after(&mut vigil, 9), Some(Finding::Fine));
        assert_eq!(after(&mut vigil, 2), Some(Finding::Lost));
        // Events between the looks make it neither shorter nor longer.
        vigil.heard(&ToAgent::Ping(1));
        let mut often = |looks: u32, apart: Duration| {
            let looks = (0..looks).map(|_| {
                vigil.counted -= apart;
                vigil.look()
            });
            looks.last()
        };
        assert_eq!(often(30, Duration::from_millis(300)), Some(Finding::Fine));
        assert_eq!(often(4, Duration::from_millis(300)), Some(Finding::Lost));
        vigil.heard(&ToAgent::Ping(1));
        // A machine that stood still has not heard nothing.
        vigil.counted -= Duration::from_secs(3600);
        assert_eq!(vigil.look(), Finding::Fine);
        vigil.heard(&ToAgent::Signal(20));
        vigil.heard(&ToAgent::Ping(2));
        assert_eq!(after(&mut vigil, 3600), Some(Finding::Fine));
        vigil.heard(&ToAgent::Ping(3));
        assert_eq!(after(&mut vigil, 11), Some(Finding::Lost));
        let mut home = Vigil::new(true);
        assert_eq!(after(&mut home, 3600), Some(Finding::Fine));
        vigil.allow(Duration::from_secs(30));
        for one in [&mut vigil, &mut home] {
            one.welcome(std::process::id());
            one.wait(Duration::from_secs(20));
            assert_eq!(after(one, 19), Some(Finding::Fine));
            one.welcome(std::process::id());
            assert_eq!(after(one, 5), Some(Finding::Fine));
            one.wait(Duration::from_secs(20));
            assert_eq!(after(one, 21), Some(Finding::Lost));
        }
    }

    #[test]
    fn a_stopped_process_is_seen() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(!is_stopped(child.id()));
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        while !is_stopped(child.id()) {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_stopped(child.id()));
    }
}
