// SPDX-License-Identifier: Apache-2.0
//! The programs that measure.

/// A program that measures; compiled once for each library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// Messages, collectives, waiting.
    Messages,
    /// Data in pieces.
    Datatypes,
    /// Completion of every collective operation.
    Collectives,
    /// Every rank as root of a broadcast.
    Roots,
}

/// What the programs include.
pub(crate) const HEADERS: [(&str, &str); 5] = [
    ("cores.h", include_str!("../../../bench/cores.h")),
    ("fill.h", include_str!("../../../bench/fill.h")),
    ("trees.h", include_str!("../../../bench/trees.h")),
    ("places.h", include_str!("../../../bench/places.h")),
    ("counters.h", include_str!("../../../bench/counters.h")),
];

impl Program {
    /// Its name, and that of its source.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Messages => "mpibench",
            Self::Datatypes => "datatypes",
            Self::Collectives => "collectives",
            Self::Roots => "roots",
        }
    }

    /// Its text.
    pub(crate) fn source(self) -> &'static str {
        match self {
            Self::Messages => include_str!("../../../bench/mpibench.c"),
            Self::Datatypes => include_str!("../../../bench/datatypes.c"),
            Self::Collectives => include_str!("../../../bench/collectives.c"),
            Self::Roots => include_str!("../../../bench/roots.c"),
        }
    }
}
