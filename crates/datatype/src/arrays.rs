// SPDX-License-Identifier: Apache-2.0
//! Parts of multidimensional arrays: MPI_Type_create_subarray and MPI_Type_create_darray (MPI 5.0, sections 5.1.3,
//! 5.1.4).
//!
//! Both are built from the fastest dimension to the slowest; the result has lower bound 0 and the extent of the whole
//! array.

use crate::Datatype;
use crate::bounds::Bounds;
use crate::contents::Combiner;
use crate::datatype::Contents;
use crate::error::{TypeError, narrow};
use crate::layout::{Placed, Sequencer, repeat};

/// Which index of an array is the fastest; the discriminant is the value of the ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Order {
    /// The last (MPI_ORDER_C).
    C = 0xC,
    /// The first (MPI_ORDER_FORTRAN).
    Fortran = 0xF,
}

/// How a dimension is spread over processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Not at all; the grid must have one process in this dimension.
    None,
    /// One block for each process, of this many elements or, by default, as few as suffice.
    Block(Option<i64>),
    /// Blocks dealt out in turn, of this many elements, by default 1.
    Cyclic(Option<i64>),
}

impl Datatype {
    /// The elements `starts[i] .. starts[i] + subsizes[i]` of an array with `sizes[i]` elements in dimension `i`.
    pub fn subarray(
        sizes: &[i64],
        subsizes: &[i64],
        starts: &[i64],
        order: Order,
        old: &Self,
    ) -> Result<Self, TypeError> {
        check_dimensions(sizes, "array_of_sizes")?;
        for (argument, list) in [("array_of_subsizes", subsizes), ("array_of_starts", starts)] {
            same_dimensions(argument, list.len(), sizes.len())?;
        }
        for (index, ((&size, &subsize), &start)) in sizes.iter().zip(subsizes).zip(starts).enumerate() {
            within("array_of_subsizes", index, subsize, 1, size)?;
            within("array_of_starts", index, start, 0, size - subsize)?;
        }
        let mut region = Region::new(old);
        for index in fastest_first(sizes.len(), order) {
            region.tile(subsizes[index] as u64, starts[index])?;
            region.enlarge(sizes[index])?;
        }
        let mut integers = vec![sizes.len() as i64];
        integers.extend(sizes.iter().chain(subsizes).chain(starts));
        integers.push(order as i64);
        region.finish(
            old,
            Contents::new(Combiner::Subarray, integers, vec![], vec![old.clone()]),
        )
    }

    /// The elements that process `rank` of a grid of `grid[0] * grid[1] * ...` processes (numbered in C order) has of
    /// an array with `sizes[i]` elements in dimension `i`. `arguments` are the call's distributions and their arguments
    /// as the caller gave them, for MPI_Type_get_contents.
    pub fn darray(
        rank: i64,
        sizes: &[i64],
        distributions: &[Distribution],
        arguments: [&[i64]; 2],
        grid: &[i64],
        order: Order,
        old: &Self,
    ) -> Result<Self, TypeError> {
        check_dimensions(sizes, "array_of_gsizes")?;
        check_dimensions(grid, "array_of_psizes")?;
        same_dimensions("array_of_distribs", distributions.len(), sizes.len())?;
        same_dimensions("array_of_psizes", grid.len(), sizes.len())?;
        let processes = product(grid, "number of processes")?;
        within("rank", 0, rank, 0, processes - 1)?;
        let mut region = Region::new(old);
        let coordinates = coordinates(rank, grid);
        for index in fastest_first(sizes.len(), order) {
            region.deal(
                index,
                sizes[index],
                distributions[index],
                coordinates[index],
                grid[index],
            )?;
            region.enlarge(sizes[index])?;
        }
        let mut integers = vec![processes, rank, sizes.len() as i64];
        integers.extend(sizes.iter().chain(arguments[0]).chain(arguments[1]).chain(grid));
        integers.push(order as i64);
        region.finish(
            old,
            Contents::new(Combiner::Darray, integers, vec![], vec![old.clone()]),
        )
    }
}

/// What is selected of the dimensions looked at so far.
struct Region {
    layout: Option<Placed>,
    /// Range of bytes that it touches; (0, 0) if it is empty.
    touched: (i128, i128),
    elements: i128,
    /// Bytes of data in one element.
    size: u64,
    /// Bytes from one element of the next dimension to the next.
    stride: i64,
}

impl Region {
    fn new(old: &Datatype) -> Self {
        let low = i128::from(old.true_lower_bound());
        let touched = (low, low + i128::from(old.true_extent()));
        Self {
            layout: old.layout().cloned(),
            touched,
            elements: 1,
            size: old.size(),
            stride: old.extent(),
        }
    }

    /// `count` of these in a row, from element `start` on.
    fn tile(&mut self, count: u64, start: i64) -> Result<(), TypeError> {
        let shift = narrow(i128::from(start) * i128::from(self.stride), "displacement")?;
        let span = narrow(i128::from(count.max(1) - 1) * i128::from(self.stride), "extent")?;
        let (low, high) = self.touched;
        self.touched = (
            low + i128::from(shift) + i128::from(span.min(0)),
            high + i128::from(shift) + i128::from(span.max(0)),
        );
        self.elements *= i128::from(count);
        if self.elements == 0 || self.size == 0 {
            self.touched = (0, 0);
        }
        self.check()?;
        let row = self.layout.as_ref().and_then(|one| repeat(count, self.stride, one));
        self.layout = row.map(|row| row.shifted(shift)).transpose()?;
        Ok(())
    }

    /// The part of a dimension of `size` elements that process `at` of `of` has.
    fn deal(&mut self, index: usize, size: i64, how: Distribution, at: i64, of: i64) -> Result<(), TypeError> {
        let (block, cyclic) = match how {
            Distribution::None => {
                within("array_of_psizes", index, of, 1, 1)?;
                (size, false)
            }
            Distribution::Block(block) => {
                let least = (size - 1) / of + 1;
                let block = block.unwrap_or(least);
                within("array_of_dargs", index, block, least, i64::MAX)?;
                (block, false)
            }
            Distribution::Cyclic(block) => {
                let block = block.unwrap_or(1);
                within("array_of_dargs", index, block, 1, i64::MAX)?;
                (block, true)
            }
        };
        let start = narrow(i128::from(at) * i128::from(block), "displacement")?;
        if cyclic {
            let turn = narrow(i128::from(block) * i128::from(of), "displacement")?;
            return self.cycle(size, block, start, turn);
        }
        self.tile((size - start).clamp(0, block) as u64, start.min(size))
    }

    /// Whole blocks at `start` of every `turn` elements, and what of the last block is inside the array.
    fn cycle(&mut self, size: i64, block: i64, start: i64, turn: i64) -> Result<(), TypeError> {
        let (whole, rest) = (size / turn, (size % turn - start).clamp(0, block));
        let mut last = Self {
            layout: self.layout.clone(),
            ..*self
        };
        last.tile(rest as u64, if rest > 0 { whole * turn + start } else { 0 })?;
        if whole == 0 {
            *self = last;
            return Ok(());
        }
        let stride = self.stride;
        self.tile(block as u64, start)?;
        self.stride = narrow(i128::from(turn) * i128::from(stride), "displacement")?;
        self.tile(whole as u64, 0)?;
        self.stride = stride;
        if rest > 0 && self.size > 0 {
            self.touched = (self.touched.0.min(last.touched.0), self.touched.1.max(last.touched.1));
            self.elements += last.elements;
            self.check()?;
            let mut both = Sequencer::default();
            [self.layout.take(), last.layout]
                .into_iter()
                .flatten()
                .for_each(|part| both.push(part));
            self.layout = both.finish()?;
        }
        Ok(())
    }

    /// This was a dimension of `size` elements; on to the next.
    fn enlarge(&mut self, size: i64) -> Result<(), TypeError> {
        self.stride = narrow(i128::from(size) * i128::from(self.stride), "extent")?;
        Ok(())
    }

    fn check(&self) -> Result<(), TypeError> {
        narrow(self.touched.0, "true lower bound")?;
        narrow(self.touched.1, "true upper bound")?;
        narrow(self.touched.1 - self.touched.0, "true extent")?;
        let elements = narrow(self.elements, "number of elements")?;
        narrow(i128::from(elements) * i128::from(self.size), "size").map(|_| ())
    }

    fn finish(self, old: &Datatype, contents: Contents) -> Result<Datatype, TypeError> {
        let elements = narrow(self.elements, "number of elements")? as u64;
        let bounds = Bounds {
            size: old.bytes(elements)?,
            lower: 0,
            upper: self.stride,
            true_lower: narrow(self.touched.0, "true lower bound")?,
            true_upper: narrow(self.touched.1, "true upper bound")?,
            marked_lower: true,
            marked_upper: true,
            alignment: old.bounds().alignment,
        };
        Ok(Datatype::assemble(
            bounds,
            self.layout,
            old.signature().repeated(elements),
            contents,
        ))
    }
}

fn fastest_first(dimensions: usize, order: Order) -> Vec<usize> {
    match order {
        Order::C => (0..dimensions).rev().collect(),
        Order::Fortran => (0..dimensions).collect(),
    }
}

/// Coordinates of a process in a grid numbered in C order.
fn coordinates(mut rank: i64, grid: &[i64]) -> Vec<i64> {
    let mut result = vec![0; grid.len()];
    for (place, size) in result.iter_mut().zip(grid).rev() {
        *place = rank % size;
        rank /= size;
    }
    result
}

fn product(list: &[i64], quantity: &'static str) -> Result<i64, TypeError> {
    list.iter()
        .try_fold(1, |all, &one| narrow(i128::from(all) * i128::from(one), quantity))
}

fn check_dimensions(sizes: &[i64], argument: &'static str) -> Result<(), TypeError> {
    within("ndims", 0, sizes.len() as i64, 1, i64::MAX)?;
    sizes
        .iter()
        .enumerate()
        .try_for_each(|(index, &size)| within(argument, index, size, 1, i64::MAX))
}

fn same_dimensions(argument: &'static str, length: usize, expected: usize) -> Result<(), TypeError> {
    if length == expected {
        Ok(())
    } else {
        Err(TypeError::Lengths {
            argument,
            length,
            expected,
        })
    }
}

fn within(argument: &'static str, index: usize, value: i64, least: i64, most: i64) -> Result<(), TypeError> {
    if value < least {
        return Err(TypeError::Below {
            argument,
            index,
            value,
            least,
        });
    }
    if value > most {
        return Err(TypeError::Above {
            argument,
            index,
            value,
            most,
        });
    }
    Ok(())
}
