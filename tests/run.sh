#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test; prints each tier's time, what failed and
# how to replay it, and at the end "N passed, N failed, N flaky" and the line "N passed, N failed".
set -euo pipefail

tiers=(format build unit link headers golden sim multiproc cluster cuda sanitizers fuzz)

usage() {
  cat <<TEXT
usage: tests/run.sh [--tier NAME]...
       tests/run.sh --night [TIER]...   what takes hours; tests/run.sh --night --help

Without --tier, every tier in this order:
  format      clang-format 14 on the tree, clang-tidy 14 on the lines that differ from
              \$LOCKSTEP_DIFF_BASE (where the branch left origin/main, or else the commit before)
  build       preset release: programs and tests
  unit        what needs LibTorch, starts no thread, or has bits of optimised code as its point
  link        the coordinator and the command line load no LibTorch; pages quote what the source says
  headers     every header compiles by itself
  golden      losses against PyTorch's, from numbers in tests/golden
  sim         whole clusters in one thread, from seeds; every planted bug is found
  multiproc   real processes on this machine
  cluster     real launchers (mpirun, Slurm), Prometheus, hosts and pods made of namespaces
  cuda        kernels, the GPU module, the NCCL backend and what of tests/gpu needs no Torch compile
              and link; skipped without CUDA 13 and nccl.h
  sanitizers  unit tests of everything without LibTorch: all under ASan + UBSan, under TSan those
              with threads whose folders differ from \$LOCKSTEP_DIFF_BASE
  fuzz        every parser: its corpus, and new inputs for \$LOCKSTEP_FUZZ_SECONDS (0) seconds
A failed test of the tiers multiproc and cluster runs once more, alone. If it passes then, it is
FLAKY: a defect, which is listed in tests/STATUS.md until it is mended. More than two fail the run.
Logs: build/logs/TIER.log
TEXT
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/deploy/shell/common.sh"

chosen=()
while (($# > 0)); do
  case $1 in
    --tier) chosen+=("${2:-}"); shift ;;
    --tier=*) chosen+=("${1#--tier=}") ;;
    --night) shift; exec "${without_aslr[@]}" python3 "$root/tests/harness/night.py" "$@" ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; fail 64 "unknown argument '$1'." ;;
  esac
  shift
done
for tier in "${chosen[@]}"; do
  [[ " ${tiers[*]} " == *" $tier "* ]] || fail 64 "no tier '$tier'; there are: ${tiers[*]}."
done
((${#chosen[@]} > 0)) || chosen=("${tiers[@]}")

cd "$root"
mkdir -p build/logs
rm -rf build/logs/flaky
passed=0
failed=0
flaky=()
most_flaky=2  # one more fails the run
built=0  # preset release, by this call
replays=()
words=""  # of what failed
report=()

# failed_check COUNT REPLAY: what no ctest counts.
failed_check() {
  failed=$((failed + $1))
  replays+=("$2")
}

# ctest_tier LOG PRESET LABEL JOBS [FLAKY_DIR [NAMES]]: runs the tests with LABEL and counts them.
# FLAKY_DIR: what fails runs once more, alone; this is for tests of real processes, where chance has
# a part. NAMES: only those that match.
ctest_tier() {
  local log=$1 preset=$2 label=$3 jobs=$4 junit=$PWD/build/logs/$2-$3.xml line
  local well=0 lost=0 skipped=0 chance=0
  rm -f "$junit"
  # Without a size ctest keeps 1 KB of what a test says, and a part says its counts at its end.
  logged "$log" "$label tests, preset $preset" "${without_aslr[@]}" \
    ctest --test-dir "build/$preset" -L "^$label\$" ${6:+-R "$6"} -j "$jobs" --output-on-failure \
    --no-tests=error --output-junit "$junit" \
    --test-output-size-passed 100000000 --test-output-size-failed 100000000 || true
  if [[ ! -s $junit ]]; then
    tail -n 20 "$log" >&2
    failed_check 1 "ctest --test-dir build/$preset -L '^$label\$'   # ran no tests; see $log"
    return
  fi
  while IFS= read -r line; do
    case $line in
      count\ *) read -r _ well lost skipped chance <<<"$line" ;;
      flaky\ *)
        flaky+=("${line#flaky }")
        say "    FLAKY ${line#flaky }: it failed, and passed alone; logs: $5/${line#flaky }.log"
        ;;
      skip\ *) [[ -z ${5:-} ]] || say "    SKIPPED: ${line#skip }" ;;
      replay\ *) replays+=("${line#replay }") ;;
      word\ *) words+=${line#word }$'\n' ;;
    esac
    [[ $line != "word -- "* ]] || say "    FAILED: ${line#word -- }"
  done < <("${without_aslr[@]}" python3 tests/harness/ctest_report.py "$junit" "build/$preset" \
    ${5:+"$5"} || echo "count 0 1 0 0")
  passed=$((passed + well))
  failed=$((failed + lost))
  say "    $well passed, $lost failed, $skipped skipped, $chance flaky"
}

# The commit that the tree is compared with: what a branch began at, on main the commit before.
diff_base() {
  local base
  base=${LOCKSTEP_DIFF_BASE:-$(git merge-base HEAD origin/main 2>/dev/null || true)}
  if [[ -z $base || $(git rev-parse "$base") == "$(git rev-parse HEAD)" ]]; then
    base=$(git rev-parse --verify --quiet HEAD~1 || true)
  fi
  echo "$base"
}

# The version is pinned: each formats and finds other things.
format_tier() {
  local base built_here files=()
  mapfile -t files < <(git ls-files '*.cc' '*.h' '*.cu' '*.cuh')
  if clang-format-14 --dry-run -Werror "${files[@]}" >"$1" 2>&1; then
    passed=$((passed + 1))
  else
    grep -m5 'error:' "$1" >&2
    failed_check 1 "git ls-files '*.cc' '*.h' '*.cu' '*.cuh' | xargs clang-format-14 -i"
  fi
  base=$(diff_base)
  # With renames found: a file that only moved has nothing new.
  if [[ -n $base ]]; then
    git diff -M -U0 --diff-filter=d "$base" -- '*.cc' |
      python3 tests/harness/patch_of_code.py >build/logs/tidy.patch
  else
    : >build/logs/tidy.patch
  fi
  mapfile -t files < <(sed -n 's|^+++ b/||p' build/logs/tidy.patch)
  say "  clang-tidy on what ${#files[@]} sources have that ${base:0:12} has not ..."
  ((${#files[@]} > 0)) || return 0
  configure_and_build . tidy "$1" generated_headers || {
    failed_check 1 "cmake --preset tidy && cmake --build build/tidy --target generated_headers"
    return
  }
  # Only what this machine builds: without CUDA its sources have no command to be compiled with.
  mapfile -t files < <(printf '%s\n' "${files[@]}" |
    grep -xFf <(sed -n "s|^ *\"file\": \"$PWD/\(.*\)\".*|\1|p" build/tidy/compile_commands.json))
  ((${#files[@]} > 0)) || return 0
  built_here=$(printf '%s\n' "${files[@]}" | sed 's/[.+]/\\&/g' | paste -sd '|')
  # It ends with 0 whatever it finds.
  if ! clang-tidy-diff-14.py -clang-tidy-binary clang-tidy-14 -p1 -path build/tidy -quiet \
    -j "$(nproc)" -regex "($built_here)" <build/logs/tidy.patch >build/logs/tidy.log 2>&1 ||
    grep -Eq ' (warning|error): ' build/logs/tidy.log; then
    grep -E ' (warning|error): ' build/logs/tidy.log | sort -u | head -n 10 >&2
    failed_check 1 "clang-tidy-14 -p build/tidy FILE   # findings: build/logs/tidy.log"
  else
    passed=$((passed + 1))
  fi
}

build_tier() {
  built=1
  configure_and_build . release "$1" all ||
    failed_check 1 "cmake --preset release && cmake --build build/release"
}

# at_a_time LEAST: how many tests with real processes run at a time. Their processes mostly sleep:
# they wait for leases and launchers, and the slots of long runs are slow (tests/harness/slow_slots.cc).
at_a_time() { echo $(($(nproc) > $1 ? $(nproc) : $1)); }

# A third test beside two that compute: some mostly wait for a deadline.
unit_tier() { ctest_tier "$1" release unit $(($(nproc) * 3 / 2)); }
link_tier() { ctest_tier "$1" release link "$(nproc)"; }
golden_tier() { ctest_tier "$1" release golden 1; }
sim_tier() { ctest_tier "$1" release sim "$(nproc)"; }
multiproc_tier() { ctest_tier "$1" release multiproc "$(at_a_time 8)" build/logs/flaky; }
cluster_tier() { ctest_tier "$1" release cluster "$(at_a_time 10)" build/logs/flaky; }

headers_tier() {
  if configure_and_build . release "$1" all_verify_interface_header_sets; then
    passed=$((passed + 1))
  else
    failed_check 1 "cmake --build build/release --target all_verify_interface_header_sets"
  fi
}

# Nothing runs on a device here, and nothing of it needs LibTorch: the code is compiled for every
# architecture, linked, and looked into.
cuda_tier() {
  if ! cmake --preset cuda >>"$1" 2>&1 &&
    grep -Eq 'No (CUDA toolkit 13|nccl\.h) was found' "$1"; then
    say "  SKIPPED: no CUDA toolkit 13 with NCCL here: the GPU module was not compiled, nor linked."
    return
  fi
  if configure_and_build . cuda "$1" cuda_programs; then
    ctest_tier "$1" cuda cuda "$(nproc)"
  else
    failed_check 1 "cmake --preset cuda && cmake --build build/cuda --target cuda_programs"
  fi
}

# Test programs with a source in a folder that differs from diff_base; all programs where something
# that all need differs. build/tsan/test_folders.txt has a line "PROGRAM FOLDER..." each.
touched_programs() {
  local base program folders folder
  declare -A is_changed=()
  base=$(diff_base)
  while IFS= read -r folder; do is_changed[$folder]=1; done < <(
    {
      [[ -z $base ]] || git diff -U0 "$base" -- '*.cc' '*.h' |
        python3 tests/harness/patch_of_code.py --removals | sed -n 's/^\(---\|+++\) [ab]\///p'
      [[ -z $base ]] || git diff --name-only "$base" -- '*.proto' '*.cmake' '*CMakeLists.txt'
      git ls-files --others --exclude-standard
    } | grep -E '\.(cc|h|proto|cmake)$|CMakeLists.txt$' | xargs -r -n 1 dirname | sort -u)
  while read -r program folders; do
    for folder in $folders ${base:+tests/support deploy/cmake}; do
      [[ -z ${is_changed[$folder]:-} ]] || { echo "$program"; break; }
    done
  done <build/tsan/test_folders.txt
}

# Under ThreadSanitizer only what a change touches; the night runs all.
sanitizers_tier() {
  local programs=()
  if configure_and_build . asan-ubsan "$1" test_programs; then
    ctest_tier "$1" asan-ubsan unit $(($(nproc) * 3 / 2))
  else
    failed_check 1 "cmake --preset asan-ubsan && cmake --build build/asan-ubsan"
  fi
  logged "$1" "configuring preset tsan" cmake --preset tsan || {
    failed_check 1 "cmake --preset tsan"
    return
  }
  mapfile -t programs < <(touched_programs)
  say "  ThreadSanitizer: ${#programs[@]} of $(wc -l <build/tsan/test_folders.txt) programs touched"
  ((${#programs[@]} > 0)) || return 0
  if configure_and_build . tsan "$1" "${programs[@]}"; then
    ctest_tier "$1" tsan unit "$(nproc)" "" "^($(IFS='|'; echo "${programs[*]}"))\."
  else
    failed_check 1 "cmake --preset tsan && cmake --build build/tsan --target ${programs[*]}"
  fi
}

# fuzz_one TARGET SECONDS: replays the corpus of the repository, which is only read, and then tries new
# inputs for so long, which go below build/fuzz. Its status goes to build/logs/NAME.status.
fuzz_one() {
  local target=$1 seconds=$2 name status=0
  name=$(basename "$target")
  mkdir -p "build/fuzz/corpus/$name"
  local corpus=("build/fuzz/corpus/$name")
  [[ ! -d tests/fuzz/corpus/${name#fuzz_} ]] || corpus+=("tests/fuzz/corpus/${name#fuzz_}")
  local length=(-runs=0)
  ((seconds == 0)) || length=(-max_total_time="$seconds")
  "${without_aslr[@]}" "$target" "${length[@]}" -timeout=10 -rss_limit_mb=2048 \
    -artifact_prefix="build/fuzz/crashes/$name-" "${corpus[@]}" >"build/logs/$name.log" 2>&1 ||
    status=$?
  echo "$status" >"build/logs/$name.status"
}

fuzz_tier() {
  local seconds=${LOCKSTEP_FUZZ_SECONDS:-0} target targets=() running=0 name
  configure_and_build . asan-ubsan "$1" fuzz_targets || {
    failed_check 1 "cmake --preset asan-ubsan && cmake --build build/asan-ubsan --target fuzz_targets"
    return
  }
  for target in build/asan-ubsan/fuzz/fuzz_*; do [[ ! -x $target ]] || targets+=("$target"); done
  ((${#targets[@]} > 0)) || failed_check 1 "ls build/asan-ubsan/fuzz   # there are no fuzz targets"
  say "  ${#targets[@]} targets: corpus and $seconds s of new inputs, $(nproc) at a time ..."
  mkdir -p build/fuzz/crashes
  rm -f build/logs/fuzz_*.status
  for target in "${targets[@]}"; do
    if ((running >= $(nproc))); then
      wait -n || true
      running=$((running - 1))
    fi
    fuzz_one "$target" "$seconds" &
    running=$((running + 1))
  done
  wait
  for target in "${targets[@]}"; do
    name=$(basename "$target")
    if [[ $(cat "build/logs/$name.status" 2>/dev/null) == 0 ]]; then
      passed=$((passed + 1))
    else
      tail -n 5 "build/logs/$name.log" >&2
      failed_check 1 "$target build/fuzz/crashes/$name-*   # log: build/logs/$name.log"
    fi
  done
}

deploy/install_deps.sh --for tests
for tier in "${chosen[@]}"; do
  begin=$SECONDS
  say "== $tier"
  log=build/logs/$tier.log
  : >"$log"
  # What runs the programs of this preset must not run those of an older source.
  if [[ $tier =~ ^(unit|link|golden|sim|multiproc|cluster)$ ]] && ((!built)); then
    build_tier build/logs/build.log
  fi
  "${tier}_tier" "$log"
  report+=("$(printf '  %-11s %s' "$tier" "$(duration $((SECONDS - begin)))")")
done

say
say "time of each tier:"
printf '%s\n' "${report[@]}" "  $(printf '%-11s %s' together "$(duration $SECONDS)")"
if [[ -n $words ]]; then
  say
  say "what failed, its last lines (all of them: build/logs/TIER.log):"
  printf '%s' "$words"
fi
if ((${#replays[@]} > 0)); then
  say
  say "to replay what failed:"
  printf '  %s\n' "${replays[@]}"
fi
say
if ((${#flaky[@]} > most_flaky)); then
  say "more than $most_flaky flaky tests: they count as failed. Logs: build/logs/flaky"
  passed=$((passed - ${#flaky[@]}))
  failed=$((failed + ${#flaky[@]}))
fi
say "$passed passed, $failed failed, ${#flaky[@]} flaky"
say "$passed passed, $failed failed"
((failed == 0))
