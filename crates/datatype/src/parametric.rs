// SPDX-License-Identifier: Apache-2.0
//! Datatypes that are chosen by precision and range (MPI 5.0 section 19.1.9): Fortran's parametrized types.

use crate::{Basic, Combiner, Contents, Datatype};

/// Which of the three constructors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Parametric {
    /// `SELECTED_REAL_KIND(p, r)`; `None`: any.
    Real {
        /// Decimal digits.
        precision: Option<u32>,
        /// Decimal exponent.
        range: Option<u32>,
    },
    /// The complex type of such reals.
    Complex {
        /// Decimal digits.
        precision: Option<u32>,
        /// Decimal exponent.
        range: Option<u32>,
    },
    /// `SELECTED_INT_KIND(r)`
    Integer {
        /// Decimal digits.
        range: u32,
    },
}

/// Decimal digits and decimal exponent of the formats of IEEE 754.
const REALS: [(u32, u32, Basic, Basic); 3] = [
    (6, 37, Basic::Real4, Basic::Complex8),
    (15, 307, Basic::Real8, Basic::Complex16),
    (33, 4931, Basic::Real16, Basic::Complex32),
];

const INTEGERS: [(u32, Basic); 5] = [
    (2, Basic::Integer1),
    (4, Basic::Integer2),
    (9, Basic::Integer4),
    (18, Basic::Integer8),
    (38, Basic::Integer16),
];

impl Parametric {
    /// The smallest basic that has what is asked for; `None`: there is none.
    pub fn basic(self) -> Option<Basic> {
        let real = |precision: Option<u32>, range: Option<u32>| {
            let (p, r) = (precision.unwrap_or(0), range.unwrap_or(0));
            REALS
                .iter()
                .find(|(digits, exponent, ..)| p <= *digits && r <= *exponent)
        };
        match self {
            Self::Real { precision, range } => real(precision, range).map(|(_, _, real, _)| *real),
            Self::Complex { precision, range } => real(precision, range).map(|(_, _, _, complex)| *complex),
            Self::Integer { range } => INTEGERS.iter().find(|(digits, _)| range <= *digits).map(|(_, b)| *b),
        }
    }

    /// How it is made; `undefined` stands for `None`.
    fn contents(self, undefined: i64) -> Contents {
        let number = |n: Option<u32>| n.map_or(undefined, i64::from);
        let (combiner, integers) = match self {
            Self::Real { precision, range } => (Combiner::F90Real, vec![number(precision), number(range)]),
            Self::Complex { precision, range } => (Combiner::F90Complex, vec![number(precision), number(range)]),
            Self::Integer { range } => (Combiner::F90Integer, vec![i64::from(range)]),
        };
        Contents::new(combiner, integers, vec![], vec![])
    }

    /// The datatype; `undefined` is what its contents have for what was not asked for.
    pub fn datatype(self, undefined: i64) -> Option<Datatype> {
        Some(Datatype::of(self.basic()?).made_by(self.contents(undefined)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_that_is_enough() {
        let real = |precision, range| Parametric::Real { precision, range }.basic();
        assert_eq!(real(Some(6), Some(37)), Some(Basic::Real4));
        assert_eq!(real(Some(6), Some(38)), Some(Basic::Real8));
        assert_eq!(real(None, Some(307)), Some(Basic::Real8));
        assert_eq!(real(Some(16), None), Some(Basic::Real16));
        assert_eq!(real(Some(34), None), None);
        assert_eq!(Parametric::Integer { range: 9 }.basic(), Some(Basic::Integer4));
        assert_eq!(Parametric::Integer { range: 39 }.basic(), None);
        let complex = Parametric::Complex {
            precision: Some(15),
            range: None,
        };
        assert_eq!(complex.basic(), Some(Basic::Complex16));
    }

    #[test]
    fn they_know_how_they_were_made_and_what_they_are() {
        let Some(ty) = (Parametric::Real {
            precision: Some(6),
            range: None,
        })
        .datatype(-7) else {
            panic!("there is such a type")
        };
        assert_eq!(ty.contents().combiner, Combiner::F90Real);
        assert_eq!(*ty.contents().integers, [6, -7]);
        assert_eq!(ty.basic(), Some(Basic::Real4));
    }
}
