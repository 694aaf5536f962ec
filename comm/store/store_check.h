// Tries whether a store can hold a run: what it promises, what this host may do there, how fast it
// is.
//
// It works below PREFIX/lockstep-check/RANDOM/, and leaves nothing there.
//
// Thread-safety: one check at a time for each store.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "comm/base/status.h"
#include "comm/store/blob_store.h"

namespace lockstep::store {

struct StoreFinding {
  enum class Grade : uint8_t { kGood, kWarning, kBad };
  std::string
      subject;  // "create", "condition", "race", "read", "list", "upload", "abandon", "remove"
  Grade grade = Grade::kGood;
  std::string text;  // what was seen; for a bad finding also the remedy
};

const char* text_of(StoreFinding::Grade grade);  // "good"

struct StoreCheckOptions {
  uint64_t part_bytes = 16'777'216;  // of the first part of an upload, whose speed is told
  uint32_t racers = 8;               // that create one key at once
};

// Tells each finding as it comes. False if the store cannot hold a run. What cannot be tried after
// a bad finding is left out.
bool check_store(BlobStore& store, const StoreCheckOptions& options,
                 const std::function<void(const StoreFinding&)>& tell);

}  // namespace lockstep::store
