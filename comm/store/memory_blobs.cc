#include "comm/store/memory_blobs.h"

#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "comm/base/crc32c.h"
#include "comm/base/hash.h"

namespace lockstep::store {
namespace {

struct OpenUpload {
  std::string key;
  std::map<uint32_t, std::string> parts;
};

std::string etag_of(std::string_view bytes) {
  return "\"" + xxh3_hex(bytes.data(), bytes.size()) + "\"";
}

class MemoryBlobs final : public BlobStore {
 public:
  const std::string& place() const override { return place_; }

  Result<Creation> create(const std::string& key, std::string_view bytes) override {
    std::lock_guard lock(mutex_);
    return blobs_.emplace(key, bytes).second ? Creation::kDone : Creation::kWasThere;
  }

  Status put(const std::string& key, std::string_view bytes) override {
    std::lock_guard lock(mutex_);
    blobs_[key] = bytes;
    return Status::ok();
  }

  Result<std::optional<std::string>> get(const std::string& key, uint64_t most_bytes) override {
    std::lock_guard lock(mutex_);
    const auto found = blobs_.find(key);
    if (found == blobs_.end()) return std::optional<std::string>();
    if (found->second.size() > most_bytes)
      return Status(Code::kBadData, "cannot read " + place_ + "/" + key + ": it has more than " +
                                        std::to_string(most_bytes) + " bytes");
    return std::optional(found->second);
  }

  Status read(const std::string& key, uint64_t offset, std::span<uint8_t> out) override {
    std::lock_guard lock(mutex_);
    const auto found = blobs_.find(key);
    if (found == blobs_.end())
      return {Code::kNoInput, "cannot read " + place_ + "/" + key + ": not found"};
    const std::string& bytes = found->second;
    if (offset > bytes.size() || bytes.size() - offset < out.size())
      return {Code::kBadData, "cannot read " + place_ + "/" + key + ": it ends before that"};
    std::memcpy(out.data(), bytes.data() + offset, out.size());
    return Status::ok();
  }

  Result<std::vector<Blob>> list(const std::string& prefix) override {
    std::lock_guard lock(mutex_);
    std::vector<Blob> blobs;
    for (auto at = blobs_.lower_bound(prefix); at != blobs_.end() && at->first.starts_with(prefix);
         ++at)
      blobs.push_back({at->first, at->second.size(), etag_of(at->second)});
    return blobs;
  }

  Status remove(const std::string& key) override {
    std::lock_guard lock(mutex_);
    blobs_.erase(key);
    return Status::ok();
  }

  Result<std::string> begin(const std::string& key) override {
    std::lock_guard lock(mutex_);
    std::string id = "upload-" + std::to_string(++last_upload_);
    uploads_[id].key = key;
    return id;
  }

  Result<Part> put_part(const std::string& key, const std::string& id, uint32_t number,
                        std::string_view bytes) override {
    std::lock_guard lock(mutex_);
    OpenUpload* upload = find(key, id);
    if (upload == nullptr) return no_upload("upload a part of", key);
    if (number < 1 || number > kMostParts)
      return Status(Code::kNoInput, "cannot upload part " + std::to_string(number) + " of " + key +
                                        ": parts are numbered from 1 to 10,000");
    upload->parts[number] = bytes;
    return Part{number, etag_of(bytes), bytes.size(), crc32c(bytes)};
  }

  Result<std::vector<Part>> parts(const std::string& key, const std::string& id) override {
    std::lock_guard lock(mutex_);
    const OpenUpload* upload = find(key, id);
    if (upload == nullptr) return no_upload("list the parts of", key);
    std::vector<Part> parts;
    for (const auto& [number, bytes] : upload->parts)
      parts.push_back({number, etag_of(bytes), bytes.size(), crc32c(bytes)});
    return parts;
  }

  Status complete(const std::string& key, const std::string& id,
                  const std::vector<Part>& parts) override {
    std::lock_guard lock(mutex_);
    if (const auto done = completed_.find(id); done != completed_.end() && done->second == key)
      return Status::ok();
    const OpenUpload* upload = find(key, id);
    if (upload == nullptr) return no_upload("complete", key);
    std::string whole;
    uint32_t before = 0;
    for (const Part& part : parts) {
      const auto found = upload->parts.find(part.number);
      const bool is_it = found != upload->parts.end() && etag_of(found->second) == part.etag;
      if (!is_it || part.number <= before)
        return {Code::kNoInput, "cannot complete " + place_ + "/" + key + ": part " +
                                    std::to_string(part.number) + " is not there, or not in order"};
      before = part.number;
      whole += found->second;
    }
    blobs_[key] = std::move(whole);
    uploads_.erase(id);
    completed_[id] = key;
    return Status::ok();
  }

  Status abandon(const std::string& key, const std::string& id) override {
    std::lock_guard lock(mutex_);
    if (find(key, id) != nullptr) uploads_.erase(id);
    return Status::ok();
  }

  Result<std::vector<Upload>> uploads(const std::string& prefix) override {
    std::lock_guard lock(mutex_);
    std::vector<Upload> uploads;
    for (const auto& [id, upload] : uploads_)
      if (upload.key.starts_with(prefix)) uploads.push_back({upload.key, id});
    return uploads;
  }

 private:
  // REQUIRES: mutex_ is held.
  OpenUpload* find(const std::string& key, const std::string& id) {
    const auto found = uploads_.find(id);
    return found == uploads_.end() || found->second.key != key ? nullptr : &found->second;
  }

  Status no_upload(const std::string& what, const std::string& key) const {
    return {Code::kNoInput, "cannot " + what + " " + place_ + "/" + key + ": no such upload"};
  }

  const std::string place_ = "memory:";
  std::mutex mutex_;
  std::map<std::string, std::string> blobs_;
  std::map<std::string, OpenUpload> uploads_;
  std::map<std::string, std::string> completed_;  // id: key
  uint64_t last_upload_ = 0;
};

}  // namespace

std::unique_ptr<BlobStore> make_memory_blobs() {
  return std::make_unique<MemoryBlobs>();
}

}  // namespace lockstep::store
