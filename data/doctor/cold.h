// Makes samples cold: puts their pages out of the system's memory, so the next read goes to the
// disk or the server.
//
// The system need not comply. It keeps pages that
// - were written and are not on the disk yet
// - another process has mapped
// - belong to a file system in memory, or to some network file systems.
//
// So make_cold() checks the result. The system reports residency only for files that the user owns
// or may write to; make_cold() counts all other files as still in memory.
//
// Remote data that come through a cache on this machine (Dataset::far) stay as they are: their
// files here are only places.
//
// Thread-safety: free functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data/dataset/dataset.h"

namespace lockstep::doctor {

struct Coldness {
  double share = 0;     // of the samples' bytes that are not in memory now, 0 to 1
  std::string why_not;  // if less than all: the rest of a sentence for people
};

Coldness make_cold(const data::Dataset& dataset, std::span<const uint64_t> samples);

}  // namespace lockstep::doctor
