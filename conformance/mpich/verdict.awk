# SPDX-License-Identifier: Apache-2.0
# Counts the results of the MPICH test suite; the first file lists the tests that are skipped, with reasons.
FNR == 1 { file++ }
/^#/ { next }
file == 1 { reason[$1 "/" $2] = $3; next }
FNR == 1 { next }
$5 == "pass" { passed[$1]++; all_passed++; directory[$1]; next }
$5 == "skip" { skipped[$1]++; all_skipped++; directory[$1]; next }
($1 "/" $2) in reason { print "skipped: " $1 "/" $2 " " $4 ": " reason[$1 "/" $2]; skipped[$1]++; all_skipped++; directory[$1]; next }
{ print "failed: " $1 "/" $2 " (" $3 " ranks) " $4 ": " $5 " " $7; failed[$1]++; all_failed++; directory[$1] }
END {
    for (d in directory) printf "%-24s %4d passed %4d failed %4d skipped\n", d, passed[d], failed[d], skipped[d] | "sort"
    close("sort")
    printf "mpich-suite: %d passed, %d failed, %d skipped\n", all_passed, all_failed, all_skipped
    exit all_failed > 0 || all_passed == 0
}
