// SPDX-License-Identifier: Apache-2.0
//! Local schedulers: submit, poll, cancel, nodes.
