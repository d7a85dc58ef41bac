// SPDX-License-Identifier: Apache-2.0
//! The limit on the size of files, which counts for shared memory too.

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// Whether this process may make a file so long (`ulimit -f`). The system's answer would be a signal, which ends the
/// program.
pub fn within_size_limit(bytes: u64) -> Result<(), Errno> {
    match getrlimit(Resource::Fsize).current {
        Some(limit) if limit < bytes => Err(Errno::FBIG),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{Rlimit, setrlimit};

    use super::*;

    #[test]
    fn the_limit_itself_is_allowed() {
        let before = getrlimit(Resource::Fsize);
        let most = before.maximum.unwrap_or(u64::MAX).min(1 << 40);
        let limit = Rlimit {
            current: Some(most),
            maximum: before.maximum,
        };
        setrlimit(Resource::Fsize, limit).expect("a lower limit");
        let answers = [0, most, most + 1, u64::MAX].map(within_size_limit);
        setrlimit(Resource::Fsize, before).expect("the limit as it was");
        assert_eq!(answers, [Ok(()), Ok(()), Err(Errno::FBIG), Err(Errno::FBIG)]);
    }
}
