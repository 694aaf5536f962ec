// A store of objects ("blobs") under keys, in which a run's state can lie: a bucket.
//
// All safety rests on create(): of all that create one key, one wins. Nothing else of a store is
// relied on: neither that a list is complete, nor that two clocks agree, nor that an overwritten
// key is seen by all at once.
//
// INVARIANTS
//  K1 create() answers kDone only if the key was not there before this call, and has these bytes.
//     kWasThere says only that it is there: an answer may be lost, and then this call's own first
//     attempt may have made it. A caller who needs to know reads it, and compares.
//  K2 What get() and read() give are bytes that were written whole, or an error.
//  K3 An upload is an object only after complete(). Until complete() or abandon() the store keeps
//     its parts, and uploads() alone shows it, where the store can list uploads by a prefix.
//  K4 A call ends after its attempts, of which none begins when two minutes have passed, or when
//     the store is stopped. A completion may take ten minutes more.
//
// Codes of errors:
//   kUnavailable  the store failed, or stalled, at each attempt; it may pass
//   kRefused      it does not know us, or forbids this
//   kNoInput      there is no such bucket, upload or (read) object, or the store cannot do this
//   kBadData      an answer is larger than asked for, or bytes are not what was written
//   kAborted      Lockstep is stopping
// Messages name the key and the store, and no secret.
//
// Thread-safety: all calls from any thread, several at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"

namespace lockstep::store {

enum class Creation : uint8_t { kDone, kWasThere };

struct Blob {
  std::string key;  // in BlobStore's calls below its prefix
  uint64_t bytes = 0;
  std::string version;  // changes with the content: an ETag
  bool operator==(const Blob&) const = default;
};

inline constexpr uint32_t kMostParts = 10'000;  // of one upload, as in S3

struct Part {
  uint32_t number = 0;    // from 1 on; parts are joined in their order
  std::string etag = {};  // by which complete() names it
  uint64_t bytes = 0;
  std::optional<uint32_t> crc32c = {};  // what the store has of it; not every store keeps one
  bool operator==(const Part&) const = default;
};

struct Upload {
  std::string key;
  std::string id;
  bool operator==(const Upload&) const = default;
};

class BlobStore {
 public:
  virtual ~BlobStore() = default;

  virtual const std::string& place() const = 0;  // for people: "s3://bucket/prefix"

  virtual Result<Creation> create(const std::string& key, std::string_view bytes) = 0;
  virtual Status put(const std::string& key, std::string_view bytes) = 0;  // overwrites
  // Nothing if there is no such key. kBadData if it has more than `most_bytes`.
  virtual Result<std::optional<std::string>> get(const std::string& key, uint64_t most_bytes) = 0;
  // Fills `out` with the bytes from `offset` on. REQUIRES: `out` is not empty.
  virtual Status read(const std::string& key, uint64_t offset, std::span<uint8_t> out) = 0;
  // All whose keys begin with `prefix`, in any order. It may lag behind what was written.
  virtual Result<std::vector<Blob>> list(const std::string& prefix) = 0;
  virtual Status remove(const std::string& key) = 0;  // ok, too, if there is none

  // Every part but the last has at least 5 MiB.
  virtual Result<std::string> begin(const std::string& key) = 0;  // the upload's id
  virtual Result<Part> put_part(const std::string& key, const std::string& id, uint32_t number,
                                std::string_view bytes) = 0;
  virtual Result<std::vector<Part>> parts(const std::string& key, const std::string& id) = 0;
  // `parts` in the order of their numbers. Ok, too, if an attempt before did it.
  virtual Status complete(const std::string& key, const std::string& id,
                          const std::vector<Part>& parts) = 0;
  virtual Status abandon(const std::string& key, const std::string& id) = 0;  // ok if not known
  virtual Result<std::vector<Upload>> uploads(const std::string& prefix) = 0;
};

}  // namespace lockstep::store
