// SPDX-License-Identifier: Apache-2.0
//! Datatypes that a target keeps, so that each travels once. The origin decides which, within bounds that the target
//! holds it to.

use isthmus_core::error::Result;
use isthmus_datatype::Datatype;
use isthmus_datatype::describe::{from_bytes, to_bytes};
use isthmus_wire::rma::{MOST_TYPE_BYTES, MOST_TYPES};

/// What an origin knows of the types that a target keeps.
#[derive(Default)]
pub(crate) struct TypesAtTarget {
    /// By number, from 1 on, with their descriptions.
    known: Vec<(Datatype, Box<[u8]>)>,
    /// The one that makes room next.
    next: usize,
}

/// How an operation names a type.
pub(crate) struct Name {
    /// By which the target keeps it; 0: it does not.
    pub(crate) number: u16,
    /// Its description, if it has to go there.
    pub(crate) described: Box<[u8]>,
}

impl TypesAtTarget {
    /// How an operation names a type.
    pub(crate) fn name(&mut self, datatype: &Datatype) -> Result<Name> {
        let named = |at: usize| Name {
            number: at as u16 + 1,
            described: Box::default(),
        };
        if let Some(at) = self.known.iter().position(|(known, _)| known.is(datatype)) {
            return Ok(named(at));
        }
        let bytes: Box<[u8]> = to_bytes(datatype)?.into();
        if let Some(at) = self.known.iter().position(|(_, known)| *known == bytes) {
            // Programs make equal types again and again; the latest is likely to be used next.
            self.known[at].0 = datatype.clone();
            return Ok(named(at));
        }
        let at = self.next % usize::from(MOST_TYPES);
        let others = self.known.iter().enumerate().filter(|&(other, _)| other != at);
        if others.map(|(_, (_, known))| known.len()).sum::<usize>() + bytes.len() > MOST_TYPE_BYTES {
            return Ok(Name {
                number: 0,
                described: bytes,
            });
        }
        let entry = (datatype.clone(), bytes.clone());
        match self.known.get_mut(at) {
            Some(place) => *place = entry,
            None => self.known.push(entry),
        }
        self.next = at + 1;
        Ok(Name {
            described: bytes,
            ..named(at)
        })
    }
}

/// The types of an origin at a target, with the bytes of their descriptions.
#[derive(Default)]
pub(crate) struct TypesOfOrigin(Vec<Option<(Datatype, usize)>>);

impl TypesOfOrigin {
    /// The type that an operation names; an error: no honest process names it so.
    pub(crate) fn find(&mut self, number: u16, bytes: &[u8]) -> std::result::Result<Datatype, &'static str> {
        let place = usize::from(number).checked_sub(1);
        if let (Some(place), true) = (place, bytes.is_empty()) {
            let known = self.0.get(place).and_then(Option::as_ref);
            let known = known.ok_or("an operation on a window with a datatype that it has not described")?;
            return Ok(known.0.clone());
        }
        let none = "an operation on a window with a datatype that is none";
        let datatype = from_bytes(bytes).map_err(|_| none)?;
        if let Some(place) = place {
            self.0.resize_with(self.0.len().max(place + 1), || None);
            self.0[place] = Some((datatype.clone(), bytes.len()));
            if self.0.iter().flatten().map(|(_, bytes)| bytes).sum::<usize>() > MOST_TYPE_BYTES {
                return Err("more datatypes to keep for a window than it may");
            }
        }
        Ok(datatype)
    }
}

#[cfg(test)]
mod tests {
    use isthmus_datatype::Basic;

    use super::*;

    #[test]
    fn a_type_is_described_once_and_old_ones_make_room() {
        let (mut told, mut kept) = (TypesAtTarget::default(), TypesOfOrigin::default());
        let byte = Datatype::of(Basic::Byte);
        let all: Vec<_> = (0..20)
            .map(|length| Datatype::vector(3, 1 + length, 40, &byte).expect("a type"))
            .collect();
        for round in 0..3 {
            for (at, ty) in all.iter().enumerate() {
                let Name {
                    number,
                    described: bytes,
                } = told.name(ty).expect("named");
                assert!(!bytes.is_empty(), "{round}, {at}");
                assert_eq!(kept.find(number, &bytes).map(|ty| ty.size()), Ok(ty.size()));
                let again = Datatype::vector(3, 1 + at as i64, 40, &byte).expect("a type");
                let Name {
                    number: same,
                    described: bytes,
                } = told.name(&again).expect("named");
                assert!(same == number && bytes.is_empty());
                assert_eq!(kept.find(same, &bytes).map(|ty| ty.size()), Ok(ty.size()));
            }
        }
    }

    #[test]
    fn long_descriptions_are_kept_within_their_bound() {
        let (mut told, mut kept) = (TypesAtTarget::default(), TypesOfOrigin::default());
        let byte = Datatype::of(Basic::Byte);
        let long = |seed: i64| {
            let places: Vec<i64> = (0..40_000).map(|at| 3 * at + seed).collect();
            Datatype::indexed(&vec![1; places.len()], &places, &byte).expect("a type")
        };
        let mut unkept = 0;
        for seed in 0..10 {
            let ty = long(seed);
            let Name {
                number,
                described: bytes,
            } = told.name(&ty).expect("named");
            unkept += u32::from(number == 0);
            assert_eq!(kept.find(number, &bytes).map(|ty| ty.size()), Ok(40_000), "{seed}");
        }
        assert!((1..10).contains(&unkept), "{unkept}");
        let bytes = to_bytes(&long(99)).expect("short");
        assert!(
            (1..=MOST_TYPES).any(|number| kept.find(number, &bytes).is_err()),
            "a liar"
        );
        assert!(TypesOfOrigin::default().find(1, &[]).is_err() && TypesOfOrigin::default().find(0, &[]).is_err());
    }
}
