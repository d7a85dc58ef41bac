// SPDX-License-Identifier: Apache-2.0
//! The machine of groups that share memory: steps that all members take together.

pub(crate) mod cut;
pub(crate) mod data;
pub(crate) mod disagreement;
pub(crate) mod known;
pub(crate) mod meet;
pub(crate) mod meeting;
pub(crate) mod mistake;
pub(crate) mod pulling;
pub(crate) mod rows;
pub(crate) mod short;
pub(crate) mod turn;
pub(crate) mod unequal;
pub(crate) mod words;
