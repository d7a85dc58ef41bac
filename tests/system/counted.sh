# SPDX-License-Identifier: Apache-2.0
# counted FILE OPERATION LEVEL: messages in the table of ISTHMUS_STATS=1; levels are wide, local, machine, vendor, node.
counted() {
    awk -F '|' -v operation="$2" -v level="$3" '
        $1 ~ /^operation/ { for (i = 2; i <= NF; i++) if ($i ~ level) column = i }
        { split($1, name, " ") }
        name[1] == operation && column { split($column, value, " "); print value[1]; found = 1; exit }
        END { if (!found) print 0 }' "$1"
}
