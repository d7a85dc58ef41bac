// SPDX-License-Identifier: Apache-2.0
//! Content-addressed staging and stdio fan-in and fan-out.
