// SPDX-License-Identifier: Apache-2.0
//! Dealing processes out to sites.

use isthmus_job::JobError;

/// How processes are dealt out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// To as few sites as possible, the nearest first.
    #[default]
    Compact,
    /// Evenly to all.
    Spread,
}

/// A site that may be taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Its name.
    pub site: String,
    /// How many processes it can start now.
    pub room: u32,
    /// How many it could ever start.
    pub most: u32,
    /// Round trip from home, seconds; 0 at home.
    pub distance: f64,
}

/// How many processes each of these sites gets; none of them gets none.
pub fn place(candidates: &[Candidate], total: u32, how: Placement) -> Result<Vec<(String, u32)>, JobError> {
    let now: u64 = candidates.iter().map(|c| u64::from(c.room)).sum();
    let ever: u64 = candidates.iter().map(|c| u64::from(c.most)).sum();
    if ever < u64::from(total) {
        let problem = format!(
            "{total} processes do not fit: the {} sites selected have {ever} processors",
            candidates.len()
        );
        return Err(JobError::new(problem).hint("ask for fewer with -n, or select more sites"));
    }
    // Better now than later; who must wait anyway takes what there is.
    let wait = now < u64::from(total);
    let room = |c: &Candidate| if wait { c.most } else { c.room };
    let mut order: Vec<usize> = (0..candidates.len()).filter(|n| room(&candidates[*n]) > 0).collect();
    let shares = match how {
        Placement::Compact => {
            order.sort_by(|a, b| compact(&candidates[*a], &candidates[*b], room, total));
            fill(&order, |n| room(&candidates[n]), total)
        }
        Placement::Spread => level(&order, |n| room(&candidates[n]), total),
    };
    // In the order in which the sites were named.
    let mut shares: Vec<(usize, u32)> = shares.into_iter().filter(|(_, count)| *count > 0).collect();
    shares.sort_unstable();
    Ok(shares
        .into_iter()
        .map(|(n, count)| (candidates[n].site.clone(), count))
        .collect())
}

/// A site that takes everything comes first, of those the nearest; then the largest.
fn compact(a: &Candidate, b: &Candidate, room: impl Fn(&Candidate) -> u32, total: u32) -> std::cmp::Ordering {
    let all = |c: &Candidate| room(c) >= total;
    let by_size = || {
        if all(a) {
            std::cmp::Ordering::Equal
        } else {
            room(b).cmp(&room(a))
        }
    };
    all(b)
        .cmp(&all(a))
        .then_with(by_size)
        .then_with(|| a.distance.total_cmp(&b.distance))
}

fn fill(order: &[usize], room: impl Fn(usize) -> u32, total: u32) -> Vec<(usize, u32)> {
    let mut left = total;
    let mut share = |n: &usize| {
        let count = room(*n).min(left);
        left -= count;
        (*n, count)
    };
    order.iter().map(&mut share).collect()
}

/// Small sites are filled, the others share what is left.
fn level(order: &[usize], room: impl Fn(usize) -> u32, total: u32) -> Vec<(usize, u32)> {
    let mut order = order.to_vec();
    order.sort_by_key(|n| room(*n));
    let mut left = total;
    let mut shares = Vec::new();
    for (done, n) in order.iter().enumerate() {
        let sites = u32::try_from(order.len() - done).unwrap_or(u32::MAX);
        let count = room(*n).min(left.div_ceil(sites).min(left));
        left -= count;
        shares.push((*n, count));
    }
    shares
}
