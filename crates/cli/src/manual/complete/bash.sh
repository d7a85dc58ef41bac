# SPDX-License-Identifier: Apache-2.0
# Completions of isthmus and mpiexec for bash: the command itself knows what fits.
_isthmus() {
    local line=${COMP_LINE:0:COMP_POINT} words current front word
    read -ra words <<<"$line"
    # A word that has not begun is empty.
    [[ $line != *[[:space:]] ]] || words+=("")
    current=${words[${#words[@]} - 1]}
    # bash replaces what stands behind the last of these signs.
    front=${current%"${current##*[=:]}"}
    COMPREPLY=()
    while IFS= read -r word; do
        if [[ $word == :files ]]; then
            while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "${current#"$front"}")
            compopt -o filenames 2>/dev/null
        else
            COMPREPLY+=("${word#"$front"}")
        fi
    done < <(isthmus complete -- "${words[@]}" 2>/dev/null)
    # Something follows an equals sign.
    [[ ${#COMPREPLY[@]} != 1 || ${COMPREPLY[0]} != *= ]] || compopt -o nospace 2>/dev/null
}
complete -F _isthmus isthmus mpiexec mpirun mpiexec.isthmus mpirun.isthmus
