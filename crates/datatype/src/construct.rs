// SPDX-License-Identifier: Apache-2.0
//! The constructors of derived datatypes: MPI 5.0, section 5.1.2. Counts, strides and displacements have 64 bits; the
//! calls with int and those with MPI_Count share them ([`Datatype::large`] notes the difference).

use crate::Datatype;
use crate::bounds::{Bounds, Gatherer};
use crate::contents::Combiner;
use crate::datatype::Contents;
use crate::error::{TypeError, narrow, natural};
use crate::layout::{Sequencer, repeat};
use crate::signature::Signature;

/// `length` consecutive elements of a type, `displacement` bytes from the origin.
struct Block<'a> {
    displacement: i64,
    length: u64,
    of: &'a Datatype,
}

impl Datatype {
    /// `count` elements one after the other.
    pub fn contiguous_type(count: i64, old: &Self) -> Result<Self, TypeError> {
        let contents = Contents::new(Combiner::Contiguous, vec![count], vec![], vec![old.clone()]);
        let length = natural("count", 0, count)?;
        Self::from_blocks(
            &[Block {
                displacement: 0,
                length,
                of: old,
            }],
            false,
            contents,
        )
    }

    /// `count` blocks of `blocklength` elements, `stride` extents of `old` apart.
    pub fn vector(count: i64, blocklength: i64, stride: i64, old: &Self) -> Result<Self, TypeError> {
        let contents = Contents::new(
            Combiner::Vector,
            vec![count, blocklength, stride],
            vec![],
            vec![old.clone()],
        );
        let bytes = i128::from(stride) * i128::from(old.extent());
        Self::strided(count, blocklength, bytes, old, contents)
    }

    /// `count` blocks of `blocklength` elements, `stride` bytes apart.
    pub fn hvector(count: i64, blocklength: i64, stride: i64, old: &Self) -> Result<Self, TypeError> {
        let contents = Contents::new(
            Combiner::Hvector,
            vec![count, blocklength],
            vec![stride],
            vec![old.clone()],
        );
        Self::strided(count, blocklength, i128::from(stride), old, contents)
    }

    /// Blocks of any length; displacements in extents of `old`.
    pub fn indexed(blocklengths: &[i64], displacements: &[i64], old: &Self) -> Result<Self, TypeError> {
        let contents = Contents::new(
            Combiner::Indexed,
            listed(blocklengths, displacements),
            vec![],
            vec![old.clone()],
        );
        Self::from_lists(blocklengths, &scaled(displacements, old)?, old, contents)
    }

    /// Blocks of any length; displacements in bytes.
    pub fn hindexed(blocklengths: &[i64], displacements: &[i64], old: &Self) -> Result<Self, TypeError> {
        let integers = listed(blocklengths, &[]);
        let contents = Contents::new(Combiner::Hindexed, integers, displacements.to_vec(), vec![old.clone()]);
        Self::from_lists(blocklengths, displacements, old, contents)
    }

    /// Blocks of one length; displacements in extents of `old`.
    pub fn indexed_block(blocklength: i64, displacements: &[i64], old: &Self) -> Result<Self, TypeError> {
        let mut integers = listed(&[blocklength], displacements);
        integers[0] = displacements.len() as i64;
        let contents = Contents::new(Combiner::IndexedBlock, integers, vec![], vec![old.clone()]);
        Self::equal_blocks(blocklength, &scaled(displacements, old)?, old, contents)
    }

    /// Blocks of one length; displacements in bytes.
    pub fn hindexed_block(blocklength: i64, displacements: &[i64], old: &Self) -> Result<Self, TypeError> {
        let integers = vec![displacements.len() as i64, blocklength];
        let contents = Contents::new(
            Combiner::HindexedBlock,
            integers,
            displacements.to_vec(),
            vec![old.clone()],
        );
        Self::equal_blocks(blocklength, displacements, old, contents)
    }

    /// Blocks of any length and type; displacements in bytes.
    pub fn structure(blocklengths: &[i64], displacements: &[i64], types: &[Self]) -> Result<Self, TypeError> {
        let expected = blocklengths.len();
        same_length("array_of_displacements", displacements.len(), expected)?;
        same_length("array_of_types", types.len(), expected)?;
        let integers = listed(blocklengths, &[]);
        let contents = Contents::new(Combiner::Struct, integers, displacements.to_vec(), types.to_vec());
        let mut blocks = Vec::with_capacity(expected);
        for (index, ((&length, &displacement), of)) in blocklengths.iter().zip(displacements).zip(types).enumerate() {
            blocks.push(Block {
                displacement,
                length: natural("array_of_blocklengths", index, length)?,
                of,
            });
        }
        Self::from_blocks(&blocks, true, contents)
    }

    /// The same data with another lower bound and extent, bytes.
    pub fn resized(old: &Self, lower: i64, extent: i64) -> Result<Self, TypeError> {
        let contents = Contents::new(Combiner::Resized, vec![], vec![lower, extent], vec![old.clone()]);
        let upper = narrow(i128::from(lower) + i128::from(extent), "upper bound")?;
        let bounds = Bounds {
            lower,
            upper,
            marked_lower: true,
            marked_upper: true,
            ..*old.bounds()
        };
        Ok(Self::assemble(
            bounds,
            old.layout().cloned(),
            old.signature().clone(),
            contents,
        ))
    }

    /// The same type again.
    pub fn dup(old: &Self) -> Self {
        let contents = Contents::new(Combiner::Dup, vec![], vec![], vec![old.clone()]);
        Self::assemble(*old.bounds(), old.layout().cloned(), old.signature().clone(), contents)
    }

    fn strided(count: i64, length: i64, stride: i128, old: &Self, contents: Contents) -> Result<Self, TypeError> {
        let (count, length) = (natural("count", 0, count)?, natural("blocklength", 0, length)?);
        let mut bounds = Gatherer::default();
        if count == 0 || length == 0 {
            return Ok(Self::assemble(bounds.finish(false)?, None, Signature::EMPTY, contents));
        }
        let last = narrow(i128::from(count - 1) * narrow_stride(count, stride)?, "displacement")?;
        bounds.block(0, length, old.bounds())?;
        if count > 1 {
            bounds.block(last, length, old.bounds())?;
        }
        let mut bounds = bounds.finish(false)?;
        let elements = narrow(i128::from(count) * i128::from(length), "number of elements")? as u64;
        bounds.size = old.bytes(elements)?;
        let block = old.layout().and_then(|one| repeat(length, old.extent(), one));
        let layout = block.and_then(|block| repeat(count, stride as i64, &block));
        Ok(Self::assemble(
            bounds,
            layout,
            old.signature().repeated(elements),
            contents,
        ))
    }

    fn equal_blocks(length: i64, displacements: &[i64], old: &Self, contents: Contents) -> Result<Self, TypeError> {
        let length = natural("blocklength", 0, length)?;
        let block = |&displacement: &i64| Block {
            displacement,
            length,
            of: old,
        };
        let blocks: Vec<_> = displacements.iter().map(block).collect();
        Self::from_blocks(&blocks, false, contents)
    }

    fn from_lists(lengths: &[i64], displacements: &[i64], old: &Self, contents: Contents) -> Result<Self, TypeError> {
        same_length("array_of_displacements", displacements.len(), lengths.len())?;
        let mut blocks = Vec::with_capacity(lengths.len());
        for (index, (&length, &displacement)) in lengths.iter().zip(displacements).enumerate() {
            blocks.push(Block {
                displacement,
                length: natural("array_of_blocklengths", index, length)?,
                of: old,
            });
        }
        Self::from_blocks(&blocks, false, contents)
    }

    fn from_blocks(blocks: &[Block<'_>], padded: bool, contents: Contents) -> Result<Self, TypeError> {
        let mut bounds = Gatherer::default();
        for block in blocks {
            bounds.block(block.displacement, block.length, block.of.bounds())?;
        }
        let bounds = bounds.finish(padded)?;
        let mut parts = Sequencer::default();
        let mut signatures = Vec::new();
        for block in blocks {
            let Some(one) = block.of.layout() else { continue };
            if let Some(row) = repeat(block.length, block.of.extent(), one) {
                parts.push(row.shifted(block.displacement)?);
                Signature::collect(&mut signatures, block.of.signature().repeated(block.length));
            }
        }
        Ok(Self::assemble(
            bounds,
            parts.finish()?,
            Signature::sequence(signatures),
            contents,
        ))
    }
}

/// The stride matters only if there is a second block.
fn narrow_stride(count: u64, stride: i128) -> Result<i128, TypeError> {
    if count < 2 {
        Ok(0)
    } else {
        narrow(stride, "stride").map(i128::from)
    }
}

/// Displacements in extents as displacements in bytes.
fn scaled(displacements: &[i64], old: &Datatype) -> Result<Vec<i64>, TypeError> {
    let extent = i128::from(old.extent());
    displacements
        .iter()
        .map(|&d| narrow(i128::from(d) * extent, "displacement"))
        .collect()
}

/// The integers of a call with arrays: their common length, then the arrays.
fn listed(first: &[i64], second: &[i64]) -> Vec<i64> {
    std::iter::once(first.len() as i64)
        .chain(first.iter().copied())
        .chain(second.iter().copied())
        .collect()
}

fn same_length(argument: &'static str, length: usize, expected: usize) -> Result<(), TypeError> {
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
