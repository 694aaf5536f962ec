// How the agents of one launch find each other: a small file in the run directory, which all ranks
// see. Rank 0 prepares the run, has the coordinator and ends the run; the other ranks follow.
//
//   RUN_DIR/launch.json = {"launch": ID, "state": S, "beat": N, "exit_code": C}
//
//   writer   rank 0, while it holds run.lock; it replaces the file atomically
//   readers  the other ranks, which poll and never write
//
//   rank 0                                       rank 1, 2, ...
//   locks the directory ──▶ preparing            waits
//     reads data, writes the run's files
//     while that goes on ──▶ beat + 1            waits on: rank 0 is at it
//   starts the coordinator ──▶ running           starts its worker; finds coordinator.json, which
//                                                rank 0 has removed if it was an earlier launch's
//   the run is over, all is said ──▶ ended, C    hears the coordinator's goodbye, then waits for
//                                                this, then ends with C
//
// If rank 0 cannot lock the directory (a bad job file, a directory in use), it says so in
// launch-refused.json, which has the same form and is always `ended`.
//
// Invariants
//   1. A record counts only for the launch that it names, so what a killed launch left says nothing
//      to the next one. The ID is the launcher's (launch_env.h); no clock is compared.
//   2. Rank 0 writes `running` after job.pb, facts.pb and token, so that readers find the files of
//      this launch. `ended` is its last act: mpirun kills all ranks as soon as one ends with a code
//      other than 0, so no rank does before rank 0 has said everything.
//   3. With two launches in one directory, the second rank 0 gets no lock and writes only its
//      refusal, so no rank of the second launch follows the first.
//   4. A waiting rank gives up if the record of its launch does not change for kLaunchSilenceMs:
//      rank 0 died, or sees another directory. Under mpirun it does not come to that, because
//      mpirun ends all ranks as soon as one fails.
//
// Kubernetes replaces ranks one by one, within the same launch:
//
//   rank 0 died while running   the next rank 0 takes the run over; the record stays `running`
//   the run ended with 75       the next rank 0 writes `preparing` again; the others wait for it
//   another rank died           the next one sees `running` and joins
//
// Thread-safety: free functions and values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "comm/base/prng.h"
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

inline constexpr int64_t kLaunchPollMs = 100;         // between two looks, at first
inline constexpr int64_t kLaunchPollMostMs = 2'000;   // and in the end
inline constexpr int64_t kLaunchBeatMs = 5'000;       // between two beats
inline constexpr int64_t kLaunchSayMs = 10'000;       // until a rank that waits says for what
inline constexpr int64_t kLaunchSilenceMs = 600'000;  // reading data may take long between two

Status write_launch_record(const std::string& run_dir, const LaunchRecord& record);

// Makes the directory if it is missing.
Status write_launch_refusal(const std::string& run_dir, const std::string& launch_id,
                            int exit_code);

// The record of that launch, else of any launch; none if there is no readable record.
std::optional<LaunchRecord> read_launch_record(const std::string& run_dir,
                                               const std::string& launch_id);

// The pause of a waiting rank after so many looks: one second at the first pace, then ever longer,
// with jitter. So a thousand ranks open fewer than 2,000 files a second of a network file system.
int64_t look_pause_ms(uint32_t looks, Prng& jitter);

// Rank 0's side.
class LaunchRecorder {
 public:
  LaunchRecorder(std::string run_dir, std::string launch_id)
      : run_dir_(std::move(run_dir)), record_{.launch_id = std::move(launch_id)} {}

  Status preparing() { return write_launch_record(run_dir_, record_); }
  // Call it as often as you like: it writes every kLaunchBeatMs. running() reports errors.
  void still_preparing(int64_t now_ms);
  Status running();
  Status ended(int exit_code);

 private:
  std::string run_dir_;
  LaunchRecord record_;
  std::optional<int64_t> beat_ms_;  // of the last one
};

// Tells a waiting rank what follows from the records that it sees. Pure.
class LaunchWait {
 public:
  enum class Verdict { kWait, kJoin, kEnded, kGiveUp };

  // `begins_again`: a new rank 0 continues a launch that ended with 75, so this rank waits on.
  LaunchWait(std::string launch_id, int64_t now_ms, bool begins_again = false)
      : launch_id_(std::move(launch_id)),
        say_ms_(now_ms + kLaunchSayMs),
        changed_ms_(now_ms),
        begins_again_(begins_again) {}

  Verdict see(const std::optional<LaunchRecord>& record, int64_t now_ms);
  // True once, when it has waited for kLaunchSayMs: its user should hear for what.
  bool should_say(int64_t now_ms);
  // The newest record of this launch.
  const std::optional<LaunchRecord>& record() const { return seen_; }

 private:
  std::string launch_id_;
  std::optional<int64_t> say_ms_;  // empty: it has said so
  int64_t changed_ms_;
  bool begins_again_;
  std::optional<LaunchRecord> seen_;
};

}  // namespace lockstep
