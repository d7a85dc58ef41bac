// SPDX-License-Identifier: Apache-2.0
//! MPICHX_TOPOLOGY_DEPTHS and MPICHX_TOPOLOGY_COLORS.

use isthmus_topology::Colours;

/// Memory behind the topology attributes, as a C program reads it: `int *depths`, `int **colors`.
/// The addresses stay the same as long as the communicator lives.
pub struct TopologyAttributes {
    depths: Box<[i32]>,
    _colors: Box<[i32]>,
    rows: Box<[usize]>,
}

impl TopologyAttributes {
    pub(super) fn new(colours: &Colours) -> Self {
        let depths = colours.depths.iter().map(|&d| d as i32).collect();
        let colors: Box<[i32]> = colours.colours.iter().flatten().map(|&c| c as i32).collect();
        let width = colours.colours.first().map_or(0, |row| row.len());
        let rows = (0..colours.colours.len())
            .map(|r| colors[r * width..].as_ptr() as usize)
            .collect();
        Self {
            depths,
            _colors: colors,
            rows,
        }
    }

    /// Address of the array of depths, one per rank.
    pub fn depths(&self) -> usize {
        self.depths.as_ptr() as usize
    }

    /// Address of the array of pointers to arrays of colours, one per rank.
    pub fn colors(&self) -> usize {
        self.rows.as_ptr() as usize
    }
}
