// SPDX-License-Identifier: Apache-2.0
//! Cartesian topologies (MPI 5.0 section 8.5): grids, row-major, each dimension open or closed to a ring.

use isthmus_abi::constants as abi;
use isthmus_schedule::{Edge, Neighbours};

use crate::error::Result;
use crate::fail;

/// A grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cart {
    dims: Vec<u32>,
    periods: Vec<bool>,
}

impl Cart {
    /// A grid for at most `processes`; all dimensions are at least 1. Without dimensions: one process.
    pub fn new(processes: u32, dims: &[i32], periods: &[bool]) -> Result<Self> {
        let mut size = 1u64;
        for (at, &dim) in dims.iter().enumerate() {
            if dim <= 0 {
                fail!(
                    abi::MPI_ERR_DIMS,
                    argument(format!("dims[{at}]")),
                    "is {dim}, expected at least 1"
                );
            }
            size = size.saturating_mul(dim as u64);
        }
        if size > u64::from(processes) {
            fail!(
                abi::MPI_ERR_DIMS,
                argument("dims"),
                "is {dims:?}, a grid of {size} processes; the communicator has {processes}"
            );
        }
        Ok(Self {
            dims: dims.iter().map(|&d| d as u32).collect(),
            periods: periods.to_vec(),
        })
    }

    /// The grid of those dimensions that stay.
    pub(crate) fn of_kept(&self, keep: &[bool]) -> Self {
        let kept = |at: &usize| keep[*at];
        Self {
            dims: (0..self.dims.len()).filter(kept).map(|at| self.dims[at]).collect(),
            periods: (0..self.dims.len()).filter(kept).map(|at| self.periods[at]).collect(),
        }
    }

    /// Number of nodes.
    pub fn size(&self) -> u32 {
        self.dims.iter().product()
    }

    /// Extent of each dimension.
    pub fn dims(&self) -> &[u32] {
        &self.dims
    }

    /// Which dimensions are rings.
    pub fn periods(&self) -> &[bool] {
        &self.periods
    }

    /// Coordinates of a rank of the grid.
    pub fn coordinates(&self, rank: u32) -> Vec<u32> {
        let mut rest = rank;
        let mut coordinates = vec![0; self.dims.len()];
        for (coordinate, dim) in coordinates.iter_mut().zip(&self.dims).rev() {
            *coordinate = rest % dim;
            rest /= dim;
        }
        coordinates
    }

    /// Rank at these coordinates, one per dimension; outside the range only where the dimension is a ring.
    pub fn rank(&self, coordinates: &[i32]) -> Result<u32> {
        let mut rank = 0;
        for (at, ((&dim, &ring), &given)) in self.dims.iter().zip(&self.periods).zip(coordinates).enumerate() {
            let inside = match u32::try_from(given) {
                Ok(c) if c < dim => c,
                _ if ring => i64::from(given).rem_euclid(i64::from(dim)) as u32,
                _ => fail!(
                    abi::MPI_ERR_ARG,
                    argument(format!("coords[{at}]")),
                    "is {given}, the dimension is not periodic and has the coordinates 0 to {}",
                    dim - 1
                ),
            };
            rank = rank * dim + inside;
        }
        Ok(rank)
    }

    /// The node `by` steps along a dimension from a rank; `None` outside.
    fn step(&self, rank: u32, dimension: usize, by: i64) -> Option<u32> {
        let stride: u32 = self.dims[dimension + 1..].iter().product();
        let dim = i64::from(self.dims[dimension]);
        let at = i64::from(rank / stride) % dim;
        let mut to = at + by;
        if self.periods[dimension] {
            to = to.rem_euclid(dim);
        } else if !(0..dim).contains(&to) {
            return None;
        }
        Some((i64::from(rank) + (to - at) * i64::from(stride)) as u32)
    }

    /// MPI_Cart_shift: where data come from and go to.
    pub fn shift(&self, rank: u32, dimension: i32, by: i32) -> Result<(Option<u32>, Option<u32>)> {
        let Some(dimension) = usize::try_from(dimension).ok().filter(|d| *d < self.dims.len()) else {
            fail!(
                abi::MPI_ERR_ARG,
                argument("direction"),
                "is {dimension}, the grid has {} dimensions",
                self.dims.len()
            )
        };
        let by = i64::from(by);
        Ok((self.step(rank, dimension, -by), self.step(rank, dimension, by)))
    }

    /// Per dimension the node before and the node behind. What goes to the node before comes from the node behind
    /// there.
    pub(crate) fn edges(&self, rank: u32) -> Neighbours {
        let mut edges = Neighbours::default();
        for dimension in 0..self.dims.len() {
            for (by, towards) in [(-1, 0), (1, 1)] {
                let rank = self.step(rank, dimension, by);
                let slot = |direction| (2 * dimension + direction) as u16;
                edges.sources.push(Edge {
                    rank,
                    slot: slot(1 - towards),
                });
                edges.destinations.push(Edge {
                    rank,
                    slot: slot(towards),
                });
            }
        }
        edges
    }

    /// The nodes next to each node, for placement.
    pub(crate) fn adjacency(&self) -> Vec<Vec<(u32, u32)>> {
        let around = |rank| {
            let edges = self.edges(rank).destinations;
            edges.iter().filter_map(|e| Some((e.rank?, 1))).collect()
        };
        (0..self.size()).map(around).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_coordinates_are_row_major() {
        let cart = Cart::new(8, &[2, 3], &[true, false]).unwrap();
        assert_eq!(cart.coordinates(5), [1, 2]);
        assert_eq!(cart.rank(&[1, 2]).unwrap(), 5);
        assert_eq!(cart.rank(&[-1, 2]).unwrap(), 5);
        assert!(cart.rank(&[0, 3]).is_err());
        assert_eq!(cart.shift(0, 0, 1).unwrap(), (Some(3), Some(3)));
        assert_eq!(cart.shift(0, 1, 1).unwrap(), (None, Some(1)));
        assert_eq!(cart.shift(0, 1, i32::MIN).unwrap(), (None, None));
        assert!(cart.shift(0, 2, 1).is_err());
        assert!(Cart::new(5, &[2, 3], &[true, false]).is_err());
        assert!(Cart::new(5, &[0, 3], &[true, false]).is_err());
        assert_eq!(Cart::new(5, &[], &[]).unwrap().size(), 1);
    }

    #[test]
    fn every_edge_has_its_other_end() {
        for (dims, periods) in [
            (vec![1, 2, 3], vec![true, true, false]),
            (vec![2, 2], vec![true, true]),
            (vec![1], vec![true]),
            (vec![4], vec![false]),
        ] {
            let cart = Cart::new(100, &dims, &periods).unwrap();
            for rank in 0..cart.size() {
                for out in cart.edges(rank).destinations {
                    let Some(to) = out.rank else { continue };
                    let back = Edge {
                        rank: Some(rank),
                        slot: out.slot,
                    };
                    let found = cart.edges(to).sources.iter().filter(|e| **e == back).count();
                    assert_eq!(found, 1, "{dims:?}: {rank} to {to}");
                }
            }
        }
    }

    #[test]
    fn what_goes_backwards_arrives_in_the_block_of_the_forward_neighbour() {
        let cart = Cart::new(2, &[2], &[true]).unwrap();
        let edges = cart.edges(0);
        assert_eq!(edges.destinations[0].slot, edges.sources[1].slot);
    }
}
