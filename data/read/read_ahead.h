// The stored bytes of samples, read ahead of who makes batches of them, in an order that is known.
//
//   order ──▶ thread: place in the ring, submit ──▶ reader ──▶ ready ──▶ take(n) ──▶ gone
//               └── sleeps when the ring is full, until a quarter of it is free ──┘
//
// INVARIANTS
//  A1 take(n) gives the bytes of the n-th sample of the order, whatever reads them.
//  A2 What is read and not gone never takes more than Reading::ahead_limit_bytes(), and no more
//     than limits::kReadAheadSamples samples; a sample that is larger than all of it is read by
//     who takes it, and of one without an extent he gets nothing. Memory is allocated once.
//  A3 Of a sample that cannot be read only its taker hears.
//
// Thread-safety: take() and stop() from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "comm/base/status.h"
#include "data/dataset/dataset.h"
#include "data/read/reading.h"

namespace lockstep::data {

class ReadAhead {
 public:
  // The next sample; nothing at the end. Called on a thread of its own.
  using OrderFn = std::function<std::optional<uint64_t>()>;

  // Bytes of one sample, there until this goes.
  class Held {
   public:
    Held(ReadAhead* from, uint64_t n, std::span<const uint8_t> bytes)
        : from_(from), n_(n), bytes_(bytes) {}
    Held(Held&& other) noexcept
        : from_(std::exchange(other.from_, nullptr)), n_(other.n_), bytes_(other.bytes_) {}
    ~Held() {
      if (from_ != nullptr) from_->give_back(n_);
    }
    Held& operator=(Held&&) = delete;
    std::span<const uint8_t> bytes() const { return bytes_; }

   private:
    friend class ReadAhead;
    void is_of(std::span<const uint8_t> bytes) { bytes_ = bytes; }
    ReadAhead* from_;
    uint64_t n_;
    std::span<const uint8_t> bytes_;
  };

  // `dataset` and `reading` outlive it. kConfig when the memory is not there, kInternal when a
  // thread is not. REQUIRES: the first sample has an extent.
  static Result<std::unique_ptr<ReadAhead>> start(const Dataset& dataset, OrderFn order,
                                                  Reading& reading);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // Waits for it. Every n is taken once; whoever holds one takes no later one before all earlier
  // ones are taken. `own`: memory of the taker, for what is too large for the ring. No bytes where
  // the sample has no extent. kBadData as Reader; kAborted after stop().
  Result<Held> take(uint64_t n, std::vector<uint8_t>& own);

  // Nobody waits from here on.
  void stop();

 private:
  struct Impl;
  explicit ReadAhead(std::unique_ptr<Impl> impl);
  void give_back(uint64_t n);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::data
