// Mapped files, for local file systems: the kernel is told of the bytes ahead of their use
// (MADV_WILLNEED), and they are copied when it is their turn.
//
//   submit(): map, WILLNEED ──▶ ... ──▶ wait(): the oldest is copied out, and unmapped
//
// What has been cut off, or what a disk fails to give, reads as zeros (guarded_range.h): those that
// did are not handed on.
//
// Thread-safety: as Reader; the thread must not block SIGBUS.
#pragma once

#include <memory>

#include "data/io/reader.h"

namespace lockstep::data {

std::unique_ptr<Reader> make_mmap_reader();

}  // namespace lockstep::data
