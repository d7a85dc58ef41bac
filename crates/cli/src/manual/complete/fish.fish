# SPDX-License-Identifier: Apache-2.0
# Completions of isthmus and mpiexec for fish: the command itself knows what fits.
function __isthmus_complete
    set -l current (commandline -ct)
    for word in (isthmus complete -- (commandline -opc) "$current" 2>/dev/null)
        if test "$word" = :files
            __fish_complete_path "$current"
        else
            echo $word
        end
    end
end
for name in isthmus mpiexec mpirun mpiexec.isthmus mpirun.isthmus
    complete -c $name -f -a '(__isthmus_complete)'
end
