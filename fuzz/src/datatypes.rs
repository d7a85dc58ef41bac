// SPDX-License-Identifier: Apache-2.0
//! Datatypes that another process has described.

use isthmus_datatype::describe::{from_bytes, to_bytes};
use isthmus_datatype::{Basic, Datatype, Distribution, Order, Parametric, TypeError};

/// What comes out can be described again, and is the same then.
pub(crate) fn described(bytes: &[u8]) {
    let Ok(ty) = from_bytes(bytes) else { return };
    // Types that are made of thousands may be too long in other words.
    let Ok(again) = to_bytes(&ty) else { return };
    let there = match from_bytes(&again) {
        Ok(there) => there,
        Err(error) => panic!("{error}: {again:?}"),
    };
    let what = |ty: &Datatype| (ty.size(), ty.extent(), ty.lower_bound(), ty.window(3), ty.contiguous(2));
    assert_eq!(what(&ty), what(&there));
    assert!(ty.signature() == there.signature());
}

/// One of each combiner, alone and upon each other.
pub(crate) fn types() -> Vec<Vec<u8>> {
    let int = Datatype::of(Basic::Int);
    let one = one_of_each(&int).unwrap_or_default();
    let two = one.iter().flat_map(|ty| one_of_each(ty).unwrap_or_default());
    let all = one.iter().cloned().chain(two);
    let large = one.iter().map(|ty| ty.clone().large());
    let all = all
        .chain(large)
        .chain(isthmus_datatype::ALL.iter().map(|&basic| Datatype::of(basic)));
    all.filter_map(|ty| to_bytes(&ty).ok()).collect()
}

fn one_of_each(old: &Datatype) -> Result<Vec<Datatype>, TypeError> {
    let double = Datatype::of(Basic::DoubleInt);
    let cyclic = [Distribution::Cyclic(Some(2)), Distribution::Block(None)];
    // As the ABI numbers them.
    let given: [&[i64]; 2] = [
        &[
            i64::from(isthmus_abi::constants::MPI_DISTRIBUTE_CYCLIC),
            i64::from(isthmus_abi::constants::MPI_DISTRIBUTE_BLOCK),
        ],
        &[2, i64::from(isthmus_abi::constants::MPI_DISTRIBUTE_DFLT_DARG)],
    ];
    let mut all = vec![
        Datatype::dup(old),
        Datatype::contiguous_type(3, old)?,
        Datatype::vector(3, 2, -4, old)?,
        Datatype::hvector(2, 1, 100, old)?,
        Datatype::indexed(&[1, 0, 3], &[0, 9, 5], old)?,
        Datatype::hindexed(&[2, 1], &[-8, 64], old)?,
        Datatype::indexed_block(2, &[7, 0, 3], old)?,
        Datatype::hindexed_block(1, &[7, 0], old)?,
        Datatype::structure(&[1, 2], &[0, 48], &[old.clone(), double])?,
        Datatype::resized(old, -4, 400)?,
        Datatype::subarray(&[4, 5], &[2, 3], &[1, 2], Order::Fortran, old)?,
        Datatype::darray(3, &[9, 4], &cyclic, given, &[2, 2], Order::C, old)?,
    ];
    let chosen = [
        Parametric::Real {
            precision: Some(6),
            range: None,
        },
        Parametric::Complex {
            precision: None,
            range: Some(300),
        },
        Parametric::Integer { range: 9 },
    ];
    let undefined = i64::from(isthmus_abi::constants::MPI_UNDEFINED);
    all.extend(chosen.into_iter().filter_map(|wish| wish.datatype(undefined)));
    Ok(all)
}
