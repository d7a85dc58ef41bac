// SPDX-License-Identifier: Apache-2.0
//! Which bytes of user memory a thread changes: no byte is lent twice. What a function of the program changes while it
//! is called is the program's affair, also where that function calls MPI.

use std::cell::Cell;

/// Most ranges that a thread has at once: a reduction of the program may call MPI_Reduce_local, and that another one.
const MOST: usize = 8;

/// Addresses: first and one behind the last.
type Range = (usize, usize);

/// The ranges that a thread has.
struct Ranges {
    /// Those before this one are the program's while a function of it is called.
    first: Cell<usize>,
    held: Cell<usize>,
    ranges: [Cell<Range>; MOST],
}

thread_local! {
    static OWN: Ranges = const {
        Ranges {
            first: Cell::new(0),
            held: Cell::new(0),
            ranges: [const { Cell::new((0, 0)) }; MOST],
        }
    };
}

/// Calls a function of the program, which may use what this thread has lent.
pub(super) fn to_program<R>(call: impl FnOnce() -> R) -> R {
    struct Back(usize);
    impl Drop for Back {
        fn drop(&mut self) {
            OWN.with(|own| own.first.set(self.0));
        }
    }
    let _back = OWN.with(|own| Back(own.first.replace(own.held.get())));
    call()
}

/// A range that this thread has, until it is dropped. Ranges are given back in the opposite order.
pub(super) struct Lent(std::marker::PhantomData<*const ()>);

impl Lent {
    /// Panics if the thread has one of the bytes, or too many ranges.
    #[inline]
    pub(super) fn new(first: usize, length: usize) -> Self {
        let range = (first, first + length);
        OWN.with(|own| {
            let held = own.held.get();
            if held > own.first.get() {
                own.expect_free(held, range);
            }
            if let Some(place) = own.ranges.get(held) {
                place.set(range);
            }
            own.held.set(held + 1);
        });
        Self(std::marker::PhantomData)
    }
}

impl Ranges {
    /// Panics if one of its first ranges has one of these bytes, or if there are too many.
    #[cold]
    #[inline(never)]
    fn expect_free(&self, held: usize, (first, end): Range) {
        assert!(held < MOST, "more than {MOST} ranges of memory are lent");
        let free = self.ranges[self.first.get()..held]
            .iter()
            .all(|range| range.get().0 >= end || range.get().1 <= first);
        assert!(free, "memory that is lent already");
    }
}

impl Drop for Lent {
    #[inline]
    fn drop(&mut self) {
        OWN.with(|own| own.held.set(own.held.get() - 1));
    }
}

#[cfg(test)]
mod tests {
    use super::{Lent, to_program};

    fn refused(first: usize, length: usize) -> bool {
        std::panic::catch_unwind(|| drop(Lent::new(first, length))).is_err()
    }

    #[test]
    fn no_byte_is_lent_twice() {
        let one = Lent::new(100, 10);
        assert!(refused(100, 10) && refused(109, 1) && refused(91, 10) && refused(0, 200));
        assert!(!refused(110, 10) && !refused(90, 10));
        drop(one);
        assert!(!refused(100, 10));
    }

    #[test]
    fn other_threads_have_other_bytes() {
        let _one = Lent::new(100, 10);
        std::thread::scope(|scope| scope.spawn(|| assert!(!refused(100, 10))).join()).expect("no panic");
    }

    #[test]
    fn functions_of_the_program_have_what_is_lent() {
        let _one = Lent::new(100, 10);
        to_program(|| {
            let _again = Lent::new(100, 10);
            assert!(refused(105, 1));
            to_program(|| assert!(!refused(105, 1)));
            assert!(refused(105, 1) && !refused(110, 1));
        });
        assert!(refused(105, 1));
        let panics = std::panic::catch_unwind(|| to_program(|| panic!("in the program")));
        assert!(panics.is_err() && refused(105, 1));
    }

    #[test]
    fn ranges_are_bounded() {
        let many: Vec<Lent> = (0..super::MOST).map(|i| Lent::new(100 + i, 1)).collect();
        assert!(refused(0, 1));
        many.into_iter().rev().for_each(drop);
        assert!(!refused(0, 1));
    }
}
