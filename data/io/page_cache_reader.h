// Reads through the page cache from one thread, for local file systems. submit() tells the kernel
// of every read (POSIX_FADV_WILLNEED), so the disk has many reads at a time.
//
//   submit(): open, WILLNEED ──▶ the disk reads ──▶ wait(): the oldest few are copied out
//
// Small reads come a few at a time: a disk answers one after another, and a thread that wakes up
// for each of them costs more than the copy.
//
// Thread-safety: as Reader.
#pragma once

#include <memory>

#include "data/io/reader.h"

namespace lockstep::data {

std::unique_ptr<Reader> make_page_cache_reader();

}  // namespace lockstep::data
