// SPDX-License-Identifier: Apache-2.0
//! Hosts as network namespaces joined by an emulated wide-area network.
