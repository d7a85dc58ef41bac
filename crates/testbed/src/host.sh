# SPDX-License-Identifier: Apache-2.0
# Process 1 of a testbed host: makes the host's own view of the system, starts sshd, waits for the end.
#
# Standard input is a pipe that the testbed process holds; when that process ends, however it ends, the pipe
# closes, this shell exits and the kernel kills everything in the host. Waiting in the shell also reaps orphans.
# From the environment: STATE (the testbed's directory), HOST, SSHD (program or empty), PRIVATE_TMP (1 or
# empty), HIDE (directories, one a line).
set -eu
exec 3<&0 </dev/null
here=$STATE/hosts/$HOST

hostname "$HOST" 2>/dev/null || echo "$HOST" >/proc/sys/kernel/hostname
mount -t tmpfs -o mode=1777 isthmus /dev/shm

# Cached sockets and run-time state of the real machine are none of this host's business.
mount -t tmpfs -o mode=755 isthmus /run
mkdir -p /run/sshd /run/lock
for file in hosts passwd shadow machine-id; do
    if [ -e "/etc/$file" ] && [ -e "$here/etc/$file" ]; then
        mount --bind "$here/etc/$file" "/etc/$file"
    fi
done
# Programs that ask for the boot identifier must not take two hosts for one.
mount --bind "$here/boot_id" /proc/sys/kernel/random/boot_id

if [ -n "$HIDE" ]; then
    echo "$HIDE" | while read -r directory; do
        if [ -d "$directory" ]; then mount -t tmpfs -o mode=755 isthmus "$directory"; fi
    done
fi
if [ -n "$PRIVATE_TMP" ]; then
    # The testbed's own directory may live below /tmp: keep it in sight.
    mkdir -p "$here/tmp"
    chmod 1777 "$here/tmp"
    case $STATE in
    /tmp/*)
        mkdir -p "$here$STATE"
        mount --bind "$STATE" "$here$STATE"
        ;;
    esac
    mount --rbind "$here/tmp" /tmp
fi

if [ -n "$SSHD" ]; then
    "$SSHD" -D -e -f "$here/sshd_config" 2>"$here/sshd.log" &
fi
echo ready
cat <&3 >/dev/null &
wait $!
