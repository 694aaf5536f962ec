// Where objects come from: files behind HTTP, in a bucket, on a slow mount. Told as they are in one
// listing, and read by ranges.
//
// INVARIANTS
//  O1 A read gives bytes of the very version that was listed, all that were asked for and no more,
//     or an error.
//  O2 Errors name object and source, and no secret.
//
// Codes of errors, by which is decided whether to ask again (retry.h):
//   kUnavailable  the source failed; kTimeout: it stalled; kBadData: the object is another one now
//   kRefused      the source knows us and says no, or not who we are
//   kNoInput      there is no such object, or the source cannot serve it as it has to
//   kUsage        the address is none
//   kAborted      we are stopping
//
// Thread-safety: all calls from any thread, several at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/status.h"

namespace lockstep::source {

struct ObjectInfo {
  std::string name;  // below the source; of a source that is one object: its last component
  uint64_t bytes = 0;
  std::string version;  // differs when the content does: an ETag, or size and time
};

class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  // For people and for names in the cache: the address, without secrets.
  virtual const std::string& place() const = 0;
  // Whether the address is that of one object; after list().
  virtual bool is_one_object() const = 0;
  // In any order. REQUIRES: called first, once.
  virtual Result<std::vector<ObjectInfo>> list() = 0;
  // [offset, offset + bytes) into `out`. REQUIRES: it lies within the object; bytes > 0.
  virtual Status read(const ObjectInfo& object, uint64_t offset, uint64_t bytes, uint8_t* out) = 0;
};

}  // namespace lockstep::source
