// The events of a simulation: a hash over all of them, to compare two runs of one seed, and the
// last events as text, for people.
//
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

namespace lockstep::sim {

class Trace {
 public:
  explicit Trace(std::function<int64_t()> now_ms) : now_ms_(std::move(now_ms)) {}

  // Cuts texts at this directory's name.
  void cut_at(std::string directory) { directory_ = std::move(directory); }
  // Also prints everything to stdout.
  void print_all() { prints_ = true; }

  // `what` happened to `who`; a and b are its numbers.
  void add(std::string_view what, std::string_view who, uint64_t a = 0, uint64_t b = 0,
           std::string_view text = {});

  uint64_t hash() const { return hash_; }
  uint64_t events() const { return events_; }
  const std::deque<std::string>& last() const { return last_; }

 private:
  static constexpr size_t kKept = 80;

  std::function<int64_t()> now_ms_;
  std::string directory_;
  bool prints_ = false;
  uint64_t hash_ = 0;
  uint64_t events_ = 0;
  std::deque<std::string> last_;
};

}  // namespace lockstep::sim
