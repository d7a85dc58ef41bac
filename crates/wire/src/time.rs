// SPDX-License-Identifier: Apache-2.0
//! Where the time of processes went: what of it their calls waited, by call and by the level of the network.
//!
//! ```text
//!  processes u32, elapsed u64, going_on u64, [call text, collective u8, level u8, times u64, nanoseconds u64]
//! ```
//! All times are nanoseconds.

use crate::codec::{DecodeError, Reader, Writer};

/// Most rows; what else there is counts for [`OTHERS`].
pub const MOST_WAITS: usize = 256;
/// Longest name of a call that is taken, bytes.
const MOST_NAME: usize = 64;
/// The name of calls that found no row.
pub const OTHERS: &str = "others";

/// The time of one process, or of several together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Time {
    /// Of how many processes these are the sums.
    pub processes: u32,
    /// Since MPI_Init.
    pub elapsed: u64,
    /// Waits that are not over.
    pub going_on: u64,
    /// Waits that are over.
    pub waits: Vec<Wait>,
}

/// Waits in one MPI function for one level of the network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// The MPI function, as the program called it.
    pub call: String,
    /// What was waited for was a collective operation; otherwise a message.
    pub collective: bool,
    /// Where came from what ended the waits: wide area 0 … node 4.
    pub level: u8,
    /// How many there were.
    pub times: u64,
    /// How long they took together.
    pub nanoseconds: u64,
}

impl Time {
    /// Adds the time of others.
    pub fn add(&mut self, other: &Self) {
        self.processes = self.processes.saturating_add(other.processes);
        self.elapsed = self.elapsed.saturating_add(other.elapsed);
        self.going_on = self.going_on.saturating_add(other.going_on);
        other.waits.iter().for_each(|wait| self.add_wait(wait));
    }

    fn add_wait(&mut self, wait: &Wait) {
        let key = |w: &Wait| (w.collective, w.level);
        let same = |w: &&mut Wait, name: &str| w.call == name && key(w) == key(wait);
        let full = self.waits.len() >= MOST_WAITS;
        let found = self.waits.iter_mut().find(|w| same(w, &wait.call));
        let Some(row) = found else {
            match full {
                false => self.waits.push(wait.clone()),
                true => self.add_other(wait),
            }
            return;
        };
        row.times = row.times.saturating_add(wait.times);
        row.nanoseconds = row.nanoseconds.saturating_add(wait.nanoseconds);
    }

    /// There is no room for a call of its own.
    fn add_other(&mut self, wait: &Wait) {
        if let Some(last) = self.waits.last_mut() {
            OTHERS.clone_into(&mut last.call);
            last.times = last.times.saturating_add(wait.times);
            last.nanoseconds = last.nanoseconds.saturating_add(wait.nanoseconds);
        }
    }

    /// What was waited for messages, and in collective operations; waits that go on are in neither.
    pub fn waited(&self, collective: bool) -> u64 {
        let all = self.waits.iter().filter(|w| w.collective == collective);
        all.fold(0, |sum, w| sum.saturating_add(w.nanoseconds))
    }

    /// What is left: the program's own work, and that of the library.
    pub fn computed(&self) -> u64 {
        let waited = self.waited(false).saturating_add(self.waited(true));
        self.elapsed.saturating_sub(waited.saturating_add(self.going_on))
    }

    /// Appends it to a message.
    pub fn write(&self, w: &mut Writer) {
        w.u32(self.processes).u64(self.elapsed).u64(self.going_on);
        w.list(&self.waits, |w, wait| {
            w.text(&wait.call).u8(wait.collective.into()).u8(wait.level);
            w.u64(wait.times).u64(wait.nanoseconds);
        });
    }

    /// Reads it from a message.
    pub fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (processes, elapsed, going_on) = (r.u32("processes")?, r.u64("elapsed")?, r.u64("going on")?);
        let waits = r.list("waits", Wait::read)?;
        if waits.len() > MOST_WAITS {
            return Err(DecodeError::Invalid {
                field: "waits",
                value: waits.len() as u64,
            });
        }
        Ok(Self {
            processes,
            elapsed,
            going_on,
            waits,
        })
    }
}

impl Wait {
    fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let call = r.text("call")?;
        if call.len() > MOST_NAME {
            return Err(DecodeError::Invalid {
                field: "call",
                value: call.len() as u64,
            });
        }
        Ok(Self {
            call,
            collective: r.u8("collective")? != 0,
            level: r.u8("level")?,
            times: r.u64("times")?,
            nanoseconds: r.u64("nanoseconds")?,
        })
    }
}

/// The time of the processes of one site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteTime {
    /// Name of the subjob.
    pub site: String,
    /// Sums over its processes.
    pub time: Time,
}

impl SiteTime {
    /// Appends it to a message.
    pub fn write(&self, w: &mut Writer) {
        w.text(&self.site);
        self.time.write(w);
    }

    /// Reads it from a message.
    pub fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            site: r.text("site")?,
            time: Time::read(r)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(call: &str, collective: bool, nanoseconds: u64) -> Wait {
        Wait {
            call: call.into(),
            collective,
            level: 0,
            times: 1,
            nanoseconds,
        }
    }

    #[test]
    fn what_is_not_waited_is_computed() {
        let one = Time {
            processes: 1,
            elapsed: 100,
            going_on: 5,
            waits: vec![wait("MPI_Recv", false, 20), wait("MPI_Bcast", true, 30)],
        };
        let mut sum = one.clone();
        sum.add(&one);
        assert_eq!((sum.processes, sum.waits.len()), (2, 2));
        assert_eq!((sum.waited(false), sum.waited(true), sum.computed()), (40, 60, 90));
    }

    #[test]
    fn rows_are_bounded_and_nothing_is_lost() {
        let mut sum = Time::default();
        for call in 0..MOST_WAITS + 9 {
            let waits = vec![wait(&format!("c{call}"), false, 1)];
            sum.add(&Time {
                waits,
                ..Time::default()
            });
        }
        assert_eq!(
            (sum.waits.len(), sum.waited(false)),
            (MOST_WAITS, MOST_WAITS as u64 + 9)
        );
        assert_eq!(sum.waits.last().map(|w| w.call.as_str()), Some(OTHERS));
    }
}
