// The stored bytes of samples, read ahead of the loader in the order in which it takes them.
//
//   order ──▶ thread: place in the ring, submit ──▶ reader ──▶ ready ──▶ take(n) ──▶ given back
//               └── sleeps when the ring is full, until a quarter of it is free ──┘
//
// INVARIANTS
//  A1 take(n) gives the bytes of the n-th sample of the order, whatever reads them.
//  A2 What is read and not given back takes at most PrefetchPolicy::ahead_limit_bytes(), and is at
//     most limits::kReadAheadSamples samples. The taker itself reads a sample that is larger than
//     the ring, and gets nothing for a sample without an extent. Memory is allocated once.
//  A3 Only its taker hears of a sample that cannot be read.
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

namespace lockstep::data {

class Dataset;
class PrefetchPolicy;

class SampleBuffer {
 public:
  // The next sample; nothing at the end. Called on a thread of the buffer's own.
  using OrderFn = std::function<std::optional<uint64_t>()>;

  // Bytes of one sample, valid as long as this lives.
  class Held {
   public:
    Held(SampleBuffer* from, uint64_t n, std::span<const uint8_t> bytes)
        : from_(from), n_(n), bytes_(bytes) {}
    Held(Held&& other) noexcept
        : from_(std::exchange(other.from_, nullptr)), n_(other.n_), bytes_(other.bytes_) {}
    ~Held() {
      if (from_ != nullptr) from_->give_back(n_);
    }
    Held& operator=(Held&&) = delete;
    std::span<const uint8_t> bytes() const { return bytes_; }

   private:
    friend class SampleBuffer;
    void is_of(std::span<const uint8_t> bytes) { bytes_ = bytes; }
    SampleBuffer* from_;
    uint64_t n_;
    std::span<const uint8_t> bytes_;
  };

  // `dataset` and `policy` outlive it. kConfig when the machine has not the memory, kInternal when
  // it has not the threads. REQUIRES: the first sample has an extent.
  static Result<std::unique_ptr<SampleBuffer>> start(const Dataset& dataset, OrderFn order,
                                                     PrefetchPolicy& policy);
  ~SampleBuffer();
  SampleBuffer(const SampleBuffer&) = delete;
  SampleBuffer& operator=(const SampleBuffer&) = delete;

  // Waits for the n-th sample. Every n is taken once; a thread that holds one takes no later one
  // before all earlier ones are taken. `own`: the taker's memory, for a sample larger than the
  // ring. No bytes for a sample without an extent. kBadData as Reader; kAborted after stop().
  Result<Held> take(uint64_t n, std::vector<uint8_t>& own);

  // From here on, no thread waits.
  void stop();

 private:
  struct Impl;
  explicit SampleBuffer(std::unique_ptr<Impl> impl);
  void give_back(uint64_t n);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::data
