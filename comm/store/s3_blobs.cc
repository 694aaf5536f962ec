#include "comm/store/s3_blobs.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <utility>

#include "comm/base/crc32c.h"
#include "comm/base/limits.h"
#include "comm/http/content_range.h"
#include "comm/store/s3_answers.h"
#include "comm/store/s3_bucket.h"
#include "comm/store/s3_pages.h"

namespace lockstep::store {
namespace {

using http::HttpAnswer;
using http::HttpRequest;
using http::Method;

constexpr int64_t kCompletionMs = 600'000;    // S3 may take minutes to join parts
constexpr std::chrono::minutes kMostTime(2);  // after it no attempt begins
constexpr uint64_t kAnswerBytes = limits::kHttpAnswerBytes;

bool may_pass(Code code) {
  return code == Code::kUnavailable || code == Code::kTimeout;
}

bool is_good(const HttpAnswer& answer) {
  return answer.status >= 200 && answer.status < 300;
}

bool is_no_upload(const HttpAnswer& answer) {
  return answer.status == 404 && s3_error_code(answer.body) == "NoSuchUpload";
}

bool is_no_key(const HttpAnswer& answer) {
  return answer.status == 404 && s3_error_code(answer.body) == "NoSuchKey";
}

bool is_no_bucket(const HttpAnswer& answer) {
  return answer.status == 404 && s3_error_code(answer.body) == "NoSuchBucket";
}

// A body that is what was written, whole.
bool is_whole(const HttpAnswer& answer) {
  return !answer.is_encoded && answer.content_length == static_cast<int64_t>(answer.body.size());
}

// The mark by which a store names an object that was joined of so many parts.
bool is_joined_of(const std::string& etag, size_t parts) {
  return etag.find("-" + std::to_string(parts) + "\"") != std::string::npos;
}

bool is_checksum(const std::string& header) {
  return header.starts_with("x-amz-checksum-");
}

bool has_checksum(const HttpRequest& request) {
  return std::ranges::any_of(request.headers, is_checksum);
}

class S3Blobs final : public BlobStore {
 public:
  S3Blobs(const std::string& url, const S3Options& options, const std::atomic<bool>& stop)
      : options_(options),
        stop_(stop),
        where_(parse_s3_url(url)),
        place_("s3://" + where_.bucket + (where_.prefix.empty() ? "" : "/" + where_.prefix)),
        bucket_(where_.bucket, options.stall_s, stop, options.env, options.now) {}

  const std::string& place() const override { return place_; }

  Result<Creation> create(const std::string& key, std::string_view bytes) override {
    const uint32_t crc = crc32c(bytes);
    Creation creation = Creation::kDone;
    LOCKSTEP_RETURN_IF_ERROR(again("create", key, [&]() -> Status {
      HttpRequest request = put_of(bytes, crc);
      request.headers.emplace_back("If-None-Match: *");
      LOCKSTEP_ASSIGN_OR_RETURN(const HttpAnswer answer, send(request, key));
      creation = answer.status == 412 ? Creation::kWasThere : Creation::kDone;
      if (answer.status == 501)
        return {Code::kNoInput, error_of(answer).message() +
                                    ": the store cannot create a key only if it is not there "
                                    "(If-None-Match); use another store"};
      // 409: another request is changing this key. It says nothing about who wins.
      return answer.status == 412 ? Status::ok() : written(answer);
    }));
    return creation;
  }

  Status put(const std::string& key, std::string_view bytes) override {
    const uint32_t crc = crc32c(bytes);
    return again("write", key, [&]() -> Status {
      HttpRequest request = put_of(bytes, crc);
      LOCKSTEP_ASSIGN_OR_RETURN(const HttpAnswer answer, send(request, key));
      return written(answer);
    });
  }

  Result<std::optional<std::string>> get(const std::string& key, uint64_t most_bytes) override {
    std::optional<std::string> bytes;
    LOCKSTEP_RETURN_IF_ERROR(again("read", key, [&]() -> Status {
      bytes.reset();
      HttpRequest request{.most_bytes = most_bytes};
      LOCKSTEP_ASSIGN_OR_RETURN(HttpAnswer answer, send(request, key));
      if (is_no_key(answer)) return Status::ok();
      if (!is_good(answer)) return bucket_.error_in(answer);
      if (answer.is_longer)
        return {Code::kBadData, "it has more than " + std::to_string(most_bytes) +
                                    " bytes, the limit for this kind of object"};
      if (answer.content_length < 0)
        return {Code::kUnavailable, "the server does not say how long its answer is"};
      if (answer.status != 200 || !is_whole(answer)) return not_whole();
      bytes = std::move(answer.body);
      return Status::ok();
    }));
    return bytes;
  }

  Status read(const std::string& key, uint64_t offset, std::span<uint8_t> out) override {
    const uint64_t last = offset + out.size() - 1;
    Status ends{Code::kBadData, "it ends before byte " + std::to_string(last)};
    return again("read", key, [&]() -> Status {
      HttpRequest request{.range = std::to_string(offset) + "-" + std::to_string(last),
                          .most_bytes = out.size()};
      LOCKSTEP_ASSIGN_OR_RETURN(const HttpAnswer answer, send(request, key));
      if (answer.status == 416) return ends;
      if (!is_good(answer)) return bucket_.error_in(answer);
      const auto range = http::parse_content_range(answer.content_range);
      if (range && range->first == offset && range->total <= last) return ends;
      const bool is_all = answer.status == 200 && offset == 0 && !answer.is_longer;
      const bool is_range = range && range->first == offset && range->last == last;
      if ((!is_all && !is_range) || answer.body.size() != out.size() || answer.is_encoded)
        return not_whole();
      std::memcpy(out.data(), answer.body.data(), out.size());
      return Status::ok();
    });
  }

  Result<std::vector<Blob>> list(const std::string& prefix) override {
    LOCKSTEP_ASSIGN_OR_RETURN(std::vector<Blob> blobs,
                              bucket_.list(full(prefix), place_, [&](const auto& try_it) {
                                return again("list", prefix, try_it);
                              }));
    keep_below(prefix, blobs);
    return blobs;
  }

  Status remove(const std::string& key) override {
    return again("remove", key, [&]() -> Status {
      HttpRequest request{.method = Method::kDelete};
      LOCKSTEP_ASSIGN_OR_RETURN(const HttpAnswer answer, send(request, key));
      const bool is_gone = answer.status == 404 && !is_no_bucket(answer);
      return is_good(answer) || is_gone ? Status::ok() : bucket_.error_in(answer);
    });
  }

  Result<std::string> begin(const std::string& key) override {
    std::string id;
    LOCKSTEP_RETURN_IF_ERROR(again("begin an upload of", key, [&]() -> Status {
      HttpRequest request{.method = Method::kPost,
                          .headers = {"Content-Type: application/octet-stream"},
                          .most_bytes = kAnswerBytes};
      if (sends_checksums_.load()) request.headers.emplace_back("x-amz-checksum-algorithm: CRC32C");
      LOCKSTEP_ASSIGN_OR_RETURN(const HttpAnswer answer, send(request, key, {{"uploads", ""}}));
      if (!is_good(answer)) return bucket_.error_in(answer);
      LOCKSTEP_ASSIGN_OR_RETURN(id, parse_upload_id(answer.body));
      return Status::ok();
    }));
    return id;
  }

  Result<Part> put_part(const std::string& key, const std::string& id, uint32_t number,
                        std::string_view bytes) override {
    Part part{.number = number, .bytes = bytes.size()};
    const uint32_t crc = crc32c(bytes);
    LOCKSTEP_RETURN_IF_ERROR(again("upload a part of", key, [&]() -> Status {
      HttpRequest request = put_of(bytes, crc);
      LOCKSTEP_ASSIGN_OR_RETURN(
          HttpAnswer answer,
          send(request, key, {{"partNumber", std::to_string(number)}, {"uploadId", id}}));
      if (Status kept = written(answer); !kept.is_ok()) return kept;
      part.crc32c = has_checksum(request) ? std::optional(crc) : std::nullopt;
      part.etag = std::move(answer.etag);
      return Status::ok();
    }));
    return part;
  }

  Result<std::vector<Part>> parts(const std::string& key, const std::string& id) override {
    return pages<Part>("list the parts of", key, key, kMostParts, {{"uploadId", id}}, parse_parts);
  }

  Status complete(const std::string& key, const std::string& id,
                  const std::vector<Part>& parts) override {
    const std::string xml = completion_of(parts);
    bool is_gone = false;
    const Status done = again("complete", key, [&]() -> Status {
      HttpRequest request{.method = Method::kPost,
                          .body = xml,
                          .headers = {"Content-Type: application/xml"},
                          .most_bytes = kAnswerBytes,
                          .timeout_ms = kCompletionMs};
      LOCKSTEP_ASSIGN_OR_RETURN(const HttpAnswer answer, send(request, key, {{"uploadId", id}}));
      Status status = is_good(answer) ? check_completion(answer.body) : bucket_.error_in(answer);
      // The second: a good answer, with NoSuchUpload in it.
      is_gone = is_no_upload(answer) || (is_good(answer) && status.code() == Code::kNoInput);
      return status;
    });
    // An attempt whose answer was lost may have completed it.
    return is_gone && is_joined(key, parts) ? Status::ok() : done;
  }

  Status abandon(const std::string& key, const std::string& id) override {
    return again("abandon the upload of", key, [&]() -> Status {
      HttpRequest request{.method = Method::kDelete};
      LOCKSTEP_ASSIGN_OR_RETURN(const HttpAnswer answer, send(request, key, {{"uploadId", id}}));
      const bool is_gone = answer.status == 404 && !is_no_bucket(answer);
      return is_good(answer) || is_gone ? Status::ok() : bucket_.error_in(answer);
    });
  }

  Result<std::vector<Upload>> uploads(const std::string& prefix) override {
    LOCKSTEP_ASSIGN_OR_RETURN(
        std::vector<Upload> uploads,
        pages<Upload>("list the uploads of", prefix, std::nullopt, limits::kSourceObjects,
                      {{"prefix", full(prefix)}, {"uploads", ""}}, parse_uploads));
    keep_below(prefix, uploads);
    return uploads;
  }

 private:
  std::string full(const std::string& key) const {
    return where_.prefix.empty() ? key : where_.prefix + "/" + key;
  }

  // `crc`: crc32c(bytes).
  HttpRequest put_of(std::string_view bytes, uint32_t crc) const {
    HttpRequest request{.method = Method::kPut,
                        .body = bytes,
                        .headers = {"Content-Type: application/octet-stream"},
                        .most_bytes = kAnswerBytes};
    if (sends_checksums_.load())
      request.headers.push_back("x-amz-checksum-crc32c: " + crc32c_text(crc));
    return request;
  }

  static Status not_whole() {
    return {Code::kUnavailable, "the server sent other bytes than Lockstep asked for"};
  }

  // A good answer to a body names what was written.
  Status written(const HttpAnswer& answer) {
    if (!is_good(answer)) return bucket_.error_in(answer);
    if (!answer.etag.empty()) return Status::ok();
    return {Code::kNoInput,
            "the server's answer to what was sent does not name it (ETag); is a proxy in between?"};
  }

  // Leaves those whose keys lie below `prefix`, and cuts the store's own prefix off: some servers
  // know none.
  template <typename Item>
  void keep_below(const std::string& prefix, std::vector<Item>& items) const {
    std::erase_if(items, [&](const Item& item) { return !item.key.starts_with(full(prefix)); });
    for (Item& item : items) item.key.erase(0, full("").size());
  }

  // Asks without the checksum where the server does not know it (501, or 400 with that code). If
  // that helps, it gets none any more.
  Result<HttpAnswer> send(HttpRequest& request, const std::optional<std::string>& key,
                          const Query& query = {}) {
    if (key && full(*key).empty()) return Status(Code::kUsage, "an object has to have a key");
    const std::string whole = key ? full(*key) : "";
    auto answer = bucket_.send(request, whole, query);
    if (!answer.is_ok() || !has_checksum(request)) return answer;
    const bool is_unknown =
        answer->status == 501 ||
        (answer->status == 400 && s3_error_code(answer->body) == "InvalidArgument");
    if (!is_unknown) return answer;
    std::erase_if(request.headers, is_checksum);
    answer = bucket_.send(request, whole, query);
    if (answer.is_ok() && is_good(*answer)) sends_checksums_ = false;
    return answer;
  }

  // Tries until it is ok, or cannot be. `what` and `key` say what it is.
  Status again(const std::string& what, const std::string& key,
               const std::function<Status()>& try_it) {
    const auto begin = std::chrono::steady_clock::now();
    const auto goes_on = [&](Code code) {
      return may_pass(code) && std::chrono::steady_clock::now() - begin < kMostTime;
    };
    const Tried tried = with_retries(options_.retries, stop_, goes_on, try_it);
    if (tried.status.is_ok() || tried.status.code() == Code::kAborted) return tried.status;
    const std::string count =
        tried.attempts > 1 ? " (" + std::to_string(tried.attempts) + " attempts)" : "";
    const Code code =
        tried.status.code() == Code::kTimeout ? Code::kUnavailable : tried.status.code();
    return {code, "cannot " + what + " " + place_ + (key.empty() ? "" : "/" + key) + count + ": " +
                      tried.status.message()};
  }

  template <typename Item>
  Result<std::vector<Item>> pages(const std::string& what, const std::string& name,
                                  const std::optional<std::string>& key, size_t most,
                                  const Query& query,
                                  Result<Page<Item>> (*parse)(std::string_view)) {
    return all_pages<Item>(place_, most, query, [&](const Query& asked) -> Result<Page<Item>> {
      Page<Item> page;
      LOCKSTEP_RETURN_IF_ERROR(again(what, name, [&]() -> Status {
        HttpRequest request{.most_bytes = limits::kSourceListBytes};
        LOCKSTEP_ASSIGN_OR_RETURN(const HttpAnswer answer, send(request, key, asked));
        if (!is_good(answer)) return bucket_.error_in(answer);
        LOCKSTEP_ASSIGN_OR_RETURN(page, parse(answer.body));
        return Status::ok();
      }));
      return page;
    });
  }

  // Whether `key` is an object of as many bytes and parts. False where nobody says.
  bool is_joined(const std::string& key, const std::vector<Part>& parts) {
    uint64_t bytes = 0;
    for (const Part& part : parts) bytes += part.bytes;
    bool is_it = false;
    const Status looked = again("look at", key, [&]() -> Status {
      HttpRequest request{.method = Method::kHead};
      LOCKSTEP_ASSIGN_OR_RETURN(const HttpAnswer answer, send(request, key));
      is_it = answer.status == 200 && answer.content_length == static_cast<int64_t>(bytes) &&
              is_joined_of(answer.etag, parts.size());
      return is_good(answer) || answer.status == 404 ? Status::ok() : bucket_.error_in(answer);
    });
    return looked.is_ok() && is_it;
  }

  const S3Options options_;
  const std::atomic<bool>& stop_;
  const BucketPlace where_;
  const std::string place_;
  S3Bucket bucket_;
  std::atomic<bool> sends_checksums_{true};
};

}  // namespace

std::unique_ptr<BlobStore> make_s3_blobs(const std::string& url, const S3Options& options,
                                         const std::atomic<bool>& stop) {
  return std::make_unique<S3Blobs>(url, options, stop);
}

}  // namespace lockstep::store
