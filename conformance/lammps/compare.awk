# SPDX-License-Identifier: Apache-2.0
# Compares the numbers of the thermodynamic tables of two LAMMPS logs: the second against the first. Both formats: rows
# of numbers below a line that begins with "Step", and blocks of "Name = value". Rounding differs with the number of
# processes and grows with the steps, hence the tolerance. Set `name` to the case.
function number(text) { return text ~ /^[-+]?[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?$/ }
function note(key, value) {
    if (FILENAME == ARGV[1]) { serial[key] = value; known++; return }
    if (!(key in serial)) { print name ": " key " is not in the serial log"; bad++; return }
    size = serial[key] < 0 ? -serial[key] : serial[key]
    off = value - serial[key]
    if (off < 0) off = -off
    relative = off / (size > 1 ? size : 1)
    if (relative > worst) worst = relative
    if (relative > 1e-5) { print name ": " key ": serial " serial[key] ", parallel " value; bad++ }
    compared++
}
FNR == 1 { table = 0; step = "" }
/^ *Step / { columns = split($0, title); table = 1; next }
/^Loop time/ { table = 0; step = ""; next }
table && number($1) && NF == columns { for (i = 2; i <= NF; i++) note("step " $1 " " title[i], $i); next }
/-- Step +[0-9]+/ { for (i = 1; i < NF; i++) if ($i == "Step") step = $(i + 1); next }
step != "" { for (i = 2; i < NF; i++) if ($i == "=" && $(i - 1) != "CPU") note("step " step " " $(i - 1), $(i + 1)) }
END {
    if (known == 0 || compared != known) { print name ": " known + 0 " numbers in the serial log, " compared + 0 " in the parallel one"; bad++ }
    if (bad) exit 1
    printf "lammps: %s: passed: %d numbers agree with the serial run (largest relative difference %.1e)\n", name, compared, worst
}
