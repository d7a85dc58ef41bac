// SPDX-License-Identifier: Apache-2.0
//! The type signature: which basics make up the packed stream, in order, without their places in memory.
//!
//! Like the layout it is nested loops: runs of one basic, repetitions, sequences; with the same bounds of memory and
//! depth (see the module `layout`). A pair such as MPI_FLOAT_INT counts as the two basics it is a structure of.

use std::sync::Arc;

use crate::basic::{Basic, Kind};
use crate::representation::Representation;

/// A sequence of basics.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    bytes: u64,
    elements: u64,
    body: Body,
}

#[derive(Clone, Debug, PartialEq)]
enum Body {
    /// The same basic again and again; how often says `elements`.
    Basics(Basic),
    /// `times` times another.
    Repeat(u64, Arc<Signature>),
    /// Others in order.
    Sequence(Arc<[Part]>),
}

#[derive(Clone, Debug, PartialEq)]
struct Part {
    first_byte: u64,
    first_element: u64,
    signature: Signature,
}

impl Signature {
    /// No basics at all.
    pub(crate) const EMPTY: Self = Self {
        bytes: 0,
        elements: 0,
        body: Body::Basics(Basic::Byte),
    };

    /// One value of a predefined type.
    pub(crate) fn of(basic: Basic) -> Self {
        let one = |basic: Basic| Self {
            bytes: basic.size() as u64,
            elements: 1,
            body: Body::Basics(basic),
        };
        match basic.kind() {
            Kind::Pair(value, index) => Self::sequence(vec![one(value), one(index)]),
            _ => one(basic),
        }
    }

    /// `times` times this. The bytes must fit 63 bits.
    pub(crate) fn repeated(&self, times: u64) -> Self {
        if times == 0 || self.bytes == 0 {
            return Self::EMPTY;
        }
        let body = match &self.body {
            _ if times == 1 => self.body.clone(),
            Body::Basics(basic) => Body::Basics(*basic),
            Body::Repeat(inner, of) => Body::Repeat(inner * times, of.clone()),
            Body::Sequence(_) => Body::Repeat(times, Arc::new(self.clone())),
        };
        Self {
            bytes: self.bytes * times,
            elements: self.elements * times,
            body,
        }
    }

    /// One after the other. The bytes must add up to less than 2^63.
    pub(crate) fn sequence(list: Vec<Self>) -> Self {
        let total: u64 = list.iter().map(|s| s.bytes).sum();
        let mut flat: Vec<Self> = Vec::new();
        for signature in list {
            match &signature.body {
                Body::Sequence(parts) if signature.bytes > total / 2 || parts.len() <= 4 => {
                    parts.iter().for_each(|p| append(&mut flat, p.signature.clone()));
                }
                _ => append(&mut flat, signature),
            }
        }
        if flat.len() < 2 {
            return flat.pop().unwrap_or(Self::EMPTY);
        }
        let (mut bytes, mut elements) = (0, 0);
        let part = |signature: Self| {
            let part = Part {
                first_byte: bytes,
                first_element: elements,
                signature,
            };
            bytes += part.signature.bytes;
            elements += part.signature.elements;
            part
        };
        let body = Body::Sequence(flat.into_iter().map(part).collect());
        Self { bytes, elements, body }
    }

    /// Appends to a list for [`Signature::sequence`]; equal neighbours become one.
    pub(crate) fn collect(list: &mut Vec<Self>, next: Self) {
        append(list, next);
    }

    /// Bytes in the representation of this process.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of basics.
    pub fn elements(&self) -> u64 {
        self.elements
    }

    /// The one basic that this consists of, if it is one.
    pub fn uniform(&self) -> Option<Basic> {
        match self.body {
            Body::Basics(basic) if self.elements > 0 => Some(basic),
            _ => None,
        }
    }

    /// Number of whole basics in the first `bytes` bytes of this signature repeated without end, and the bytes
    /// of one more that are left over (MPI_Get_elements answers MPI_UNDEFINED if there are any).
    pub fn elements_in(&self, bytes: u64) -> (u64, u64) {
        if self.bytes == 0 {
            return (0, bytes);
        }
        let (mut elements, mut bytes, mut here) = (0, bytes, self);
        loop {
            elements += bytes / here.bytes * here.elements;
            bytes %= here.bytes;
            if bytes == 0 {
                return (elements, 0);
            }
            match &here.body {
                Body::Basics(basic) => {
                    let size = basic.size() as u64;
                    return (elements + bytes / size, bytes % size);
                }
                Body::Repeat(_, of) => here = of,
                Body::Sequence(parts) => {
                    let part = &parts[parts.partition_point(|p| p.first_byte <= bytes) - 1];
                    elements += part.first_element;
                    bytes -= part.first_byte;
                    here = &part.signature;
                }
            }
        }
    }

    /// Bytes in another representation. Saturates: its basics may be wider, so what fits 63 bits here need not there.
    pub fn bytes_as(&self, representation: Representation) -> u64 {
        match &self.body {
            Body::Basics(basic) => self.elements.saturating_mul(representation.size(*basic) as u64),
            Body::Repeat(times, of) => times.saturating_mul(of.bytes_as(representation)),
            Body::Sequence(parts) => {
                let sizes = parts.iter().map(|p| p.signature.bytes_as(representation));
                sizes.fold(0, u64::saturating_add)
            }
        }
    }

    /// Bytes in another representation of the first `elements` basics of this signature repeated without end.
    pub fn prefix_as(&self, representation: Representation, elements: u64) -> u64 {
        if self.elements == 0 {
            return 0;
        }
        let (mut bytes, mut elements, mut here) = (0, elements, self);
        loop {
            bytes += elements / here.elements * here.bytes_as(representation);
            elements %= here.elements;
            if elements == 0 {
                return bytes;
            }
            match &here.body {
                Body::Basics(basic) => return bytes + elements * representation.size(*basic) as u64,
                Body::Repeat(_, of) => here = of,
                Body::Sequence(parts) => {
                    let last = parts.partition_point(|p| p.first_element <= elements) - 1;
                    let before = parts[..last].iter().map(|p| p.signature.bytes_as(representation));
                    bytes += before.sum::<u64>();
                    elements -= parts[last].first_element;
                    here = &parts[last].signature;
                }
            }
        }
    }

    /// As [`Signature::elements_in`], for bytes in another representation.
    pub fn elements_in_as(&self, representation: Representation, bytes: u64) -> (u64, u64) {
        if self.bytes_as(representation) == 0 {
            return (0, bytes);
        }
        let (mut elements, mut bytes, mut here) = (0, bytes, self);
        loop {
            let size = here.bytes_as(representation);
            elements += bytes / size * here.elements;
            bytes %= size;
            if bytes == 0 {
                return (elements, 0);
            }
            match &here.body {
                Body::Basics(basic) => {
                    let size = representation.size(*basic) as u64;
                    return (elements + bytes / size, bytes % size);
                }
                Body::Repeat(_, of) => here = of,
                Body::Sequence(parts) => {
                    let mut next = here;
                    for part in parts.iter() {
                        let size = part.signature.bytes_as(representation);
                        next = &part.signature;
                        if bytes < size {
                            break;
                        }
                        elements += part.signature.elements;
                        bytes -= size;
                    }
                    here = next;
                }
            }
        }
    }

    /// Gives every basic that occurs, some perhaps more than once. Time in proportion to the description, not to
    /// counts.
    pub fn basics(&self, give: &mut dyn FnMut(Basic)) {
        match &self.body {
            Body::Basics(basic) if self.elements > 0 => give(*basic),
            Body::Basics(_) => {}
            Body::Repeat(_, of) => of.basics(give),
            Body::Sequence(parts) => parts.iter().for_each(|p| p.signature.basics(give)),
        }
    }

    /// Gives `elements` basics from number `first` on of this signature repeated without end, as (basic, how many in a
    /// row).
    pub fn range(&self, first: u64, elements: u64, give: &mut dyn FnMut(Basic, u64)) {
        if self.elements == 0 {
            return;
        }
        let (mut skip, mut left) = (first % self.elements, elements);
        while left > 0 {
            let now = left.min(self.elements - skip);
            self.inside(skip, now, give);
            left -= now;
            skip = 0;
        }
    }

    /// Basics `skip .. skip + take` of one repetition.
    fn inside(&self, skip: u64, take: u64, give: &mut dyn FnMut(Basic, u64)) {
        match &self.body {
            Body::Basics(basic) => give(*basic, take),
            Body::Repeat(_, of) => of.range(skip, take, give),
            Body::Sequence(parts) => {
                let end = skip + take;
                let first = parts.partition_point(|p| p.first_element <= skip) - 1;
                for part in &parts[first..] {
                    if part.first_element >= end {
                        break;
                    }
                    let from = part.first_element.max(skip);
                    let to = (part.first_element + part.signature.elements).min(end);
                    part.signature.inside(from - part.first_element, to - from, give);
                }
            }
        }
    }

    /// Gives the basics in order as (basic, how many in a row). Rows of one basic may come in several pieces.
    pub fn each(&self, give: &mut dyn FnMut(Basic, u64)) {
        match &self.body {
            Body::Basics(basic) if self.elements > 0 => give(*basic, self.elements),
            Body::Basics(_) => {}
            Body::Repeat(times, of) => (0..*times).for_each(|_| of.each(give)),
            Body::Sequence(parts) => parts.iter().for_each(|p| p.signature.each(give)),
        }
    }
}

/// Appends and merges equal neighbours.
fn append(list: &mut Vec<Signature>, next: Signature) {
    if next.bytes == 0 {
        return;
    }
    if let (Some(last), Some(basic)) = (list.last_mut(), next.uniform()) {
        if last.uniform() == Some(basic) {
            last.bytes += next.bytes;
            last.elements += next.elements;
            return;
        }
    }
    list.push(next);
}
