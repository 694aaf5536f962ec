#!/bin/sh
# In the place of ssh for mpirun (--mca plm_rsh_agent): "connects" to a host that is this machine
# under another name, with IPC and temporary files of its own. The loopback network is shared.
while [ "${1#-}" != "$1" ]; do shift; done
export FAKE_HOST="$1"
shift
exec unshare -m -u -i sh -c '
  hostname "$FAKE_HOST"
  mount -t tmpfs none /dev/shm
  export TMPDIR="$FAKE_HOSTS/$FAKE_HOST"
  mkdir -p "$TMPDIR"
  unset FAKE_HOST
  eval "$1"' fake_host "$*"
