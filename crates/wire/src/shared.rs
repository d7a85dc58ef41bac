// SPDX-License-Identifier: Apache-2.0
//! Directories and files that processes of other sites reach, as they travel to the processes that open them.
//!
//! ```text
//!  | number u32 | paths, each: length u32, bytes |
//! ```

use crate::codec::{DecodeError, Reader, Writer};

/// Most of them.
pub const MOST: usize = 16 << 10;
/// Longest path, bytes.
pub const LONGEST: usize = 4096;

/// Appends them to a message. What is too much is left out: then others reach less.
pub(crate) fn write(w: &mut Writer, paths: &[String]) {
    let fits = paths.iter().filter(|path| path.len() <= LONGEST);
    let fits: Vec<&String> = fits.take(MOST).collect();
    w.list(&fits, |w, path| {
        w.text(path);
    });
}

/// Reads them from a message.
pub(crate) fn read(r: &mut Reader<'_>) -> Result<Vec<String>, DecodeError> {
    let field = "what others reach";
    let paths = r.list(field, |r| r.text(field))?;
    let longest = paths.iter().map(String::len).max().unwrap_or(0);
    match paths.len() > MOST || longest > LONGEST {
        true => Err(DecodeError::Invalid {
            field,
            value: paths.len().max(longest) as u64,
        }),
        false => Ok(paths),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn travelled(paths: &[String], fill: impl Fn(&mut Writer, &[String])) -> Result<Vec<String>, DecodeError> {
        let mut w = Writer::new(1);
        fill(&mut w, paths);
        let body = w.into_body();
        let mut r = Reader::new(&body);
        r.u8("kind")?;
        let read = read(&mut r)?;
        r.end()?;
        Ok(read)
    }

    #[test]
    fn what_travels_is_bounded_at_both_ends() {
        let unchecked = |w: &mut Writer, paths: &[String]| {
            w.list(paths, |w, path| {
                w.text(path);
            });
        };
        let few = ["/scratch/run".to_owned(), "/data/mesh.nc".to_owned()];
        assert_eq!(travelled(&few, write), Ok(few.to_vec()));
        let long = ["x".repeat(LONGEST), "y".repeat(LONGEST + 1)];
        assert_eq!(travelled(&long, write), Ok(long[..1].to_vec()));
        assert!(travelled(&long, unchecked).is_err());
        let many = vec![String::new(); MOST + 1];
        assert_eq!(travelled(&many, write).map(|paths| paths.len()), Ok(MOST));
        assert!(travelled(&many, unchecked).is_err());
    }
}
