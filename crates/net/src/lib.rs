// SPDX-License-Identifier: Apache-2.0
//! TCP inside a site and mutually authenticated TLS between sites.
