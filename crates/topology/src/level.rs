// SPDX-License-Identifier: Apache-2.0
//! The layers of the network.

/// A layer of the network. Smaller is slower.
///
/// The number of a level is its index in MPICHX_TOPOLOGY_COLORS (MPICH-G2, section 3.1) as far as it goes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Level {
    /// Between local areas.
    WideArea = 0,
    /// Between machines of one local area.
    LocalArea = 1,
    /// Between nodes of one machine ("system area").
    Machine = 2,
    /// Inside one job of a vendor MPI.
    Vendor = 3,
    /// Inside one operating-system instance.
    Node = 4,
}

impl Level {
    /// Number of levels.
    pub const COUNT: usize = 5;
    /// All levels, slowest first.
    pub const ALL: [Self; Self::COUNT] = [Self::WideArea, Self::LocalArea, Self::Machine, Self::Vendor, Self::Node];

    /// Name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::WideArea => "wide area",
            Self::LocalArea => "local area",
            Self::Machine => "machine",
            Self::Vendor => "vendor MPI",
            Self::Node => "node",
        }
    }

    /// Name for settings and tables: no spaces.
    pub const fn key(self) -> &'static str {
        match self {
            Self::WideArea => "wide",
            Self::LocalArea => "local",
            Self::Machine => "machine",
            Self::Vendor => "vendor",
            Self::Node => "node",
        }
    }

    /// Number of the level, an index into arrays of [`Level::COUNT`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
