#!/usr/bin/env bash
# What an image holds besides Debian's packages: the programs, and the libraries that they load from
# anywhere but the system's folders, which are LibTorch and what came with its wheel.
#   deploy/container/collect.sh build/release/bin OUT
# makes OUT/bin and OUT/lib; the loader finds the latter through /etc/ld.so.conf.d.
set -euo pipefail

bin=$1
out=$2
programs=(lockstep lockstep-coordinator lockstep-worker)
mkdir -p "$out/bin" "$out/lib"

cp "${programs[@]/#/$bin/}" "$out/bin/"
shopt -s nullglob
for module in "$bin"/*.so; do cp "$module" "$out/bin/"; done
if [[ -d $bin/python ]]; then cp -r "$bin/python" "$out/bin/"; fi  # what scripts import
for file in "$out"/bin/* "$out"/bin/python/lockstep/*.so; do
  [[ -f $file ]] || continue
  ldd "$file" | while read -r name _ path _; do
    [[ $path != not ]] || { echo "error: $file needs $name, which is not here." >&2; exit 70; }
    case $path in
      /lib/* | /lib64/* | /usr/lib/* | '' | '('*) ;;
      *) [[ -e $out/lib/$name ]] || cp -lL "$path" "$out/lib/$name" 2>/dev/null ||
        cp -L "$path" "$out/lib/$name" ;;
    esac
  done
done
