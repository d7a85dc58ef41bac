// SPDX-License-Identifier: Apache-2.0
//! Circles of imports inside a room: files that need each other, so that none can be read first.
//!
//! An arrow goes from a file to each file of its room whose items it names: by `crate::…`, `super::…` or `self::…`, or
//! by the name of a module of its own. What a module has imported or passes on is followed to where it is. Declaring a
//! module is no arrow, and neither is passing a name on (`pub use`) that the file itself does not use.

use std::collections::{BTreeMap, BTreeSet};

use super::source::Source;

/// A module: the names from the root of its crate.
pub(super) type Path = Vec<String>;

/// Number of files in circles, by room.
pub(super) fn by_room(sources: &[Source]) -> BTreeMap<String, usize> {
    let counted = rooms(sources)
        .into_iter()
        .map(|(room, files)| (room.to_owned(), in_circles(&arrows(&files))));
    counted.filter(|(_, number)| *number > 0).collect()
}

/// The arrows of a room's circles, as lines for people: `from -> to`, modules by their names from the root.
pub(super) fn of_room(sources: &[Source], room: &str) -> Vec<String> {
    let files = rooms(sources).remove(room).unwrap_or_default();
    let names: Vec<String> = files.keys().map(|path| path.join("/")).collect();
    let arrows = arrows(&files);
    let closes = |from: usize, to: usize| reached(&arrows, to).contains(&from);
    let circles = (0..arrows.len()).flat_map(|from| arrows[from].iter().map(move |to| (from, *to)));
    circles
        .filter(|(from, to)| closes(*from, *to))
        .map(|(from, to)| format!("{} -> {}", names[from], names[to]))
        .collect()
}

/// Files by module, of each room.
pub(super) fn rooms(sources: &[Source]) -> BTreeMap<&str, BTreeMap<Path, &Source>> {
    let mut rooms: BTreeMap<&str, BTreeMap<Path, &Source>> = BTreeMap::new();
    let ours = sources.iter().filter(|s| !s.is_test() && !s.is_generated());
    for source in ours {
        if let Some(path) = module(&source.path) {
            rooms.entry(source.room()).or_default().insert(path, source);
        }
    }
    rooms
}

/// The module that a file below `src` is.
fn module(path: &str) -> Option<Path> {
    let (_, inside) = path.split_once("/src/")?;
    let mut names: Path = inside.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
    if matches!(names.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        names.pop();
    }
    Some(names)
}

/// For every file the files that it names, all by their number.
pub(super) fn arrows(files: &BTreeMap<Path, &Source>) -> Vec<BTreeSet<usize>> {
    let modules: BTreeMap<&Path, Module> = files
        .iter()
        .map(|(path, source)| (path, Module::of(&source.code, path, files)))
        .collect();
    let numbers: BTreeMap<&Path, usize> = files.keys().zip(0..).collect();
    let of_file = |(from, module): (&&Path, &Module)| {
        let to = module.named.iter().filter_map(|path| home(path, &modules));
        // The root of a crate is its face: what it declares itself is found there by whoever comes from outside.
        to.filter(|to| to != from && !to.is_empty())
            .filter_map(|to| numbers.get(to).copied())
            .collect()
    };
    modules.iter().map(of_file).collect()
}

/// What a file names.
struct Module {
    /// Paths of which it needs something.
    named: Vec<Path>,
    /// What its own names stand for that come from elsewhere.
    imported: BTreeMap<String, Path>,
}

impl Module {
    fn of(code: &str, own: &Path, files: &BTreeMap<Path, &Source>) -> Self {
        let (uses, rest) = split(code);
        let mut module = Self {
            named: names(&rest, own, files),
            imported: BTreeMap::new(),
        };
        for Use { tree, passes_on } in uses {
            let Some((base, tree)) = base(tree, own, files) else {
                continue;
            };
            let mut leaves = Vec::new();
            gather(tree, &base, &mut leaves);
            for Leaf { path, name } in leaves {
                if !passes_on || is_used_in(&rest, &name) {
                    module.named.push(path.clone());
                }
                module.imported.insert(name, path);
            }
        }
        module
    }
}

/// The module in which what the path names is declared; `None`: in no file of the room.
fn home<'a>(path: &Path, modules: &BTreeMap<&'a Path, Module>) -> Option<&'a Path> {
    let mut path = path.clone();
    // A name can be passed on several times; a circle of imports does not compile.
    for _ in 0..16 {
        let length = (0..=path.len())
            .rev()
            .find(|&n| modules.contains_key(&path[..n].to_vec()))?;
        let (file, module) = modules.get_key_value(&path[..length].to_vec())?;
        let further = path.get(length).and_then(|name| module.imported.get(name));
        match further {
            Some(target) if *target != path => {
                path = target.iter().chain(&path[length + 1..]).cloned().collect();
            }
            _ => return Some(file),
        }
    }
    None
}

/// A use declaration.
struct Use<'a> {
    tree: &'a str,
    passes_on: bool,
}

/// The use declarations of the code, and the code without them.
fn split(code: &str) -> (Vec<Use<'_>>, String) {
    let (mut uses, mut rest, mut from) = (Vec::new(), String::new(), 0);
    let mut at = 0;
    for line in code.split_inclusive('\n') {
        let (begin, text) = (at, line.trim_start());
        at += line.len();
        let (passes_on, tree) = match text.strip_prefix("pub") {
            Some(more) if more.starts_with([' ', '(']) => (true, more.split_once("use ").map(|(_, tree)| tree)),
            _ => (false, text.strip_prefix("use ")),
        };
        let is_use = tree.is_some_and(|tree| {
            let before = &text[..text.len() - tree.len()];
            begin >= from && !before.contains(['{', ';', '=']) && before.split_whitespace().count() <= 3
        });
        let (true, Some(tree)) = (is_use, tree) else { continue };
        let start = at - tree.len();
        let Some(length) = code[start..].find(';') else {
            continue;
        };
        uses.push(Use {
            tree: &code[start..start + length],
            passes_on,
        });
        rest.push_str(&code[from..begin]);
        from = start + length + 1;
    }
    rest.push_str(&code[from..]);
    (uses, rest)
}

/// Whether code has this name for what it stands for here: not for a module that it declares, nor for a method, a field
/// or an item of something else.
fn is_used_in(code: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    !name.is_empty()
        && code.match_indices(name).any(|(at, _)| {
            let (before, after) = (&code[..at], &code[at + name.len()..]);
            let is_word = !before.ends_with(is_part) && !after.starts_with(is_part);
            is_word && !before.ends_with(['.', ':']) && !(before.ends_with("mod ") && after.starts_with(';'))
        })
}

/// Where a path begins that the code of module `own` has, and the rest of it; `None`: in another crate.
fn base<'a>(text: &'a str, own: &Path, files: &BTreeMap<Path, &Source>) -> Option<(Path, &'a str)> {
    let text = text.trim_start();
    if let Some(rest) = text.strip_prefix("crate::") {
        return Some((Vec::new(), rest));
    }
    if let Some(rest) = text.strip_prefix("self::") {
        return Some((own.clone(), rest));
    }
    if let Some(mut rest) = text.strip_prefix("super::") {
        let mut base = own.clone();
        base.pop();
        while let Some(up) = rest.strip_prefix("super::") {
            base.pop();
            rest = up;
        }
        return Some((base, rest));
    }
    let child = text.find("::").map(|end| &text[..end])?;
    let path: Path = own.iter().cloned().chain([child.to_owned()]).collect();
    files.contains_key(&path).then(|| (own.clone(), text))
}

/// Paths from the root of the crate that the code of module `own` names outside its use declarations.
fn names(code: &str, own: &Path, files: &BTreeMap<Path, &Source>) -> Vec<Path> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("::") {
        let start = code[..at]
            .rfind(|c: char| !c.is_alphanumeric() && c != '_')
            .map_or(0, |before| before + 1);
        if start == at || code[..start].ends_with(':') {
            continue;
        }
        if let Some((base, rest)) = base(&code[start..], own, files) {
            let mut leaves = Vec::new();
            gather(rest, &base, &mut leaves);
            found.extend(leaves.into_iter().map(|leaf| leaf.path));
        }
    }
    found
}

/// One name of a use tree.
struct Leaf {
    path: Path,
    /// What it is called here.
    name: String,
}

/// The names of a use tree, without what follows it.
fn gather(text: &str, base: &Path, found: &mut Vec<Leaf>) {
    let mut path = base.clone();
    let mut rest = text.trim_start();
    loop {
        if let Some(group) = rest.strip_prefix('{') {
            for part in parts(group) {
                gather(part, &path, found);
            }
            return;
        }
        let length = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        if length > 0 && &rest[..length] != "self" {
            path.push(rest[..length].to_owned());
        }
        match rest[length..].strip_prefix("::") {
            Some(more) => rest = more,
            None => {
                rest = &rest[length..];
                break;
            }
        }
    }
    let renamed = rest.trim_start().strip_prefix("as ").map(str::trim);
    let name = renamed.map_or_else(|| path.last().cloned().unwrap_or_default(), str::to_owned);
    found.push(Leaf { path, name });
}

/// The parts of a group, up to the brace that ends it.
fn parts(group: &str) -> Vec<&str> {
    let (mut depth, mut from, mut found) = (0_i32, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                found.push(&group[from..at]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                found.push(&group[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    found.retain(|part| !part.trim().is_empty());
    found
}

/// How many of these reach themselves.
fn in_circles(arrows: &[BTreeSet<usize>]) -> usize {
    (0..arrows.len())
        .filter(|&at| arrows[at].iter().any(|&next| reached(arrows, next).contains(&at)))
        .count()
}

/// What is reached from a file, with itself.
fn reached(arrows: &[BTreeSet<usize>], start: usize) -> BTreeSet<usize> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![start]);
    while let Some(at) = open.pop() {
        if seen.insert(at) {
            open.extend(&arrows[at]);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(files: &[(&str, &str)]) -> usize {
        let sources: Vec<Source> = files.iter().map(|(path, text)| Source::of(path, text)).collect();
        by_room(&sources).into_values().sum()
    }

    #[test]
    fn a_planted_circle_is_found() {
        let a = ("crates/x/src/a.rs", "use crate::{b::{B, C}, c};");
        let b = ("crates/x/src/b.rs", "fn f() { super::a::g() }");
        let c = ("crates/x/src/c.rs", "use std::fmt;");
        assert_eq!(count(&[a, b, c]), 2);
        assert_eq!(count(&[a, c]), 0);
    }

    #[test]
    fn a_module_and_its_child_that_name_each_other_are_one() {
        let parent = ("crates/x/src/m/mod.rs", "mod child;\nuse crate::m::child::C;");
        let child = ("crates/x/src/m/child.rs", "use super::P;");
        assert_eq!(count(&[parent, child]), 2);
        assert_eq!(count(&[("crates/x/src/m/mod.rs", "mod child;"), child]), 0);
    }

    #[test]
    fn a_child_is_named_without_the_path_to_it() {
        let child = ("crates/x/src/m/child.rs", "use super::P;");
        let parent = |code| count(&[("crates/x/src/m/mod.rs", code), child]);
        assert_eq!(parent("mod child;\nuse child::C;\nstruct P;"), 2);
        assert_eq!(parent("mod child;\nstruct P;\nfn f() { child::g() }"), 2);
        assert_eq!(parent("mod child;\nstruct P;\nfn f() { other::g() }"), 0);
    }

    #[test]
    fn a_name_is_followed_to_where_it_is() {
        let a = ("crates/x/src/m/a.rs", "use super::B;");
        let b = ("crates/x/src/m/b.rs", "use crate::A;");
        let m = (
            "crates/x/src/m/mod.rs",
            "mod a;\nmod b;\npub use a::A;\npub(crate) use b::B;",
        );
        let root = |code| ("crates/x/src/lib.rs", code);
        assert_eq!(count(&[root("mod m;\npub use m::{A as A, B};"), m, a, b]), 2);
        assert_eq!(count(&[root("mod m;\nstruct A;"), m, a, b]), 0);
    }

    #[test]
    fn passing_a_name_on_is_no_arrow_but_using_it_is() {
        let child = ("crates/x/src/m/child.rs", "use super::P;");
        let parent = |code| count(&[("crates/x/src/m/mod.rs", code), child]);
        assert_eq!(parent("mod child;\npub use child::C;\nstruct P;"), 0);
        assert_eq!(parent("mod child;\npub use child::C;\nstruct P(C);"), 2);
    }

    #[test]
    fn a_function_may_be_called_as_its_module_or_as_one_elsewhere() {
        let child = ("crates/x/src/m/child.rs", "use super::P;");
        let parent = |code| count(&[("crates/x/src/m/mod.rs", code), child]);
        assert_eq!(parent("mod child;\npub use child::child;\nstruct P;"), 0);
        assert_eq!(parent("mod child;\npub use child::g;\nfn f() { other::g(x.g()) }"), 0);
        assert_eq!(
            parent("mod child;\npub use child::child;\nstruct P;\nfn f() { child() }"),
            2
        );
    }

    #[test]
    fn tests_close_no_circle() {
        let a = ("crates/x/src/a.rs", "use crate::b::B;");
        let b = ("crates/x/src/b.rs", "#[cfg(test)]\nmod tests { use crate::a::A; }");
        assert_eq!(count(&[a, b]), 0);
    }
}
