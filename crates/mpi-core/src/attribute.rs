// SPDX-License-Identifier: Apache-2.0
//! Attribute caching (MPI 5.0 section 7.7): keys with callbacks, values on objects.
//!
//! The callbacks come from C as boxed closures made in the room `mpi`. They are never called with a
//! lock of ours held, because they may call MPI.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use isthmus_abi::constants as abi;

use crate::error::Result;
use crate::fail;

/// Copies a value when its object is duplicated: (handle of the old object, key, value) to the new value, or none.
pub type Copy = Box<dyn Fn(usize, i32, usize) -> Result<Option<usize>> + Send + Sync>;
/// Called when a value is deleted or replaced or its object freed: (handle, key, value).
pub type Delete = Box<dyn Fn(usize, i32, usize) -> Result<()> + Send + Sync>;

/// First number of a key made by the program; smaller ones are predefined.
pub const FIRST_USER_KEY: i32 = 1024;

/// A key made by the program.
pub struct Key {
    /// Its number, as the program sees it.
    pub number: i32,
    copy: Copy,
    delete: Delete,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key({})", self.number)
    }
}

/// What keys are for. Each kind has numbers of its own, so that a key of another kind is told and not taken for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Communicators.
    Comm,
    /// Datatypes.
    Type,
    /// Windows.
    Win,
}

/// How many kinds there are.
const OWNERS: i32 = 3;

impl Owner {
    /// Whose key a number is.
    fn of(number: i32) -> Option<Self> {
        let above = number.checked_sub(FIRST_USER_KEY).filter(|above| *above >= 0)?;
        [Self::Comm, Self::Type, Self::Win]
            .get((above % OWNERS) as usize)
            .copied()
    }

    fn first(self) -> i32 {
        FIRST_USER_KEY + self as i32
    }

    /// What they are called, and in functions.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Comm => ("communicators", "Comm"),
            Self::Type => ("datatypes", "Type"),
            Self::Win => ("windows", "Win"),
        }
    }
}

/// All keys of one kind of object. A freed key lives on in the objects that have a value for it; its number is not used
/// again.
#[derive(Debug)]
pub struct Keys {
    owner: Owner,
    table: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    next: i32,
    /// Freed ones while objects have values for them.
    keys: BTreeMap<i32, Entry>,
}

#[derive(Debug)]
enum Entry {
    Usable(Arc<Key>),
    Freed(Weak<Key>),
}

impl Keys {
    /// An empty registry.
    pub const fn new(owner: Owner) -> Self {
        Self {
            owner,
            table: Mutex::new(Table {
                next: FIRST_USER_KEY + owner as i32,
                keys: BTreeMap::new(),
            }),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a key.
    pub fn create(&self, copy: Copy, delete: Delete) -> i32 {
        let mut table = self.table();
        // Seven hundred million keys later the first numbers come again, if they are free.
        while table.keys.contains_key(&table.next) {
            table.advance(self.owner);
        }
        let number = table.next;
        table.advance(self.owner);
        let key = Arc::new(Key { number, copy, delete });
        table.keys.insert(number, Entry::Usable(key));
        number
    }

    /// The key with this number, if it may be given new values.
    pub fn usable(&self, number: i32) -> Result<Arc<Key>> {
        match self.table().keys.get(&number) {
            Some(Entry::Usable(key)) => Ok(key.clone()),
            Some(Entry::Freed(_)) => fail!(
                abi::MPI_ERR_KEYVAL,
                argument("keyval"),
                "is {number}, which has been freed"
            ),
            None => unknown(self.owner, number),
        }
    }

    /// The key with this number, also if it was freed but there are values that have it.
    pub fn find(&self, number: i32) -> Result<Arc<Key>> {
        let found = match self.table().keys.get(&number) {
            Some(Entry::Usable(key)) => Some(key.clone()),
            Some(Entry::Freed(key)) => key.upgrade(),
            None => None,
        };
        found.map_or_else(|| unknown(self.owner, number), Ok)
    }

    /// Frees a key; values that have it stay until they are deleted. As long as there are such values it may be freed
    /// again, through another copy of its number.
    pub fn free(&self, number: i32) -> Result<()> {
        let mut table = self.table();
        let key = match table.keys.get(&number) {
            Some(Entry::Usable(key)) => Arc::downgrade(key),
            Some(Entry::Freed(key)) if key.strong_count() > 0 => return Ok(()),
            _ => return unknown(self.owner, number),
        };
        table.keys.remove(&number);
        table.keys.retain(|_, entry| match entry {
            Entry::Usable(_) => true,
            Entry::Freed(key) => key.strong_count() > 0,
        });
        if key.strong_count() > 0 {
            table.keys.insert(number, Entry::Freed(key));
        }
        Ok(())
    }
}

fn unknown<T>(wanted: Owner, number: i32) -> Result<T> {
    if let Some(other) = Owner::of(number).filter(|owner| *owner != wanted) {
        let ((those, _), (these, function)) = (other.names(), wanted.names());
        fail!(
            abi::MPI_ERR_KEYVAL,
            argument("keyval"),
            "is {number}, which can only be a key for {those}; MPI_{function}_create_keyval makes keys for {these}"
        );
    }
    fail!(
        abi::MPI_ERR_KEYVAL,
        argument("keyval"),
        "is {number}, which is not a key that this program has made"
    )
}

impl Table {
    fn advance(&mut self, owner: Owner) {
        self.next = self.next.checked_add(OWNERS).unwrap_or_else(|| owner.first());
    }
}

/// The values on one object, in the order in which they were first set.
#[derive(Clone, Debug, Default)]
pub struct Attributes {
    values: Vec<(Arc<Key>, usize)>,
}

impl Attributes {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

/// Where an object keeps its attributes; the callbacks run outside the lock.
pub type Cache = Mutex<Attributes>;

fn locked<R>(cache: &Cache, with: impl FnOnce(&mut Attributes) -> R) -> R {
    with(&mut cache.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The value for a key.
pub fn get(cache: &Cache, number: i32) -> Option<usize> {
    locked(cache, |a| {
        a.values.iter().find(|(k, _)| k.number == number).map(|(_, v)| *v)
    })
}

/// Sets a value; the delete callback of the key sees the old one first, and may refuse.
pub fn set(cache: &Cache, handle: usize, key: &Arc<Key>, value: usize) -> Result<()> {
    if let Some(old) = get(cache, key.number) {
        (key.delete)(handle, key.number, old)?;
    }
    locked(cache, |a| {
        match a.values.iter_mut().find(|(k, _)| Arc::ptr_eq(k, key)) {
            Some((_, v)) => *v = value,
            None => a.values.push((key.clone(), value)),
        }
    });
    Ok(())
}

/// Deletes a value. The key may have been freed already.
pub fn delete(cache: &Cache, handle: usize, number: i32) -> Result<bool> {
    let found = locked(cache, |a| a.values.iter().find(|(k, _)| k.number == number).cloned());
    let Some((key, value)) = found else { return Ok(false) };
    (key.delete)(handle, number, value)?;
    locked(cache, |a| a.values.retain(|(k, _)| !Arc::ptr_eq(k, &key)));
    Ok(true)
}

/// Deletes all values, the newest first, when the object is freed. Stops at the first refusal.
pub fn delete_all(cache: &Cache, handle: usize) -> Result<()> {
    while let Some((key, value)) = locked(cache, |a| a.values.last().cloned()) {
        (key.delete)(handle, key.number, value)?;
        locked(cache, |a| a.values.retain(|(k, _)| !Arc::ptr_eq(k, &key)));
    }
    Ok(())
}

/// Deletes all values, the newest first, of an object that goes whatever a callback says. The first refusal is told.
pub fn delete_all_at_end(cache: &Cache, handle: usize) -> Result<()> {
    let mut told = Ok(());
    while let Some((key, value)) = locked(cache, |a| a.values.last().cloned()) {
        let deleted = (key.delete)(handle, key.number, value);
        told = told.and(deleted);
        locked(cache, |a| a.values.retain(|(k, _)| !Arc::ptr_eq(k, &key)));
    }
    told
}

/// The values that a duplicate of the object gets.
pub fn duplicate(cache: &Cache, handle: usize) -> Result<Attributes> {
    let mut copies = Attributes::default();
    for (key, value) in locked(cache, |a| a.values.clone()) {
        if let Some(copy) = (key.copy)(handle, key.number, value)? {
            copies.values.push((key, copy));
        }
    }
    Ok(copies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_follow_their_callbacks() {
        let keys = Keys::new(Owner::Comm);
        let deleted = Arc::new(Mutex::new(Vec::new()));
        let log = deleted.clone();
        let double = keys.create(
            Box::new(|_, _, v| Ok(Some(v * 2))),
            Box::new(move |_, _, v| {
                log.lock().unwrap().push(v);
                Ok(())
            }),
        );
        let stays = keys.create(Box::new(|_, _, _| Ok(None)), Box::new(|_, _, _| fail!(5, "no")));
        let cache = Cache::default();
        set(&cache, 0, &keys.find(double).unwrap(), 21).unwrap();
        set(&cache, 0, &keys.find(double).unwrap(), 22).unwrap();
        set(&cache, 0, &keys.find(stays).unwrap(), 1).unwrap();
        let copy = Cache::new(duplicate(&cache, 0).unwrap());
        assert_eq!((get(&copy, double), get(&copy, stays)), (Some(44), None));
        assert!(delete(&cache, 0, stays).is_err());
        keys.free(double).unwrap();
        assert!(keys.usable(double).is_err() && keys.find(double).is_ok());
        keys.free(double).unwrap();
        assert!(delete(&cache, 0, double).unwrap());
        assert!(delete(&copy, 0, double).unwrap());
        assert!(
            keys.free(double).is_err() && keys.find(double).is_err(),
            "no value has it any more"
        );
        assert_eq!(*deleted.lock().unwrap(), vec![21, 22, 44]);
        let other = keys.create(Box::new(|_, _, _| Ok(None)), Box::new(|_, _, _| Ok(())));
        assert!(other > stays && get(&cache, other).is_none());
        // Keys of other kinds have other numbers.
        let of_types = Keys::new(Owner::Type);
        let theirs = of_types.create(Box::new(|_, _, _| Ok(None)), Box::new(|_, _, _| Ok(())));
        let refused = keys.usable(theirs).unwrap_err();
        assert!(refused.message.contains("can only be a key for datatypes"), "{refused}");
        assert!(of_types.usable(theirs).is_ok() && of_types.usable(other).is_err());
    }
}
