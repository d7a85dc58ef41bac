#compdef isthmus mpiexec mpirun mpiexec.isthmus mpirun.isthmus
# SPDX-License-Identifier: Apache-2.0
# Completions of isthmus and mpiexec for zsh: the command itself knows what fits.
_isthmus() {
    local -a found
    found=("${(@f)$(isthmus complete -- "${(@)words[1,CURRENT]}" 2>/dev/null)}")
    if (( ${found[(Ie):files]} )); then
        found=("${(@)found:#:files}")
        _files
    fi
    found=("${(@)found:#}")
    (( ${#found} )) && compadd -a found
}
if [ "$funcstack[1]" = "_isthmus" ]; then
    _isthmus "$@"
else
    compdef _isthmus isthmus mpiexec mpirun mpiexec.isthmus mpirun.isthmus
fi
