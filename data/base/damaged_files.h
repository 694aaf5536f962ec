// Files that cannot be read while others can: a look at many files goes on after one of them, and
// tells all.
//
// Thread-safety: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "comm/base/status.h"

namespace lockstep::data {

// The damage of two sets of files: what both say if both are kBadData. REQUIRES: `first` is ok or
// kBadData.
Status joined_damage(const Status& first, const Status& second);

class DamagedFiles {
 public:
  // If `status` is kBadData, keeps it as what is wrong with file number i, and returns ok. Returns
  // other errors: the machine failed, or nothing is there.
  Status take(uint64_t i, Status status);

  // REQUIRES of the rest: no thread calls take() any more.
  bool empty() const { return messages_.empty(); }
  bool has(uint64_t i) const { return messages_.contains(i); }
  const std::map<uint64_t, std::string>& messages() const { return messages_; }  // by number

  // Returns kBadData that names the first damaged files in their order. If there is only one,
  // returns its message as it is.
  Status status() const;

 private:
  std::mutex mutex_;
  std::map<uint64_t, std::string> messages_;
};

}  // namespace lockstep::data
