// Memory that one process writes and others read: an anonymous memfd. Its owner seals it after it
// has mapped it, so that no other process can map it for writing or change its size. It has no
// name, cannot leak, and has no /dev/shm limit.
//
// INVARIANTS
//  S1 The owner maps first, then seals: FUTURE_WRITE, SHRINK, GROW, SEAL.
//  S2 A receiver maps read-only, and only after it has checked those seals and the announced size.
//
// Thread-safety: immutable after creation. Users synchronise access to the memory itself.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "comm/base/descriptors.h"
#include "comm/base/status.h"

namespace lockstep::link {

class Segment {
 public:
  // Zeroed. Memory is used only for touched pages.
  static Result<std::shared_ptr<Segment>> create(const char* name, size_t bytes);
  // Maps a peer's segment. Takes the descriptor.
  static Result<std::shared_ptr<Segment>> map_peer(Descriptor fd, size_t bytes);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  void* data() { return data_; }
  const void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  int fd() const { return fd_.get(); }

 private:
  Segment(Descriptor fd, void* data, size_t bytes)
      : fd_(std::move(fd)), data_(data), bytes_(bytes) {}

  Descriptor fd_;
  void* data_;
  size_t bytes_;
};

}  // namespace lockstep::link
