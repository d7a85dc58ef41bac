// SPDX-License-Identifier: Apache-2.0
//! How a datatype was made: what MPI_Type_get_envelope and MPI_Type_get_contents tell (MPI 5.0, section 5.1.13).

/// Which call made a datatype; the discriminant is the value of the ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
#[expect(missing_docs, reason = "the names are those of the standard, MPI_COMBINER_...")]
pub enum Combiner {
    Named = 101,
    Dup = 102,
    Contiguous = 103,
    Vector = 104,
    Hvector = 105,
    Indexed = 106,
    Hindexed = 107,
    IndexedBlock = 108,
    HindexedBlock = 109,
    Struct = 110,
    Subarray = 111,
    Darray = 112,
    F90Real = 113,
    F90Complex = 114,
    F90Integer = 115,
    Resized = 116,
    ValueIndex = 117,
}

/// The arguments of the call, in the order in which MPI_Type_get_contents returns them, some of them datatypes `T`.
#[derive(Clone, Debug)]
pub struct ContentsOf<T> {
    /// Which call.
    pub combiner: Combiner,
    /// Arguments of type int.
    pub integers: Box<[i64]>,
    /// Arguments of type MPI_Aint.
    pub addresses: Box<[i64]>,
    /// Arguments of type MPI_Count; empty unless the large-count version of the call was used.
    pub counts: Box<[i64]>,
    /// Arguments of type MPI_Datatype.
    pub types: Box<[T]>,
}

impl<T> ContentsOf<T> {
    pub(crate) fn new(combiner: Combiner, integers: Vec<i64>, addresses: Vec<i64>, types: Vec<T>) -> Self {
        Self {
            combiner,
            integers: integers.into(),
            addresses: addresses.into(),
            counts: Box::default(),
            types: types.into(),
        }
    }

    /// The same call in its large-count version: what was int or MPI_Aint is MPI_Count, but for what counts dimensions
    /// or names an order (subarray, darray).
    pub(crate) fn large(self) -> Self {
        let small = |at: usize, all: usize| match self.combiner {
            Combiner::Subarray => at == 0 || at == all - 1,
            // size, rank, ndims, ndims sizes, then three lists and the order: only the sizes are counts.
            Combiner::Darray => !(3..3 + self.integers[2] as usize).contains(&at),
            _ => false,
        };
        let all = self.integers.len();
        let (integers, counts): (Vec<_>, Vec<_>) = self.integers.iter().enumerate().partition(|(i, _)| small(*i, all));
        let plain = |list: Vec<(usize, &i64)>| list.into_iter().map(|(_, v)| *v).collect::<Vec<i64>>();
        let counts = plain(counts)
            .into_iter()
            .chain(self.addresses.iter().copied())
            .collect();
        Self {
            integers: plain(integers).into(),
            addresses: Box::default(),
            counts,
            ..self
        }
    }
}
