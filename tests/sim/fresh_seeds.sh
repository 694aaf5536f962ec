#!/usr/bin/env bash
# usage: fresh_seeds.sh SIM COUNT
#
# Plays COUNT seeds that nobody has played. The first one comes from the commit's hash. Outside of a
# git checkout it comes from the hash of the program SIM, which changes with the code, too.
set -euo pipefail

sim=$1
count=$2
if hash=$(git -C "$(dirname "${BASH_SOURCE[0]}")" rev-parse --verify --quiet HEAD 2>/dev/null); then
  echo "seeds of commit ${hash:0:12}"
else
  hash=$(sha256sum "$sim")
  echo "no git checkout here: seeds of the program $sim (sha256 ${hash:0:12})"
fi
first=$((1000000 + 16#${hash:0:6}))
last=$((first + count - 1))
echo "sim --seeds $first-$last"
exec "$sim" --seeds "$first-$last" --keep-going
