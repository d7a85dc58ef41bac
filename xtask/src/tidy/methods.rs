// SPDX-License-Identifier: Apache-2.0
//! Objects with too many methods: whoever changes one line of theirs has to know all their fields. What is counted is
//! the methods of a type in all files of its room, those of traits left out, as far as there are more than [`MOST`]. A
//! type that derefs to another of its room shows the methods of that one too.

use std::collections::BTreeMap;

use super::source::Source;

/// Methods that one object may have.
const MOST: usize = 40;

/// A type: the file that declares it, if that was found, and its name.
type Type<'a> = (Option<&'a str>, &'a str);

/// Methods above [`MOST`], of all objects of a room together.
pub(super) fn by_room(sources: &[Source]) -> BTreeMap<String, usize> {
    let mut rooms: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    for source in sources.iter().filter(|s| !s.is_test() && !s.is_generated()) {
        rooms.entry(source.room()).or_default().push(source);
    }
    let counted = rooms.into_iter().map(|(room, files)| (room.to_owned(), above(&files)));
    counted.filter(|(_, number)| *number > 0).collect()
}

fn above(files: &[&Source]) -> usize {
    let declared: Vec<(&str, &str)> = files
        .iter()
        .flat_map(|file| declarations(&file.code).map(|name| (file.path.as_str(), name)))
        .collect();
    let mut methods: BTreeMap<Type<'_>, usize> = BTreeMap::new();
    for file in files {
        for (name, count) in blocks(&file.code) {
            *methods.entry((home(&declared, &file.path, name), name)).or_default() += count;
        }
    }
    let shown = |of: Type<'_>| {
        let (mut at, mut count) = (of, methods.get(&of).copied().unwrap_or_default());
        // As long as types are declared in a finite number of files; a circle does not compile.
        for _ in 0..declared.len() {
            let Some(target) = files
                .iter()
                .find_map(|file| target(&file.code, &file.path, at, &declared))
            else {
                break;
            };
            count += methods.get(&target).copied().unwrap_or_default();
            at = target;
        }
        count
    };
    methods.keys().map(|of| shown(*of).saturating_sub(MOST)).sum()
}

/// What the type derefs to, if this file says so and the room declares it.
fn target<'a>(code: &'a str, path: &str, of: Type<'_>, declared: &[(&'a str, &'a str)]) -> Option<Type<'a>> {
    const IS: &str = "type Target = ";
    let (_, block) = code.split_once(&format!("Deref for {}", of.1))?;
    let block = &block[..block.find("\n}").unwrap_or(block.len())];
    if block.starts_with(|c: char| c.is_alphanumeric() || c == '_') || home(declared, path, of.1) != of.0 {
        return None;
    }
    let name = first_name(&block[block.find(IS)? + IS.len()..]);
    if comes_from_elsewhere(code, name) {
        return None;
    }
    let file = home(declared, path, name)?;
    Some((Some(file), name))
}

/// Whether the code imports this name from another crate.
fn comes_from_elsewhere(code: &str, name: &str) -> bool {
    let imports = code
        .split(';')
        .filter_map(|item| item.rsplit_once("use ").map(|(_, tree)| tree));
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let has = |tree: &str| tree.split(|c| !is_part(c)).any(|word| word == name);
    let is_own = |tree: &str| {
        let base = tree.split("::").next().unwrap_or_default();
        ["crate", "super", "self"].contains(&base) || code.contains(&format!("mod {base};"))
    };
    imports
        .filter(|tree| tree.contains("::") && has(tree))
        .any(|tree| !is_own(tree))
}

/// The file that declares the type which a block in this file is of: of several with the name the nearest one.
fn home<'a>(declared: &[(&'a str, &str)], from: &str, name: &str) -> Option<&'a str> {
    let common = |path: &str| path.bytes().zip(from.bytes()).take_while(|(a, b)| a == b).count();
    let named = declared.iter().filter(|(_, declared)| *declared == name);
    named
        .map(|(path, _)| *path)
        .max_by_key(|path| (*path == from, common(path)))
}

/// Names of the types that are declared at the top of a file.
fn declarations(code: &str) -> impl Iterator<Item = &str> {
    code.lines().filter_map(|line| {
        let line = line.strip_prefix("pub").map_or(line, |rest| {
            let rest = rest
                .strip_prefix('(')
                .and_then(|r| r.split_once(')'))
                .map_or(rest, |(_, r)| r);
            rest.trim_start()
        });
        let kinds = ["struct ", "enum ", "union "];
        kinds.iter().find_map(|kind| line.strip_prefix(kind)).map(first_name)
    })
}

/// The types of the blocks of methods at the top of a file, and how many each has.
fn blocks(code: &str) -> Vec<(&str, usize)> {
    let mut found: Vec<(&str, usize)> = Vec::new();
    let mut inside = false;
    for line in code.lines() {
        if let Some(of) = type_of_block(line) {
            inside = true;
            found.push((of, 0));
        } else if line.starts_with('}') {
            inside = false;
        } else if inside && is_method(line) {
            if let Some((_, count)) = found.last_mut() {
                *count += 1;
            }
        }
    }
    found
}

/// `impl<'a> Name<'a> {`, but no `impl Trait for Name {`.
fn type_of_block(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("impl")?;
    let rest = match rest.strip_prefix('<') {
        Some(parameters) => &parameters[end_of_parameters(parameters)?..],
        None => rest,
    };
    let name = first_name(rest.strip_prefix(' ')?);
    (!name.is_empty() && !rest.contains(" for ")).then_some(name)
}

/// Behind the bracket that closes the parameters with which the text begins.
fn end_of_parameters(text: &str) -> Option<usize> {
    let mut depth = 1_i32;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        depth += i32::from(c == '<') - i32::from(c == '>' && before != '-');
        if depth == 0 {
            return Some(at + 1);
        }
        before = c;
    }
    None
}

/// A function with the indentation of methods.
fn is_method(line: &str) -> bool {
    let Some(line) = line.strip_prefix("    ").filter(|rest| !rest.starts_with(' ')) else {
        return false;
    };
    line.starts_with("fn ") || (line.contains(" fn ") && !line.starts_with("let ") && !line.contains("macro"))
}

fn first_name(text: &str) -> &str {
    let end = text
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn methods(count: usize) -> String {
        "    pub(crate) fn f(&self) {\n        let g = 1;\n    }\n".repeat(count)
    }

    fn found(files: &[(&str, String)]) -> BTreeMap<String, usize> {
        let sources: Vec<Source> = files.iter().map(|(path, text)| Source::of(path, text)).collect();
        by_room(&sources)
    }

    #[test]
    fn methods_of_an_object_in_several_files_count_together() {
        let here = format!("pub(crate) struct A {{\n}}\nimpl A {{\n{}}}\n", methods(30));
        let there = |count| format!("impl A {{\n{}}}\n", methods(count));
        assert!(found(&[("crates/x/src/a.rs", here.clone()), ("crates/x/src/b.rs", there(10))]).is_empty());
        let planted = found(&[("crates/x/src/a.rs", here), ("crates/x/src/b.rs", there(12))]);
        assert_eq!(planted, BTreeMap::from([("x".to_owned(), 2)]));
    }

    #[test]
    fn a_type_shows_what_it_derefs_to() {
        let inner = format!("struct Inner;\nimpl Inner {{\n{}}}\n", methods(25));
        let outer = |target| {
            let deref = format!("impl Deref for Outer {{\n    type Target = {target};\n}}\n");
            format!("struct Outer;\nimpl Outer {{\n{}}}\n{deref}", methods(20))
        };
        let planted = |target| {
            found(&[
                ("crates/x/src/a.rs", inner.clone()),
                ("crates/x/src/b.rs", outer(target)),
            ])
        };
        assert_eq!(planted("Inner"), BTreeMap::from([("x".to_owned(), 5)]));
        assert!(planted("Vec<u8>").is_empty());
        // Another `Inner` than that of this room.
        let foreign = format!("use std::x::{{Inner, Y}};\n{}", outer("Inner"));
        assert!(found(&[("crates/x/src/a.rs", inner.clone()), ("crates/x/src/b.rs", foreign)]).is_empty());
    }

    #[test]
    fn objects_of_one_name_in_several_modules_are_several() {
        let one = format!("struct A;\nimpl<'a, T: Fn() -> u8> A<'a, T> {{\n{}}}\n", methods(30));
        assert!(found(&[("crates/x/src/a/p.rs", one.clone()), ("crates/x/src/b/p.rs", one)]).is_empty());
    }

    #[test]
    fn methods_of_traits_and_tests_do_not_count() {
        let text = format!(
            "struct A;\nimpl Sink for A {{\n{}}}\n#[cfg(test)]\nmod tests {{\nimpl A {{\n{}}}\n}}\n",
            methods(50),
            methods(50)
        );
        assert!(found(&[("crates/x/src/a.rs", text)]).is_empty());
    }
}
