// Memory for runs of bytes that are taken and freed in the same order. Every run lies in one piece.
//
//   [ free | taken first, next, ... | free ]   a run that does not fit before the end starts at 0
//
// Thread-safety: one thread at a time. Different threads may use the memory of different runs.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>

namespace lockstep::data {

class ByteRing {
 public:
  static constexpr uint64_t kAlignment = 64;  // a cache line, so that no two threads share one

  // `bytes`: all that it ever holds. Memory that is never written costs none. Nothing if the
  // machine has not the memory.
  static std::optional<ByteRing> make(uint64_t bytes) {
    ByteRing ring;
    ring.size_ = aligned(bytes);
    ring.memory_.reset(static_cast<uint8_t*>(std::aligned_alloc(kAlignment, ring.size_)));
    if (ring.memory_ == nullptr) return std::nullopt;
    return ring;
  }

  uint64_t size() const { return size_; }
  uint64_t used() const { return end_ - begin_; }

  // A place for `bytes`; nothing if there is no room. An empty ring has room for up to its size.
  std::optional<uint64_t> take(uint64_t bytes) {
    if (begin_ == end_) begin_ = end_ = aligned_to(end_, size_);
    const uint64_t wanted = aligned(bytes);
    const bool is_cut = end_ % size_ + wanted > size_;
    const uint64_t place = is_cut ? aligned_to(end_, size_) : end_;
    if (place + wanted - begin_ > size_) return std::nullopt;
    end_ = place + wanted;
    return place;
  }

  uint8_t* at(uint64_t place) const { return memory_.get() + place % size_; }

  // Frees everything up to the end of the run at `place`.
  void free_to(uint64_t place, uint64_t bytes) { begin_ = place + aligned(bytes); }

 private:
  struct Free {
    void operator()(uint8_t* memory) const { std::free(memory); }
  };

  static uint64_t aligned_to(uint64_t value, uint64_t unit) {
    return (value + unit - 1) / unit * unit;
  }
  static uint64_t aligned(uint64_t bytes) { return aligned_to(bytes, kAlignment); }

  std::unique_ptr<uint8_t, Free> memory_;
  uint64_t size_ = 0;
  uint64_t begin_ = 0;  // begin_ and end_ only grow; a place is one of them modulo the size
  uint64_t end_ = 0;
};

}  // namespace lockstep::data
