// SPDX-License-Identifier: Apache-2.0
//! The values that this room keeps in its own tables are those of the ABI.

use isthmus_abi::{constants as c, handles as h};
use isthmus_datatype::op::Predefined;
use isthmus_datatype::{ALL, Basic, Combiner};

#[test]
fn every_datatype_of_the_abi_is_a_basic_with_its_name() {
    let null = h::MPI_DATATYPE_NULL.0;
    for (name, handle) in h::DATATYPES.iter().filter(|(_, handle)| handle.0 != null) {
        let basic = Basic::from_handle(handle.0 as u32).unwrap_or_else(|| panic!("{name} is missing"));
        let aliases = ["MPI_LONG_LONG", "MPI_C_FLOAT_COMPLEX"];
        assert!(
            basic.name() == *name || aliases.contains(name),
            "{name} is {}",
            basic.name()
        );
    }
    for basic in ALL {
        assert!(
            h::DATATYPES.iter().any(|(_, handle)| handle.0 as u32 == basic.handle()),
            "{}",
            basic.name()
        );
    }
}

#[test]
fn operations_have_the_handles_of_the_abi() {
    for op in Predefined::ALL {
        assert_eq!(Predefined::from_handle(op.handle()), Some(op));
    }
    let some = [
        (Predefined::Sum, h::MPI_SUM),
        (Predefined::Maxloc, h::MPI_MAXLOC),
        (Predefined::NoOp, h::MPI_NO_OP),
    ];
    for (op, handle) in some {
        assert_eq!(op.handle() as usize, handle.0);
    }
}

#[test]
fn combiners_have_the_values_of_the_abi() {
    let all = [
        (Combiner::Named, c::MPI_COMBINER_NAMED),
        (Combiner::Dup, c::MPI_COMBINER_DUP),
        (Combiner::Contiguous, c::MPI_COMBINER_CONTIGUOUS),
        (Combiner::Vector, c::MPI_COMBINER_VECTOR),
        (Combiner::Hvector, c::MPI_COMBINER_HVECTOR),
        (Combiner::Indexed, c::MPI_COMBINER_INDEXED),
        (Combiner::Hindexed, c::MPI_COMBINER_HINDEXED),
        (Combiner::IndexedBlock, c::MPI_COMBINER_INDEXED_BLOCK),
        (Combiner::HindexedBlock, c::MPI_COMBINER_HINDEXED_BLOCK),
        (Combiner::Struct, c::MPI_COMBINER_STRUCT),
        (Combiner::Subarray, c::MPI_COMBINER_SUBARRAY),
        (Combiner::Darray, c::MPI_COMBINER_DARRAY),
        (Combiner::F90Real, c::MPI_COMBINER_F90_REAL),
        (Combiner::F90Complex, c::MPI_COMBINER_F90_COMPLEX),
        (Combiner::F90Integer, c::MPI_COMBINER_F90_INTEGER),
        (Combiner::Resized, c::MPI_COMBINER_RESIZED),
        (Combiner::ValueIndex, c::MPI_COMBINER_VALUE_INDEX),
    ];
    for (combiner, value) in all {
        assert_eq!(combiner as i32, value, "{combiner:?}");
    }
}
