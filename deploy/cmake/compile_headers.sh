#!/bin/sh
# compile_headers.sh COMPILER ARGUMENT...: compiles, and writes beside a precompiled header (-o FILE.pch)
# a FILE.pch.sum of what it is made of. The header itself holds absolute paths; ccache takes the sum in
# its place (CCACHE_PCH_EXTSUM), so what one clone has compiled with it another one need not.
set -e
"$@"
for word; do
  case $previous in
    -o) output=$word ;;
    -MF) depfile=$word ;;
  esac
  previous=$word
done
case $output in
  *.pch) ;;
  *) exit 0 ;;
esac
{
  "$1" --version
  sed -e '1s/^[^:]*://' -e 's/\\$//' "$depfile" | tr -s ' ' '\n' | grep . | grep -v "cmake_pch\.hxx" |
    xargs cat
} | sha256sum | cut -d ' ' -f 1 >"$output.sum"
