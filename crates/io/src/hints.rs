// SPDX-License-Identifier: Apache-2.0
//! Hints (MPI 5.0 section 14.2.8): which are known, what they come to, what MPI_File_get_info tells.
//!
//! Names of ROMIO are understood beside those of the standard, because programs use them. A hint with a value that
//! makes no sense is ignored, as the standard asks.

use isthmus_core::info::Info;
use isthmus_wire::stripe::Layout;

use crate::access::Sieve;

/// Hints that change something here, with the values that they have when nobody gives others.
const EFFECTIVE: [(&str, &str); 7] = [
    ("cb_buffer_size", "16777216"),
    ("cb_nodes", ""),
    ("romio_cb_read", "automatic"),
    ("romio_cb_write", "automatic"),
    ("romio_ds_read", "automatic"),
    ("ind_rd_buffer_size", "4194304"),
    ("striping_unit", "1048576"),
];

/// Hints that are kept and told, and change nothing: they are for file systems and libraries that this is not.
const KEPT: [&str; 17] = [
    "access_style",
    "collective_buffering",
    "cb_block_size",
    "cb_config_list",
    "chunked",
    "chunked_item",
    "chunked_size",
    "file_perm",
    "filename",
    "io_node_list",
    "nb_proc",
    "num_io_nodes",
    "striping_factor",
    "ind_wr_buffer_size",
    "romio_ds_write",
    "romio_no_indep_rw",
    "mpi_assert_memory_alloc_kinds",
];

/// When something is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// Where it pays.
    #[default]
    Automatic,
    /// Always.
    Enable,
    /// Never.
    Disable,
}

impl Choice {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "automatic" => Some(Self::Automatic),
            "enable" | "true" => Some(Self::Enable),
            "disable" | "false" => Some(Self::Disable),
            _ => None,
        }
    }
}

/// What hints come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hints {
    told: Info,
    /// Bytes that an aggregator handles at once.
    pub buffer: u64,
    /// Number of aggregators; 0: as many as pay.
    pub aggregators: u32,
    /// Bytes to whose multiples file domains are aligned.
    pub stripe: u64,
    /// Two-phase access for reading and for writing.
    pub collective: [Choice; 2],
    /// How reads treat holes.
    pub sieve: Sieve,
}

impl Default for Hints {
    fn default() -> Self {
        let mut hints = Self {
            told: Info::default(),
            buffer: 16 << 20,
            aggregators: 0,
            stripe: 1 << 20,
            collective: [Choice::Automatic; 2],
            sieve: Sieve::default(),
        };
        for (key, value) in EFFECTIVE.iter().filter(|(_, value)| !value.is_empty()) {
            hints.tell(key, value);
        }
        hints
    }
}

/// A number of bytes or things, at least 1; bounded, so that nobody asks for all memory.
fn number(value: &str) -> Option<u64> {
    value.trim().parse().ok().filter(|n| (1..=1 << 40).contains(n))
}

impl Hints {
    /// Those of an info.
    pub fn of(given: &Info) -> Self {
        let mut hints = Self::default();
        hints.extend(given);
        hints
    }

    /// What the file system has done with the file goes before what the program wished for.
    pub(crate) fn laid_out(mut self, layout: Layout) -> Self {
        if layout.unit > 0 {
            self.stripe = u64::from(layout.unit);
            self.tell("striping_unit", &layout.unit.to_string());
        }
        if layout.count > 0 {
            self.tell("striping_factor", &layout.count.to_string());
        }
        self
    }

    fn tell(&mut self, key: &str, value: &str) {
        // Keys and values are short enough: they come out of an info or this table.
        let _ = self.told.set(key, value);
    }

    /// Takes what is understood.
    pub fn extend(&mut self, given: &Info) {
        for at in 0..given.len() {
            let Ok(key) = given.nth_key(at) else { continue };
            let Ok(Some(value)) = given.get(key) else { continue };
            if KEPT.contains(&key) || self.take(key, value.trim()).is_some() {
                self.tell(key, value);
            }
        }
    }

    fn take(&mut self, key: &str, value: &str) -> Option<()> {
        match key {
            "cb_buffer_size" => self.buffer = number(value)?.clamp(1 << 12, 1 << 30),
            "cb_nodes" => self.aggregators = u32::try_from(number(value)?).ok()?,
            "striping_unit" => self.stripe = number(value)?,
            "ind_rd_buffer_size" => self.sieve.buffer = number(value)?.clamp(1 << 12, 1 << 30),
            "romio_cb_read" => self.collective[0] = Choice::parse(value)?,
            "romio_cb_write" => self.collective[1] = Choice::parse(value)?,
            "romio_ds_read" => {
                self.sieve.hole = match Choice::parse(value)? {
                    Choice::Automatic => Sieve::default().hole,
                    Choice::Enable => self.sieve.buffer,
                    Choice::Disable => 0,
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// What MPI_File_get_info tells. `aggregators`: how many there are.
    pub fn told(&self, aggregators: u32) -> Info {
        let mut all = self.told.clone();
        let _ = all.set("cb_nodes", &aggregators.to_string());
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_sense_is_taken_and_told() {
        let mut given = Info::default();
        for (key, value) in [
            ("cb_nodes", "3"),
            ("cb_buffer_size", "many"),
            ("romio_ds_read", "disable"),
            ("striping_factor", "7"),
            ("nobody_knows", "this"),
        ] {
            given.set(key, value).unwrap();
        }
        let hints = Hints::of(&given);
        assert_eq!((hints.aggregators, hints.buffer, hints.sieve.hole), (3, 16 << 20, 0));
        let told = hints.told(2);
        assert_eq!(told.get("cb_nodes"), Ok(Some("2")));
        assert_eq!(told.get("cb_buffer_size"), Ok(Some("16777216")));
        assert_eq!(told.get("striping_factor"), Ok(Some("7")));
        assert_eq!(told.get("nobody_knows"), Ok(None));
        let (unit, count) = (4 << 20, 8);
        let hints = hints.laid_out(Layout { unit, count });
        assert_eq!(hints.stripe, 4 << 20);
        assert_eq!(hints.told(2).get("striping_factor"), Ok(Some("8")));
    }
}
