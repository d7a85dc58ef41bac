// SPDX-License-Identifier: Apache-2.0
//! Making communicators with process topologies, and asking communicators for theirs.

mod cart;
mod dist_graph;
mod graph;
mod placement;

pub use cart::{cart, cart_create, cart_map, cart_sub};
pub use dist_graph::{check_node, dist_graph, dist_graph_adjacent, dist_graph_create};
pub use graph::{graph, graph_create, graph_map};
