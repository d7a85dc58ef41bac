// SPDX-License-Identifier: Apache-2.0
//! Per-job certificate authority, certificates and TLS set-up.
