// SPDX-License-Identifier: Apache-2.0
//! Which functions have a body: a search in `crates/mpi/src` and the generated collectives for `extern "C" fn
//! isthmus_MPI_X(` (or `isthmus_MPIX_X(`) and, in invocations of the macro `entry!`, for `isthmus_MPI_X<T>,
//! isthmus_MPI_Y<T>: (`.

use std::collections::BTreeSet;

use crate::spec::{Function, Spec};
use crate::tree::{self, Result};

const MARK: &str = "isthmus_MPI";

/// Names (`MPI_X`) of the functions that have a body. A body that is no function of the ABI, that stands twice or
/// that has another number of parameters is an error.
/// `generated`: path and text of the file of bodies that is generated too.
pub(crate) fn find(spec: &Spec, generated: (&str, &str)) -> Result<BTreeSet<String>> {
    let mut bodies = BTreeSet::new();
    find_in(spec, generated, &mut bodies)?;
    for path in tree::files("crates/mpi/src", ".rs")? {
        find_in(spec, (&path, &tree::read(&path)?), &mut bodies)?;
    }
    Ok(bodies)
}

fn find_in(spec: &Spec, (path, text): (&str, &str), bodies: &mut BTreeSet<String>) -> Result<()> {
    for (name, parameters) in definitions(text) {
        let function = spec.functions.iter().chain(&spec.extensions).find(|f| f.name == name);
        let function = function.ok_or_else(|| format!("{path}: {name} is no function of the ABI"))?;
        check_arity(path, function, parameters)?;
        if !bodies.insert(name.clone()) {
            return Err(format!("{path}: a second body of {name}"));
        }
    }
    Ok(())
}

/// Each function that the text defines, with what begins with its parameter list.
fn definitions(text: &str) -> impl Iterator<Item = (String, &str)> {
    text.match_indices(MARK).filter_map(|(position, _)| {
        let line = text[..position].lines().next_back().unwrap_or_default();
        let after = &text[position + MARK.len()..];
        let end = after.find(|c: char| !c.is_alphanumeric() && c != '_')?;
        if !after.starts_with("_") && !after.starts_with("X_") {
            return None;
        }
        let written_out = text[..position].ends_with("extern \"C\" fn ");
        let in_macro = after[end..].starts_with('<') && !line.trim_start().starts_with("//");
        let list = match (written_out, in_macro) {
            (true, _) => end,
            (_, true) => after.find('(')?,
            _ => return None,
        };
        Some((format!("MPI{}", &after[..end]), &after[list..]))
    })
}

fn check_arity(path: &str, function: &Function, text: &str) -> Result<()> {
    let expected = function.parameters.iter().filter(|p| p.declaration != "...").count();
    let found = parameter_count(text);
    if found == expected {
        return Ok(());
    }
    Err(format!(
        "{path}: {} takes {expected} parameters, its body {found}",
        function.name
    ))
}

/// Number of parameters in a Rust parameter list that begins at the start of `text`.
fn parameter_count(text: &str) -> usize {
    let (mut depth, mut count, mut pending) = (0_i32, 0, false);
    for line in text.lines() {
        for c in line.split("//").next().unwrap_or_default().chars() {
            match c {
                '(' | '<' | '[' => depth += 1,
                ')' | '>' | ']' => depth -= 1,
                ',' if depth == 1 => count += usize::from(std::mem::take(&mut pending)),
                c if depth >= 1 && !c.is_whitespace() => pending = true,
                _ => {}
            }
            if depth == 0 {
                return count + usize::from(pending);
            }
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_found() {
        let text = "extern \"C\" fn isthmus_MPI_A(\n  a: T) {\nentry! {\n isthmus_MPI_B<c_int, 1>, isthmus_MPI_C<Count, 2>:\n (a: N) on a\n\
                    // isthmus_MPI_D<T>: (\n isthmus_MPI_A();";
        let found: Vec<_> = definitions(text)
            .map(|(name, list)| (name, parameter_count(list)))
            .collect();
        let expected = ["MPI_A", "MPI_B", "MPI_C"].map(|name| (name.to_owned(), 1));
        assert_eq!(found, expected);
    }

    #[test]
    fn parameters_are_counted() {
        assert_eq!(parameter_count("() -> c_int {"), 0);
        assert_eq!(parameter_count("(a: *mut c_int, b: Option<fn(u8, u8)>,\n) {"), 2);
        assert_eq!(parameter_count("(\n    a: T, // one, two\n    b: [u8; 3])"), 2);
    }
}
