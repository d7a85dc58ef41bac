// SPDX-License-Identifier: Apache-2.0
//! Queues through one table: items are in a chain of a hash table and can leave it from anywhere in constant time.

/// No item.
pub(crate) const NONE: u32 = u32::MAX;

/// Both ends of a chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) first: u32,
    pub(crate) last: u32,
}

impl Ends {
    pub(crate) const EMPTY: Self = Self {
        first: NONE,
        last: NONE,
    };
}

/// Place of an item in one chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) next: u32,
    pub(crate) previous: u32,
}

impl Link {
    const UNLINKED: Self = Self {
        next: NONE,
        previous: NONE,
    };
}

/// An item that can be in `N` chains at once.
#[derive(Debug)]
struct Entry<T, const N: usize> {
    /// `None`: free; then `links[0].next` is the next free one.
    item: Option<T>,
    links: [Link; N],
}

/// The items of all chains.
#[derive(Debug)]
pub(crate) struct Items<T, const N: usize> {
    entries: Vec<Entry<T, N>>,
    free: u32,
    count: usize,
}

impl<T, const N: usize> Items<T, N> {
    pub(crate) fn new() -> Self {
        Self {
            entries: Vec::new(),
            free: NONE,
            count: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    #[inline]
    pub(crate) fn insert(&mut self, item: T) -> u32 {
        self.count += 1;
        if self.free == NONE {
            self.entries.push(Entry {
                item: Some(item),
                links: [Link::UNLINKED; N],
            });
            return (self.entries.len() - 1) as u32;
        }
        let at = self.free;
        let entry = &mut self.entries[at as usize];
        self.free = entry.links[0].next;
        *entry = Entry {
            item: Some(item),
            links: [Link::UNLINKED; N],
        };
        at
    }

    /// Takes an item out; it must not be in a chain any more.
    #[inline]
    pub(crate) fn remove(&mut self, at: u32) -> Option<T> {
        let entry = self.entries.get_mut(at as usize)?;
        let item = entry.item.take()?;
        entry.links[0].next = self.free;
        self.free = at;
        self.count -= 1;
        Some(item)
    }

    #[inline]
    pub(crate) fn get(&self, at: u32) -> Option<&T> {
        self.entries.get(at as usize)?.item.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, at: u32) -> Option<&mut T> {
        self.entries.get_mut(at as usize)?.item.as_mut()
    }

    #[inline]
    pub(crate) fn next(&self, at: u32, chain: usize) -> u32 {
        self.entries[at as usize].links[chain].next
    }

    pub(crate) fn indices(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.entries.len() as u32).filter(|&at| self.entries[at as usize].item.is_some())
    }

    /// Appends the item to the chain.
    #[inline]
    pub(crate) fn append(&mut self, at: u32, chain: usize, ends: &mut Ends) {
        self.entries[at as usize].links[chain] = Link {
            next: NONE,
            previous: ends.last,
        };
        match ends.last {
            NONE => ends.first = at,
            last => self.entries[last as usize].links[chain].next = at,
        }
        ends.last = at;
    }

    /// Takes the item out of the chain.
    #[inline]
    pub(crate) fn unlink(&mut self, at: u32, chain: usize, ends: &mut Ends) {
        let Link { next, previous } = self.entries[at as usize].links[chain];
        match previous {
            NONE => ends.first = next,
            p => self.entries[p as usize].links[chain].next = next,
        }
        match next {
            NONE => ends.last = previous,
            n => self.entries[n as usize].links[chain].previous = previous,
        }
    }
}

/// A hash table of chains; the number of chains is a power of two.
#[derive(Debug)]
pub(crate) struct Bins(Box<[Ends]>);

impl Bins {
    pub(crate) fn new(count: usize) -> Self {
        Self(vec![Ends::EMPTY; count.next_power_of_two()].into())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    #[inline]
    pub(crate) fn of(&self, hash: u32) -> &Ends {
        &self.0[hash as usize & (self.0.len() - 1)]
    }

    #[inline]
    pub(crate) fn of_mut(&mut self, hash: u32) -> &mut Ends {
        let mask = self.0.len() - 1;
        &mut self.0[hash as usize & mask]
    }
}
