// How the agents of one launch find each other: one small file in the run directory, which all of
// them see. Rank 0 prepares the run, has the coordinator and ends the run; the other ranks follow.
//
//   RUN_DIR/launch.json = {"launch": ID, "state": S, "beat": N, "exit_code": C}
//
//   writer   rank 0 alone, and only while it holds run.lock; replaced atomically
//   readers  the other ranks, by polling; they never write
//
//   rank 0                                       rank 1, 2, ...
//   locks the directory ──▶ preparing            waits
//     reads data, writes the run's files
//     while that goes on ──▶ beat + 1            waits on: somebody is at it
//   starts the coordinator ──▶ running           starts its worker; finds coordinator.json, which
//                                                rank 0 has removed if it was an earlier launch's
//   the run is over, all is said ──▶ ended, C    hears the coordinator's goodbye, then waits for
//                                                this, then ends with C
//
// A launch whose rank 0 cannot even lock the directory (a bad job file, a directory in use) says so
// beside it, in launch-refused.json, of the same form and always `ended`.
//
// Invariants
//   1. A record counts only for ranks of the launch that it names: what a launch that was killed
//      has left behind says nothing to the next one, whichever of both a rank sees. The ID is the
//      launcher's (launch_env.h); no clock is compared.
//   2. `running` is written after job.pb, facts.pb and token: who reads it reads those of this
//      launch. `ended` is rank 0's last act: mpirun kills all ranks as soon as one ends with a code
//      other than 0, so nobody does before rank 0 has said what there is to say.
//   3. Of two launches in one directory the second one's rank 0 is refused the lock and writes
//      nothing but its refusal, so no rank of the second follows the first.
//   4. A rank that waits gives up after kLaunchSilenceMs in which the record of its launch
//      did not change: rank 0 died, or sees another directory. Where the
//      launcher ends all ranks as soon as one fails (mpirun) it does not come to that.
//
// Where ranks that end are made again one by one (Kubernetes), the launch stays the same:
//
//   rank 0 died while running   the next one takes the run over; the record stays `running`
//   the run ended with 75       the next rank 0 writes `preparing` again, and the others wait for
//   it another rank died           the next one sees `running` and joins
//
// Thread-safety: free functions and values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "comm/base/status.h"

namespace lockstep {

enum class LaunchState { kPreparing, kRunning, kEnded };

struct LaunchRecord {
  std::string launch_id;
  LaunchState state = LaunchState::kPreparing;
  uint64_t beat = 0;
  int exit_code = 0;  // of kEnded
  bool operator==(const LaunchRecord&) const = default;
};

inline constexpr int64_t kLaunchPollMs = 100;         // between two looks at it
inline constexpr int64_t kLaunchBeatMs = 5'000;       // between two beats
inline constexpr int64_t kLaunchSilenceMs = 600'000;  // reading data may take long between two

Status write_launch_record(const std::string& run_dir, const LaunchRecord& record);

// Makes the directory if there is none.
Status write_launch_refusal(const std::string& run_dir, const std::string& launch_id,
                            int exit_code);

// Of that launch, or else of any. None when there is none, or nothing that could be one.
std::optional<LaunchRecord> read_launch_record(const std::string& run_dir,
                                               const std::string& launch_id);

// Rank 0's side.
class LaunchRecorder {
 public:
  LaunchRecorder(std::string run_dir, std::string launch_id)
      : run_dir_(std::move(run_dir)), record_{.launch_id = std::move(launch_id)} {}

  Status preparing() { return write_launch_record(run_dir_, record_); }
  // As often as one likes; written every kLaunchBeatMs. An error is left to running().
  void still_preparing(int64_t now_ms);
  Status running();
  Status ended(int exit_code);

 private:
  std::string run_dir_;
  LaunchRecord record_;
  std::optional<int64_t> beat_ms_;  // of the last one
};

// What a rank that waits makes of what it sees. Pure.
class LaunchWait {
 public:
  enum class Verdict { kWait, kJoin, kEnded, kGiveUp };

  // `begins_again`: a launch that ended with 75 is gone on with by a rank 0 that is made again, so
  // that end is waited out.
  LaunchWait(std::string launch_id, int64_t now_ms, bool begins_again = false)
      : launch_id_(std::move(launch_id)), changed_ms_(now_ms), begins_again_(begins_again) {}

  Verdict see(const std::optional<LaunchRecord>& record, int64_t now_ms);
  // The newest of this launch.
  const std::optional<LaunchRecord>& record() const { return seen_; }

 private:
  std::string launch_id_;
  int64_t changed_ms_;
  bool begins_again_;
  std::optional<LaunchRecord> seen_;
};

}  // namespace lockstep
