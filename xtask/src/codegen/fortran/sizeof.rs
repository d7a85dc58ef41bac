// SPDX-License-Identifier: Apache-2.0
//! MPI_SIZEOF (deprecated): a generic name for variables of intrinsic types, of which an array counts as one element.

/// What names a specific procedure and its function, and the type of its argument. MPI asks for numeric types only;
/// programs have texts and truth values too.
const TYPES: [(&str, &str); 13] = [
    ("i1", "integer(1)"),
    ("i2", "integer(2)"),
    ("i4", "integer(4)"),
    ("i8", "integer(8)"),
    ("r4", "real(4)"),
    ("r8", "real(8)"),
    ("c4", "complex(4)"),
    ("c8", "complex(8)"),
    ("l1", "logical(1)"),
    ("l2", "logical(2)"),
    ("l4", "logical(4)"),
    ("l8", "logical(8)"),
    ("ch", "character(1)"),
];
/// Fortran before 2008 has arrays of so many dimensions, and not all compilers have more.
const RANKS: usize = 7;

/// The interface: by the descriptor where compilers have them, otherwise one procedure for each type and rank. All of a
/// type are one function, so they have BIND(C) names.
pub(super) fn interface(prefix: &str) -> String {
    let described = specific(prefix, "f08ts", "f08ts", "type(*), dimension(..), intent(in) :: x");
    let described = described.replace(" bind(C, name=", " ISTHMUS_BIND(");
    let mut others = String::new();
    for (name, declared) in TYPES {
        for rank in 0..=RANKS {
            let shape = match rank {
                0 => String::new(),
                _ => format!("({}*)", "1, ".repeat(rank - 1)),
            };
            let declared = format!("{declared} :: x{shape}");
            others.push_str(&specific(
                prefix,
                &format!("{name}_{rank}"),
                &format!("{name}_"),
                &declared,
            ));
        }
    }
    format!(
        "  interface {prefix}Sizeof\n#if defined(ISTHMUS_ANY_RANK)\n{described}#else\n{others}#endif\n  end interface\n"
    )
}

fn specific(prefix: &str, name: &str, function: &str, declared: &str) -> String {
    format!(
        "    subroutine {prefix}Sizeof_{name}(x, size, ierror) bind(C, name=\"{}sizeof_{function}\")\n      {declared}\n      \
         integer, intent(out) :: size\n      integer, intent(out), optional :: ierror\n    end subroutine\n",
        prefix.to_lowercase()
    )
}
