// Lets readers take turns at reads that are needed anyhow, to see which is the fastest here.
//
//   pread: some samples ▶ mmap: some ▶ pread: some ▶ mmap: some ▶ winner()
//
// Every reader has several turns, and its best one counts, because another program may slow down a
// turn. The first reader wins unless another is clearly faster.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/io/reader.h"

namespace lockstep::data {

class ReaderTrial {
 public:
  static constexpr uint32_t kTurns = 2;       // of each reader
  static constexpr uint64_t kTurnReads = 64;  // end a turn, as kTurnBytes do
  static constexpr uint64_t kTurnBytes = 8'000'000;
  static constexpr double kClearly = 1.1;  // times as fast

  // REQUIRES: not empty. A single reader has won.
  explicit ReaderTrial(std::vector<std::unique_ptr<Reader>> readers);

  bool is_over() const { return turn_ == kTurns * rates_.size() || rates_.size() == 1; }
  // The reader whose turn it is. REQUIRES: not over.
  Reader& reader() { return *readers_[turn_ % readers_.size()]; }
  // Whether the turn has enough reads. It ends when nothing is in flight any more.
  bool turn_is_full() const { return reads_ >= kTurnReads || bytes_ >= kTurnBytes; }

  void submitted(uint64_t bytes) {
    reads_ += 1;
    bytes_ += bytes;
  }
  void spent(int64_t ns) { ns_ += ns; }  // in the reader's calls
  void end_turn();

  // REQUIRES: over; called once. The other readers are gone afterwards.
  std::unique_ptr<Reader> winner();
  std::string figures() const;  // "pread 410 MB/s, mmap 520 MB/s"; "" with a single reader

 private:
  std::vector<std::unique_ptr<Reader>> readers_;
  std::vector<std::string> names_;
  std::vector<double> rates_;  // bytes a second, of the best turn
  size_t turn_ = 0;
  uint64_t reads_ = 0;  // of this turn
  uint64_t bytes_ = 0;
  int64_t ns_ = 0;
};

}  // namespace lockstep::data
