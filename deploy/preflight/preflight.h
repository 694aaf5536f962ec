// `lockstep preflight JOB.yaml --run-dir DIR` as a launcher starts it, one process a rank: finds
// out in seconds, and says in words, what a run would otherwise meet as a time-out.
//
// The ranks meet in a folder of the run directory, which is half of the test:
//
//   DIR/preflight-LAUNCH.tmp/
//     token       of this preflight, made by rank 0
//     lock        rank 0 holds it while it is there
//     begun       rank 0: how many ranks there are; the others wait for it
//     address-R   where rank R listens
//     report-R    rank R's findings, its last word but for rank 0, which prints all of them
//     verdict     rank 0's last word: the exit code of all
//
//   rank 0                                     rank R > 0
//   makes token, lock, begun                   waits for begun; gives up after wait_ms
//   both: tries what a run does in a directory; listens; writes its address; connects to rank 0 and
//   to the ranks 1, 2, 4, 8, ... after it (so that every host is reached from many others); reports
//   waits for all reports, wait_ms long
//   prints, writes verdict, ends               waits for verdict, ends with it
//
// Invariants
//   1. Nothing of a run that is in the directory is read, locked or changed.
//   2. Rank 0 has printed before any rank ends with another code than 0, for mpirun ends all ranks
//      then; unless a rank sees no folder at all: that says so itself, kLastWordsMs before it ends.
//   3. The folder is gone afterwards, unless rank 0 was killed; the next one with its name clears
//   it.
//
// Thread-safety: the main thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/wire/job.pb.h"

namespace lockstep::preflight {

inline constexpr int64_t kPollMs = 50;
inline constexpr int64_t kLastWordsMs = 3'000;

struct Options {
  std::string run_dir;
  std::string launch_id;  // no other launch has it; empty: a single process
  uint32_t rank = 0;
  uint32_t size = 1;
  std::string host;     // what this machine is called
  std::string version;  // of this program
  int64_t wait_ms = 60'000;
  wire::JobSpec job;  // comm.network, comm.advertise, comm.tls
};

// Gives the exit code: 0, or 78 when something would not work. Of rank 0 it prints to stdout.
Result<int> run(const Options& options);

// Whom a rank connects to: rank 0, and those 1, 2, 4, 8, ... after it. Ascending.
std::vector<uint32_t> doors_of(uint32_t rank, uint32_t size);

}  // namespace lockstep::preflight
