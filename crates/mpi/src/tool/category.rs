// SPDX-License-Identifier: Apache-2.0
//! Categories of variables and events (MPI 5.0 section 15.3.9): a tree below the category `isthmus`. It never changes.

use std::ffi::{c_char, c_int};
use std::sync::OnceLock;

use isthmus_abi::constants as abi;

use super::types::TYPES;
use super::values::{Code, list, name, nth, set, text, tool};
use super::variable::{LEVELS, Variable};
use super::{control, variable};
use crate::c::{Out, Text};

#[derive(Debug, Default)]
struct Category {
    name: String,
    description: String,
    controls: Vec<usize>,
    variables: Vec<usize>,
    events: Vec<usize>,
    children: Vec<usize>,
}

fn controls(which: impl Fn(&str) -> bool) -> Vec<usize> {
    let names = control::all().iter().map(|v| v.setting.name);
    (0..).zip(names).filter(|(_, n)| which(n)).map(|(i, _)| i).collect()
}

fn variables(which: impl Fn(Variable) -> bool) -> Vec<usize> {
    let all = variable::all().iter().copied();
    (0..).zip(all).filter(|(_, v)| which(*v)).map(|(i, _)| i).collect()
}

fn events(names: &[&str]) -> Vec<usize> {
    let all = TYPES.iter().map(|event| event.name);
    (0..)
        .zip(all)
        .filter(|(_, n)| names.contains(n))
        .map(|(i, _)| i)
        .collect()
}

fn category(name: &str, description: &str) -> Category {
    Category {
        name: name.to_owned(),
        description: description.to_owned(),
        ..Category::default()
    }
}

fn levels() -> impl Iterator<Item = Category> {
    LEVELS.into_iter().map(|level| Category {
        variables: variables(|v| matches!(v, Variable::Sent(_, at, _) if at == level)),
        ..category(
            &format!("isthmus_traffic_{}", level.key()),
            &format!("what was sent across the {} level", level.name()),
        )
    })
}

/// Settings of how a blocked call waits.
const WAITING: [&str; 3] = [
    isthmus_settings::POLLS.name,
    isthmus_settings::SPIN.name,
    isthmus_settings::YIELDS.name,
];

fn build() -> Vec<Category> {
    let mut all = vec![
        category("isthmus", "everything"),
        category("isthmus_traffic", "what was sent, by level of the network"),
    ];
    all[1].children = (all.len()..all.len() + LEVELS.len()).collect();
    all.extend(levels());
    let first = all.len();
    all.extend([
        Category {
            controls: controls(|_| true),
            ..category("isthmus_settings", "what the environment and tools set")
        },
        Category {
            controls: controls(|n| n == isthmus_settings::EAGER.name),
            variables: variables(|v| matches!(v, Variable::Queue(_))),
            events: events(&["isthmus_unexpected_message"]),
            ..category("isthmus_queues", "messages and receives that wait for each other")
        },
        Category {
            variables: variables(|v| matches!(v, Variable::Copied(_))),
            ..category(
                "isthmus_node",
                "what went between processes of a node, by the way that it took",
            )
        },
        Category {
            variables: variables(|v| matches!(v, Variable::Wide(_))),
            ..category(
                "isthmus_wide",
                "what passes to and from other sites, as connections count it",
            )
        },
        Category {
            controls: controls(|n| WAITING.contains(&n)),
            variables: variables(|v| matches!(v, Variable::SleepTime | Variable::Sleeps | Variable::Waited(..))),
            ..category("isthmus_waiting", "how a blocked call waits")
        },
        Category {
            variables: variables(|v| {
                matches!(v, Variable::Calls(_) | Variable::Collectives | Variable::LastCollective)
            }),
            events: events(&["isthmus_collective_started", "isthmus_collective_ended"]),
            ..category("isthmus_operations", "what the program calls")
        },
        Category {
            controls: controls(|n| n == isthmus_settings::CHECK.name),
            variables: variables(|v| v == Variable::Phase),
            events: events(&["isthmus_peer_lost", "isthmus_error_raised"]),
            ..category("isthmus_health", "errors, lost processes and checks")
        },
    ]);
    all[0].children = std::iter::once(1).chain(first..all.len()).collect();
    all
}

fn all() -> &'static [Category] {
    static ALL: OnceLock<Vec<Category>> = OnceLock::new();
    ALL.get_or_init(build)
}

fn give(index: c_int, length: c_int, out: Out<c_int>, which: impl FnOnce(&Category) -> &[usize]) -> c_int {
    tool(|| list(out, length, which(nth(all(), index)?)))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_category_get_num(n: Out<c_int>) -> c_int {
    tool(|| set(n, all().len() as c_int))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_category_get_info(
    index: c_int,
    name: Out<c_char>,
    name_length: Out<c_int>,
    description: Out<c_char>,
    description_length: Out<c_int>,
    controls: Out<c_int>,
    variables: Out<c_int>,
    categories: Out<c_int>,
) -> c_int {
    tool(|| {
        let category = nth(all(), index)?;
        text(name, name_length, &category.name)?;
        text(description, description_length, &category.description)?;
        controls.put(category.controls.len() as c_int);
        variables.put(category.variables.len() as c_int);
        categories.put(category.children.len() as c_int);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_category_get_num_events(index: c_int, n: Out<c_int>) -> c_int {
    tool(|| set(n, nth(all(), index)?.events.len() as c_int))
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_category_get_index(text: Text, index: Out<c_int>) -> c_int {
    tool(|| -> Code {
        let wanted = name(text)?;
        let found = all().iter().position(|c| c.name == wanted);
        set(index, found.ok_or(abi::MPI_T_ERR_INVALID_NAME)? as c_int)
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_category_get_cvars(index: c_int, length: c_int, indices: Out<c_int>) -> c_int {
    give(index, length, indices, |c| &c.controls)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_category_get_pvars(index: c_int, length: c_int, indices: Out<c_int>) -> c_int {
    give(index, length, indices, |c| &c.variables)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_category_get_events(index: c_int, length: c_int, indices: Out<c_int>) -> c_int {
    give(index, length, indices, |c| &c.events)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_category_get_categories(index: c_int, length: c_int, indices: Out<c_int>) -> c_int {
    give(index, length, indices, |c| &c.children)
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_T_category_changed(stamp: Out<c_int>) -> c_int {
    tool(|| set(stamp, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_in_the_tree_once_as_a_category_and_somewhere_as_a_member() {
        let categories = build();
        let mut children: Vec<usize> = categories.iter().flat_map(|c| c.children.clone()).collect();
        children.sort_unstable();
        assert_eq!(children, (1..categories.len()).collect::<Vec<_>>());
        let covers =
            |n: usize, of: fn(&Category) -> &[usize]| (0..n).all(|i| categories.iter().any(|c| of(c).contains(&i)));
        assert!(covers(control::all().len(), |c| &c.controls));
        assert!(covers(variable::all().len(), |c| &c.variables));
        assert!(covers(TYPES.len(), |c| &c.events));
    }
}
