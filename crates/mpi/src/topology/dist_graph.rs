// SPDX-License-Identifier: Apache-2.0
//! Distributed graph topologies (MPI 5.0 section 8.5.4).

use std::ffi::c_int;

use isthmus_abi::constants as abi;
use isthmus_abi::handles as h;
use isthmus_core::comm::Comm;
use isthmus_core::create::topologies;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_core::topology::{DistGraph, Given};

use super::{put, room};
use crate::c::{In, Out, flag};
use crate::call::call_on;
use crate::comm::{find, give, intra};
use crate::{info, process};

/// Weights of edges: an array, MPI_UNWEIGHTED, or MPI_WEIGHTS_EMPTY for none.
#[derive(Clone, Copy)]
struct Weights {
    argument: &'static str,
    array: In<c_int>,
}

impl Weights {
    fn new(argument: &'static str, array: In<c_int>) -> Self {
        Self { argument, array }
    }

    fn are_given(self) -> bool {
        self.array.address() != abi::MPI_UNWEIGHTED
    }

    /// One per edge.
    fn of(self, edges: usize) -> Result<Vec<i32>> {
        if !self.are_given() {
            return Ok(vec![1; edges]);
        }
        if edges > 0 && self.array.address() == abi::MPI_WEIGHTS_EMPTY {
            fail!(
                abi::MPI_ERR_ARG,
                argument(self.argument),
                "is MPI_WEIGHTS_EMPTY, but there are {edges} edges"
            );
        }
        let weights = self.array.slice(self.argument, edges)?;
        if let Some(bad) = weights.iter().find(|w| **w < 0) {
            fail!(
                abi::MPI_ERR_ARG,
                argument(self.argument),
                "has the negative weight {bad}"
            );
        }
        Ok(weights.to_vec())
    }
}

fn nodes(comm: &Comm, argument: &str, list: &[c_int]) -> Result<Vec<u32>> {
    list.iter()
        .map(|&n| topologies::check_node(comm, argument, n))
        .collect()
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Dist_graph_create_adjacent(
    comm: h::Comm,
    in_degree: c_int,
    sources: In<c_int>,
    source_weights: In<c_int>,
    out_degree: c_int,
    destinations: In<c_int>,
    destination_weights: In<c_int>,
    info: h::Info,
    reorder: c_int,
    new: Out<h::Comm>,
) -> c_int {
    call_on("MPI_Dist_graph_create_adjacent", comm, || {
        give(new, || {
            let (comm, hints) = (intra(comm)?, info::find(info)?);
            let (entering, leaving) = (room("indegree", in_degree)?, room("outdegree", out_degree)?);
            let into = Weights::new("sourceweights", source_weights);
            let out = Weights::new("destweights", destination_weights);
            let own = DistGraph {
                sources: nodes(comm, "sources", sources.slice("sources", entering)?)?,
                source_weights: into.of(entering)?,
                destinations: nodes(comm, "destinations", destinations.slice("destinations", leaving)?)?,
                destination_weights: out.of(leaving)?,
                weighted: into.are_given() && out.are_given(),
            };
            topologies::dist_graph_adjacent(process::world()?, comm, own, reorder != 0, &hints).map(Some)
        })
    })
}

/// The edges of a call of MPI_Dist_graph_create.
fn edges(
    comm: &Comm,
    sources: &[c_int],
    degrees: &[c_int],
    destinations: In<c_int>,
    weights: Weights,
) -> Result<Vec<Given>> {
    let mut total = 0usize;
    for &degree in degrees {
        total = total.saturating_add(room("degrees", degree)?);
    }
    let sources = nodes(comm, "sources", sources)?;
    let destinations = nodes(comm, "destinations", destinations.slice("destinations", total)?)?;
    let from = sources
        .iter()
        .zip(degrees)
        .flat_map(|(&source, &degree)| std::iter::repeat_n(source, degree as usize));
    let both = from.zip(destinations).zip(weights.of(total)?);
    Ok(both.map(|((from, to), weight)| (from, to, weight)).collect())
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Dist_graph_create(
    comm: h::Comm,
    n: c_int,
    sources: In<c_int>,
    degrees: In<c_int>,
    destinations: In<c_int>,
    weights: In<c_int>,
    info: h::Info,
    reorder: c_int,
    new: Out<h::Comm>,
) -> c_int {
    call_on("MPI_Dist_graph_create", comm, || {
        give(new, || {
            let (comm, hints) = (intra(comm)?, info::find(info)?);
            let n = room("n", n)?;
            let weights = Weights::new("weights", weights);
            let (sources, degrees) = (sources.slice("sources", n)?, degrees.slice("degrees", n)?);
            let edges = edges(comm, sources, degrees, destinations, weights)?;
            topologies::dist_graph_create(
                process::world()?,
                comm,
                &edges,
                weights.are_given(),
                reorder != 0,
                &hints,
            )
            .map(Some)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Dist_graph_neighbors_count(
    comm: h::Comm,
    in_degree: Out<c_int>,
    out_degree: Out<c_int>,
    weighted: Out<c_int>,
) -> c_int {
    call_on("MPI_Dist_graph_neighbors_count", comm, || {
        let graph = topologies::dist_graph(find(comm)?)?;
        in_degree.set("indegree", graph.sources.len() as c_int)?;
        out_degree.set("outdegree", graph.destinations.len() as c_int)?;
        weighted.set("weighted", flag(graph.weighted))
    })
}

#[unsafe(no_mangle)]
extern "C" fn isthmus_MPI_Dist_graph_neighbors(
    comm: h::Comm,
    max_in: c_int,
    sources: Out<c_int>,
    source_weights: Out<c_int>,
    max_out: c_int,
    destinations: Out<c_int>,
    destination_weights: Out<c_int>,
) -> c_int {
    call_on("MPI_Dist_graph_neighbors", comm, || {
        let graph = topologies::dist_graph(find(comm)?)?;
        let (into, out) = (room("maxindegree", max_in)?, room("maxoutdegree", max_out)?);
        let (into, out) = (into.min(graph.sources.len()), out.min(graph.destinations.len()));
        put(sources, "sources", graph.sources[..into].iter().map(|r| *r as c_int))?;
        put(
            destinations,
            "destinations",
            graph.destinations[..out].iter().map(|r| *r as c_int),
        )?;
        if !graph.weighted {
            return Ok(());
        }
        give_weights(source_weights, "sourceweights", &graph.source_weights[..into])?;
        give_weights(destination_weights, "destweights", &graph.destination_weights[..out])
    })
}

/// The program may say MPI_UNWEIGHTED where it does not want the weights.
fn give_weights(out: Out<c_int>, argument: &str, weights: &[i32]) -> Result<()> {
    if out.address() == abi::MPI_UNWEIGHTED || out.address() == abi::MPI_WEIGHTS_EMPTY {
        return Ok(());
    }
    put(out, argument, weights.iter().copied())
}
