#include "data/source/stores/s3_store.h"

#include <functional>
#include <utility>

#include "comm/http/http_client.h"
#include "comm/store/s3_bucket.h"
#include "data/source/base/retry.h"
#include "data/source/stores/ranged_get.h"

namespace lockstep::source {
namespace {

class S3Store final : public ObjectStore {
 public:
  S3Store(std::string url, const CacheOptions& options, const std::atomic<bool>& stop)
      : url_(std::move(url)),
        options_(options),
        stop_(stop),
        place_(store::parse_s3_url(url_)),
        bucket_(place_.bucket, options.stall_s, stop) {}

  const std::string& place() const override { return url_; }
  bool is_one_object() const override { return is_one_; }

  Result<std::vector<ObjectInfo>> list() override {
    const std::string directory = place_.prefix.empty() ? "" : place_.prefix + "/";
    LOCKSTEP_ASSIGN_OR_RETURN(std::vector<ObjectInfo> objects, list_below(directory));
    std::erase_if(objects, [](const ObjectInfo& object) { return object.name.ends_with('/'); });
    if (!objects.empty()) {
      for (ObjectInfo& object : objects) object.name.erase(0, directory.size());
      return objects;
    }
    // It is no directory of objects. Is it an object of this very name?
    if (!place_.prefix.empty()) {
      LOCKSTEP_ASSIGN_OR_RETURN(objects, list_below(place_.prefix));
    }
    std::erase_if(objects,
                  [this](const ObjectInfo& object) { return object.name != place_.prefix; });
    if (objects.empty())
      return Status(Code::kNoInput,
                    "there are no objects below " + url_ + "; check the bucket and the prefix");
    objects[0].name = place_.prefix.substr(place_.prefix.rfind('/') + 1);
    is_one_ = true;
    return objects;
  }

  Status read(const ObjectInfo& object, uint64_t offset, uint64_t bytes, uint8_t* out) override {
    const std::string key = is_one_                 ? place_.prefix
                            : place_.prefix.empty() ? object.name
                                                    : place_.prefix + "/" + object.name;
    const auto send = [&](const http::HttpRequest& request) -> Result<http::HttpAnswer> {
      auto answer = bucket_.send(request, key);
      if (!answer.is_ok() || answer->status < 300) return answer;
      const Status error = bucket_.error_in(*answer);
      return error.code() == Code::kRefused ? Result<http::HttpAnswer>(error) : answer;
    };
    return get_range(send, {}, object, offset, bytes, out);
  }

 private:
  Result<std::vector<ObjectInfo>> list_below(const std::string& prefix) {
    const auto again = [this](const std::function<Status()>& try_it) {
      return with_retries({.attempts = options_.attempts}, stop_, url_, try_it);
    };
    LOCKSTEP_ASSIGN_OR_RETURN(std::vector<store::Blob> blobs, bucket_.list(prefix, url_, again));
    std::vector<ObjectInfo> objects;
    objects.reserve(blobs.size());
    for (store::Blob& blob : blobs)
      objects.push_back({std::move(blob.key), blob.bytes, std::move(blob.version)});
    return objects;
  }

  const std::string url_;
  const CacheOptions options_;
  const std::atomic<bool>& stop_;
  const store::BucketPlace place_;
  store::S3Bucket bucket_;
  bool is_one_ = false;
};

}  // namespace

std::unique_ptr<ObjectStore> make_s3_store(const std::string& url, const CacheOptions& options,
                                           const std::atomic<bool>& stop) {
  return std::make_unique<S3Store>(url, options, stop);
}

}  // namespace lockstep::source
