#!/bin/sh
# In the place of ssh for mpirun (--mca plm_rsh_agent): "connects" to a host of hosts.py by its
# address. $HOSTS_NAME is what the names of the network namespaces begin with.
while [ "${1#-}" != "$1" ]; do shift; done
number=$((${1##*.} - 1))
shift
exec ip netns exec "$HOSTS_NAME-$number" unshare -u sh -c 'hostname "$0" && eval "$1"' \
  "host$number" "$*"
