# SPDX-License-Identifier: Apache-2.0
# What HPC Challenge says about itself in hpccoutf.txt; status 0 when every part passed.
/^End of HPC Challenge tests/ { ended = 1 }
/^Begin of .* section/ { section = $3 }
/tests? completed and passed residual checks/ { passed[section] += $1 }
/tests? completed and failed residual checks/ { failed[section] += $1 }
/tests? skipped because of illegal input values/ { skipped[section] += $1 }
/^Found .* errors in .* locations/ { if (/passed/) passed[section]++; else failed[section]++ }
/^Scaled residual:/ { scaled[section] = $3 }
/^[A-Za-z0-9_]+=/ { split($0, pair, "="); value[pair[1]] = pair[2] }
function verdict(name, good, detail) {
    printf "%-36s %s  %s\n", name, good ? "passed" : "FAILED", detail
    if (!good) bad = 1
}
function residual(part) {
    verdict(part, passed[part] > 0 && failed[part] == 0, passed[part] + 0 " passed, " failed[part] + 0 " failed")
}
END {
    residual("HPL")
    residual("PTRANS")
    residual("MPIRandomAccess")
    residual("MPIRandomAccess_LCG")
    residual("StarRandomAccess")
    residual("StarRandomAccess_LCG")
    verdict("StarDGEMM", scaled["StarDGEMM"] != "" && scaled["StarDGEMM"] + 0 < 16, "scaled residual " scaled["StarDGEMM"])
    error = value["MPIFFT_maxErr"]
    verdict("MPIFFT", error != "" && error + 0 >= 0 && error + 0 < 1e-10, "largest error " error)
    verdict("latency and bandwidth", value["MaxPingPongLatency_usec"] + 0 > 0, value["MaxPingPongLatency_usec"] " us at most one way")
    verdict("success", value["Success"] == 1, "Success=" value["Success"])
    verdict("ran to its end", ended, "")
    exit bad
}
