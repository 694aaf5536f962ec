// A store of objects: files on an HTTP server, in a bucket, on a slow mount. A store lists its
// objects once, and reads ranges of them.
//
// INVARIANTS
//  O1 A read gives exactly the bytes that were asked for, of the version that was listed, or an
//     error.
//  O2 Errors name object and source, and no secret.
//
// Codes of errors; retry.h decides by them whether to ask again:
//   kUnavailable  the source failed
//   kTimeout      the source stalled
//   kBadData      the object is another one now
//   kRefused      the source refuses us, or does not know us
//   kNoInput      there is no such object, or the source cannot serve it
//   kUsage        not an address
//   kAborted      Lockstep is stopping
//
// Thread-safety: all calls from any thread, several at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/base/status.h"

namespace lockstep::source {

struct ObjectInfo {
  std::string name;  // below the source; the last component if the source is one object
  uint64_t bytes = 0;
  std::string version;  // changes with the content: an ETag, or size and time
};

class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  // The address without secrets, for people and for names in the cache.
  virtual const std::string& place() const = 0;
  // Whether the address is one object. REQUIRES: after list().
  virtual bool is_one_object() const = 0;
  // In any order. REQUIRES: called first, once.
  virtual Result<std::vector<ObjectInfo>> list() = 0;
  // Reads [offset, offset + bytes) into `out`. REQUIRES: within the object; bytes > 0.
  virtual Status read(const ObjectInfo& object, uint64_t offset, uint64_t bytes, uint8_t* out) = 0;
};

}  // namespace lockstep::source
