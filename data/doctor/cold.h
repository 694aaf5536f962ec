// Makes samples cold: their pages are put out of the memory of the system, so that the next read
// goes to the disk, or to the server.
//
// That is a wish. It is not granted for pages that were written and are not on the disk yet, that
// another process has mapped or that file systems in memory hold, nor by some of a network; so what
// became of it is looked at. The system tells that only of files that one owns or may write to; of
// others it is taken as not granted.
//
// Data that are far away and come through a cache on this machine (Dataset::far) are left alone:
// their files here are only places.
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
  std::string why_not;  // where that is less than all, the rest of a sentence for people
};

Coldness make_cold(const data::Dataset& dataset, std::span<const uint64_t> samples);

}  // namespace lockstep::doctor
