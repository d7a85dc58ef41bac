// SPDX-License-Identifier: Apache-2.0
//! Arithmetic on the 80-bit `long double` of x86-64, for which Rust has no type. Values are the 10 bytes of the
//! format at the beginning of 16; the rest of results is 0.

use std::arch::asm;

macro_rules! operation {
    ($(#[$doc:meta])* $name:ident, $instruction:literal) => {
        $(#[$doc])*
        pub(crate) fn $name(left: &[u8; 16], right: &[u8; 16]) -> [u8; 16] {
            let mut result = [0; 16];
            // SAFETY: reads 10 bytes of each operand and writes 10 of the result, all of 16 bytes; the
            // stack of the unit is empty before and after.
            unsafe {
                asm!(
                    "fld tbyte ptr [{l}]", "fld tbyte ptr [{r}]", $instruction, "fstp tbyte ptr [{o}]",
                    l = in(reg) left, r = in(reg) right, o = in(reg) &mut result,
                    out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                    out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                    options(nostack),
                );
            }
            result
        }
    };
}

operation!(
    /// left + right
    add, "faddp st(1), st"
);
operation!(
    /// left - right
    subtract, "fsubp st(1), st"
);
operation!(
    /// left * right
    multiply, "fmulp st(1), st"
);

/// left < right; false if one is not a number.
pub(crate) fn less(left: &[u8; 16], right: &[u8; 16]) -> bool {
    let above: u8;
    // SAFETY: reads 10 bytes of each operand of 16 bytes; the stack of the unit is empty before and after.
    unsafe {
        asm!(
            "fld tbyte ptr [{l}]", "fld tbyte ptr [{r}]", "fucomip st, st(1)", "fstp st(0)", "seta {a}",
            l = in(reg) left, r = in(reg) right, a = out(reg_byte) above,
            out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
            out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
            options(nostack, readonly),
        );
    }
    above != 0
}
