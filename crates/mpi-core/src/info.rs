// SPDX-License-Identifier: Apache-2.0
//! Info objects (MPI 5.0 chapter 10): ordered key and value texts.

use crate::error::Result;
use crate::{fail, words};
use isthmus_abi::constants as abi;

/// Longest key without the terminator, bytes (`MPI_MAX_INFO_KEY` counts the terminator).
pub const MAX_KEY: usize = abi::MPI_MAX_INFO_KEY as usize - 1;
/// Longest value without the terminator, bytes.
pub const MAX_VALUE: usize = abi::MPI_MAX_INFO_VAL as usize - 1;

/// Keys and values in the order in which the keys were first set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Info {
    entries: Vec<(String, String)>,
}

impl Info {
    /// Sets a key, replacing its value.
    pub fn set(&mut self, key: &str, value: &str) -> Result<()> {
        check_key(key)?;
        if words::length(value) > MAX_VALUE {
            fail!(
                abi::MPI_ERR_INFO_VALUE,
                "value of key '{key}' has {} bytes, allowed are {MAX_VALUE}",
                words::length(value)
            );
        }
        match self.entries.iter_mut().find(|(k, _)| k == key) {
            Some((_, v)) => *v = value.to_owned(),
            None => self.entries.push((key.to_owned(), value.to_owned())),
        }
        Ok(())
    }

    /// Value of a key.
    pub fn get(&self, key: &str) -> Result<Option<&str>> {
        check_key(key)?;
        Ok(self.entries.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str()))
    }

    /// Removes a key; it must be there.
    pub fn delete(&mut self, key: &str) -> Result<()> {
        check_key(key)?;
        let Some(at) = self.entries.iter().position(|(k, _)| k == key) else {
            fail!(abi::MPI_ERR_INFO_NOKEY, "key '{key}' is not in the info object");
        };
        self.entries.remove(at);
        Ok(())
    }

    /// Sets all keys of another info.
    pub fn extend(&mut self, other: &Self) {
        for (key, value) in &other.entries {
            match self.entries.iter_mut().find(|(k, _)| k == key) {
                Some((_, v)) => v.clone_from(value),
                None => self.entries.push((key.clone(), value.clone())),
            }
        }
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True without keys.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The n-th key, from 0.
    pub fn nth_key(&self, n: usize) -> Result<&str> {
        match self.entries.get(n) {
            Some((k, _)) => Ok(k),
            None => fail!(
                abi::MPI_ERR_INFO_KEY,
                "key number {n} asked of an info object with {} keys",
                self.entries.len()
            ),
        }
    }
}

fn check_key(key: &str) -> Result<()> {
    if key.is_empty() || words::length(key) > MAX_KEY {
        fail!(
            abi::MPI_ERR_INFO_KEY,
            "a key of {} bytes, allowed are 1 to {MAX_KEY}",
            words::length(key)
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_their_order_and_values_can_change() {
        let mut info = Info::default();
        info.set("b", "1").unwrap();
        info.set("a", "2").unwrap();
        info.set("b", "3").unwrap();
        assert_eq!(
            (info.len(), info.nth_key(0).unwrap(), info.get("b").unwrap()),
            (2, "b", Some("3"))
        );
        info.delete("b").unwrap();
        assert_eq!(info.delete("b").unwrap_err().class, abi::MPI_ERR_INFO_NOKEY);
        assert_eq!(info.set("", "x").unwrap_err().class, abi::MPI_ERR_INFO_KEY);
        assert_eq!(info.nth_key(7).unwrap_err().class, abi::MPI_ERR_INFO_KEY);
    }
}
