// SPDX-License-Identifier: Apache-2.0
//! Things with numbers that are never used twice for different things.

/// Number of the bell.
pub(super) const BELL: u64 = 0;
/// Number of the listener.
pub(super) const LISTENER: u64 = 1;
const FIRST: u64 = 2;

/// A number is an index and a generation, so that a late event for a closed descriptor finds nothing.
pub(super) struct Slots<T> {
    entries: Vec<(u32, Option<T>)>,
    free: Vec<usize>,
}

impl<T> Slots<T> {
    pub(super) fn new() -> Self {
        Self {
            entries: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(super) fn insert(&mut self, value: T) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push((0, None));
            self.entries.len() - 1
        });
        self.entries[index].1 = Some(value);
        number(index, self.entries[index].0)
    }

    pub(super) fn get(&self, number: u64) -> Option<&T> {
        let (index, generation) = split(number)?;
        self.entries.get(index).filter(|e| e.0 == generation)?.1.as_ref()
    }

    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let (index, generation) = split(number)?;
        self.entries.get_mut(index).filter(|e| e.0 == generation)?.1.as_mut()
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<T> {
        let (index, generation) = split(number)?;
        let entry = self.entries.get_mut(index).filter(|e| e.0 == generation)?;
        let value = entry.1.take()?;
        entry.0 = entry.0.wrapping_add(1);
        self.free.push(index);
        Some(value)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        self.entries
            .iter()
            .enumerate()
            .filter_map(|(i, (g, v))| Some((number(i, *g), v.as_ref()?)))
    }
}

fn number(index: usize, generation: u32) -> u64 {
    (u64::from(generation) << 32) | (index as u64 + FIRST)
}

fn split(number: u64) -> Option<(usize, u32)> {
    let index = (number & 0xffff_ffff).checked_sub(FIRST)?;
    Some((index as usize, (number >> 32) as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_names_one_thing_only() {
        let mut slots = Slots::new();
        let a = slots.insert("a");
        assert_eq!(slots.remove(a), Some("a"));
        let b = slots.insert("b");
        assert_ne!(a, b);
        assert_eq!((slots.remove(a), slots.get(a), slots.get(b)), (None, None, Some(&"b")));
        assert_eq!(slots.iter().count(), 1);
        assert!(slots.get(BELL).is_none() && slots.get_mut(LISTENER).is_none());
    }
}
