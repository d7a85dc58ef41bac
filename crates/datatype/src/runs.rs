// SPDX-License-Identifier: Apache-2.0
//! Where the data of a datatype lie, for those who store them elsewhere than in memory: views of files.

use crate::Datatype;
use crate::walk::{Mover, walk};

struct Give<'a>(&'a mut dyn FnMut(i64, u64));

impl Mover for Give<'_> {
    fn run(&mut self, at: i64, length: usize) {
        (self.0)(at, length as u64);
    }
}

impl Datatype {
    /// Gives the runs `(offset from the origin, length)`, in bytes, of `take` bytes from byte `skip` on of the packed
    /// stream of one element, in the order of the stream. What lies behind the end of the element is left out.
    pub fn runs(&self, skip: u64, take: u64, give: &mut dyn FnMut(i64, u64)) {
        let take = take.min(self.size().saturating_sub(skip));
        if let Some(layout) = self.layout() {
            walk(layout, 0, skip, take, &mut Give(give));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Basic, Datatype};

    #[test]
    fn runs_are_those_of_the_type_map() {
        let int = Datatype::of(Basic::Int32);
        let vector = Datatype::vector(3, 2, 4, &int).unwrap();
        let mut all = Vec::new();
        vector.runs(4, 12, &mut |at, length| all.push((at, length)));
        assert_eq!(all, [(4, 4), (16, 8)]);
        all.clear();
        vector.runs(20, 100, &mut |at, length| all.push((at, length)));
        assert_eq!(all, [(36, 4)], "cut at the end of the element");
    }
}
