// DIR/history-thin.jsonl: one line for each hundred steps of history.jsonl, for plots and tools
// that need not every step of a long run.
//
//   {"step":200,"steps":100,"epoch":0,"loss":2.31,"loss_min":2.1,"loss_max":2.5,"lr":0.001,
//    "samples":12800,"skipped":0,"bytes":12790,"crc":1234567}
//
// `step` is the last step of the line, `steps` how many it sums up, `loss` the mean of the losses
// that are numbers (null: none is), `lr` the last step's, `metrics` as `loss`. `bytes` is where
// history.jsonl goes on after the step. `crc` is the CRC-32C of a text: the decimal number `crc` of
// the line before (0 for the first line), then the line up to the comma before "crc".
//
// The file follows from the text of history.jsonl alone. The coordinator appends to history.jsonl
// first, and cuts history.jsonl first.
//
// INVARIANTS
//  N1 After follow() the file has a line for each whole hundred of the history's steps, whatever
//     was there before: it keeps lines that have their check and lie in the history, and makes the
//     others again from history.jsonl.
//  N2 If somebody deletes or replaces the file under the run, the next line to write finds out, and
//     the coordinator makes the file again.
//
// Thread-safety: one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "comm/base/descriptors.h"
#include "comm/base/ids.h"
#include "comm/base/status.h"

namespace lockstep::coordinator {

inline constexpr Step kThinSteps = 100;  // in a line

// The path of the thinned history next to a history.jsonl.
std::string thin_path(const std::string& history);

// Where a thinned history stands.
struct ThinMark {
  Step lines = 0;    // of history.jsonl that it sums up
  off_t bytes = 0;   // their length
  uint32_t crc = 0;  // of its last line
  off_t end = 0;     // its own length
};

// Reads a line with its newline. Nothing if it is not the one that follows `before`.
std::optional<ThinMark> read_thin_mark(std::string_view line, const ThinMark& before);

class ThinHistory {
 public:
  // `history`: the path of history.jsonl. Makes the file if it is not there.
  static Result<std::unique_ptr<ThinHistory>> open(const std::string& history);

  // Brings the file to a history of `lines` whole lines in `bytes` bytes.
  Status follow(Step lines, off_t bytes);
  // These whole lines have just been appended to the history.
  Status add(std::string_view text);

 private:
  // Sums over the steps since the last line.
  struct Sums {
    Step steps = 0;
    uint64_t epoch = 0;
    uint64_t finite = 0;
    double loss = 0;
    double loss_min = 0;
    double loss_max = 0;
    double lr = 0;
    uint64_t samples = 0;
    uint64_t skipped = 0;
    off_t bytes = 0;
    struct Metric {
      uint64_t finite = 0;
      double sum = 0;
    };
    std::map<std::string, Metric> metrics;
  };

  ThinHistory(std::string history, std::string path)
      : history_(std::move(history)), path_(std::move(path)) {}
  Status open_file();
  Status keep(Step lines, off_t bytes);
  void take(std::string_view line);
  std::string line_of_sums();
  Status write();

  const std::string history_;
  const std::string path_;
  Descriptor fd_;
  ThinMark mark_;
  Sums sums_;
  std::string pending_;  // lines of this file
};

}  // namespace lockstep::coordinator
