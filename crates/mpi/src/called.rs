// SPDX-License-Identifier: Apache-2.0
//! What arguments are called in functions whose bodies, which several functions share, call them otherwise. The text of
//! an error has the name of the standard.

use isthmus_core::error::{Error, Subject};
use std::borrow::Cow;

/// The error as this function has it.
pub(crate) fn in_terms_of<'a>(function: &str, error: &'a Error) -> Cow<'a, Error> {
    let argument = match &error.subject {
        Subject::Argument(argument) | Subject::Within(argument) => argument,
        Subject::Message | Subject::Named => return Cow::Borrowed(error),
    };
    match name(function, argument) {
        Some(name) => Cow::Owned(error.clone().about(name)),
        None => Cow::Borrowed(error),
    }
}

fn name(function: &str, argument: &str) -> Option<&'static str> {
    let of = function.strip_prefix("MPI_")?;
    match argument {
        "comm" => match of {
            "Cart_create" | "Graph_create" | "Dist_graph_create" | "Dist_graph_create_adjacent" => Some("comm_old"),
            "Intercomm_merge" => Some("intercomm"),
            _ => None,
        },
        "newcomm" => match of {
            "Cart_create" => Some("comm_cart"),
            "Graph_create" => Some("comm_graph"),
            "Dist_graph_create" | "Dist_graph_create_adjacent" => Some("comm_dist_graph"),
            "Intercomm_create" | "Intercomm_create_from_groups" => Some("newintercomm"),
            "Intercomm_merge" => Some("newintracomm"),
            "Comm_spawn" | "Comm_spawn_multiple" | "Comm_join" => Some("intercomm"),
            _ => None,
        },
        "keyval" => match of {
            _ if of.starts_with("Comm_") => Some("comm_keyval"),
            _ if of.starts_with("Type_") => Some("type_keyval"),
            _ if of.starts_with("Win_") => Some("win_keyval"),
            _ => None,
        },
        "sdispls" | "rdispls" => (!of.contains("lltoall")).then_some("displs"),
        "ranks" => of.starts_with("Group_range_").then_some("ranges"),
        "request" => takes_array(of).then_some("array_of_requests"),
        _ => None,
    }
}

fn takes_array(of: &str) -> bool {
    matches!(
        of,
        "Startall" | "Waitall" | "Waitany" | "Waitsome" | "Testall" | "Testany" | "Testsome"
    ) || of.starts_with("Request_get_status_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_bodies_name_the_arguments_of_each_function() {
        let error = Error::of_argument(5, "comm", "is MPI_COMM_NULL");
        let text = |function| in_terms_of(function, &error).to_string();
        assert_eq!(text("MPI_Cart_create"), "argument comm_old is MPI_COMM_NULL");
        assert_eq!(text("MPI_Barrier"), "argument comm is MPI_COMM_NULL");
        assert_eq!(name("MPI_Keyval_free", "keyval"), None);
        assert_eq!(name("MPI_Request_get_status", "request"), None);
        assert_eq!(name("MPI_Igatherv", "rdispls"), Some("displs"));
        assert_eq!(name("MPI_Ineighbor_alltoallv_c", "rdispls"), None);
    }
}
