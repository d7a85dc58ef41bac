#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# mpi.h, mpi-ext.h and isthmus.h, included twice, in every C and C++ the compiler knows, with all warnings as errors.
. "$(dirname "$0")/../scripts/common.sh"
passed=0 failed=0
work=$(mktemp -d)
check() {
    language=$1 standard=$2 file=$3
    if cc -x "$language" -std="$standard" -Wall -Wextra -Wpedantic -Werror -Iinclude -fsyntax-only "$file"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        say "FAILED: $file as $standard"
    fi
}
printf '#include <mpi.h>\n#include <mpi.h>\nint main(void) { return 0; }\n' >"$work/twice.c"
printf '#include <isthmus.h>\n#include <isthmus.h>\nint main(void) { isthmus_handler none = 0; return none; }\n' >"$work/beyond.c"
printf '#include <mpi-ext.h>\n#include <mpi-ext.h>\nint main(void) { return MPIX_ERR_REVOKED - 16003; }\n' >"$work/extended.c"
printf '#define ISTHMUS_MPI1\n#include <mpi.h>\n' >"$work/old.c"
for standard in c99 c11 c17; do
    check c $standard "$work/old.c"
    check c $standard "$work/twice.c"
    check c $standard "$work/beyond.c"
    check c $standard "$work/extended.c"
    check c $standard tests/headers/values.c
done
if have c++; then
    for standard in c++11 c++17 c++20; do
        check c++ $standard "$work/old.c"
        check c++ $standard "$work/twice.c"
        check c++ $standard "$work/beyond.c"
        check c++ $standard "$work/extended.c"
        check c++ $standard tests/headers/values.c
    done
else
    say "skipped: no C++ compiler"
fi
rm -rf "$work"
say "$passed passed, $failed failed"
[ $failed -eq 0 ]
