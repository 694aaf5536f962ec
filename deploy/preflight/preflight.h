// `lockstep preflight JOB.yaml --run-dir DIR` under a launcher, one process a rank: finds in
// seconds, and says in words, what would end a run in a time-out.
//
// The ranks meet in a folder of the run directory, which is half of the test:
//
//   DIR/preflight-LAUNCH.tmp/
//     token       of this preflight, made by rank 0
//     lock        rank 0 holds it while it is there
//     begun       rank 0: how many ranks there are; the others wait for it
//     address-R   where rank R listens
//     report-R    rank R's findings, and its last word; rank 0 prints all of them
//     verdict     rank 0's last word: the exit code of all
//
//   rank 0                                     rank R > 0
//   makes token, lock, begun                   waits for begun; gives up after wait_ms
//   both: try what a run does in a directory; listen; write the address; connect to rank 0 and to
//   the ranks 1, 2, 4, 8, ... after it (so that many hosts reach every host); report
//   waits for all reports, wait_ms long
//   prints, writes verdict, ends               waits for verdict, ends with it
//
// Invariants
//   1. A preflight reads, locks and changes nothing of a run in the directory.
//   2. Rank 0 prints before any rank ends with another code than 0, because mpirun then ends all
//      ranks. A rank that sees no folder at all says so itself, kLastWordsMs before it ends.
//   3. Folder and run directory are gone afterwards, as far as rank 0 made them. If it was killed,
//      the next preflight with its name clears the folder, and a run passes it over.
//
// Thread-safety: the main thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/status.h"
#include "comm/run/job/job.pb.h"

namespace lockstep::preflight {

inline constexpr int64_t kPollMs = 50;
inline constexpr int64_t kLastWordsMs = 3'000;

struct PreflightOptions {
  std::string run_dir;
  std::string launch_id;  // unique to the launch; empty: a single process
  uint32_t rank = 0;
  uint32_t size = 1;
  std::string host;     // name of this machine
  std::string version;  // of this program
  int64_t wait_ms = 60'000;
  wire::JobSpec job;  // comm.network, comm.advertise, comm.tls
};

// Returns the exit code: 0, or 78 if something would not work. Rank 0 prints to stdout.
Result<int> run(const PreflightOptions& options);

// The ranks that a rank connects to: rank 0, and those 1, 2, 4, 8, ... after it. Ascending.
std::vector<uint32_t> doors_of(uint32_t rank, uint32_t size);

}  // namespace lockstep::preflight
