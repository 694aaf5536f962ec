#include "comm/store/s3_blobs.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <utility>

#include "comm/base/crc32c.h"
#include "comm/base/limits.h"
#include "comm/http/content_range.h"
#include "comm/store/s3_answers.h"
#include "comm/store/s3_bucket.h"

namespace lockstep::store {
namespace {

using http::HttpAnswer;
using http::HttpRequest;
using http::Method;

constexpr int64_t kCompletionMs = 600'000;  // S3 may take minutes to join parts

bool may_pass(Code code) {
  return code == Code::kUnavailable || code == Code::kTimeout;
}

bool is_good(const HttpAnswer& answer) {
  return answer.status >= 200 && answer.status < 300;
}

// Of an answer to a request for one key. A server that names no code means the key.
bool is_no_key(const HttpAnswer& answer) {
  const std::string code = s3_error_code(answer.body);
  return answer.status == 404 && (code.empty() || code == "NoSuchKey" || code == "NotFound");
}

bool has_checksum(const HttpRequest& request) {
  return std::ranges::any_of(
      request.headers, [](const std::string& line) { return line.starts_with("x-amz-checksum-"); });
}

class S3Blobs final : public BlobStore {
 public:
  S3Blobs(const std::string& url, const S3Options& options, const std::atomic<bool>& stop)
      : options_(options),
        stop_(stop),
        where_(parse_s3_url(url)),
        place_("s3://" + where_.bucket + (where_.prefix.empty() ? "" : "/" + where_.prefix)),
        bucket_(options.env
                    ? S3Bucket(where_.bucket, options.stall_s, stop, options.env, options.now)
                    : S3Bucket(where_.bucket, options.stall_s, stop)) {}

  const std::string& place() const override { return place_; }

  Result<Creation> create(const std::string& key, std::string_view bytes) override {
    Creation creation = Creation::kDone;
    LOCKSTEP_RETURN_IF_ERROR(again("create", key, [&]() -> Status {
      HttpRequest request = with_body(Method::kPut, bytes);
      request.headers.emplace_back("If-None-Match: *");
      LOCKSTEP_ASSIGN_OR_RETURN(const HttpAnswer answer, send(std::move(request), key));
      creation = answer.status == 412 ? Creation::kWasThere : Creation::kDone;
      // 409: another request is changing this key. It says nothing about who wins.
      if (answer.status == 409) return {Code::kUnavailable, error_of(answer).message()};
      return is_good(answer) || answer.status == 412 ? Status::ok() : bucket_.error_in(answer);
    }));
    return creation;
  }

  Status put(const std::string& key, std::string_view bytes) override {
    return again("write", key, [&]() -> Status {
      LOCKSTEP_ASSIGN_OR_RETURN(const HttpAnswer answer, send(with_body(Method::kPut, bytes), key));
      return is_good(answer) ? Status::ok() : bucket_.error_in(answer);
    });
  }

  Result<std::optional<std::string>> get(const std::string& key, uint64_t most_bytes) override {
    std::optional<std::string> bytes;
    LOCKSTEP_RETURN_IF_ERROR(again("read", key, [&]() -> Status {
      bytes.reset();
      LOCKSTEP_ASSIGN_OR_RETURN(HttpAnswer answer, send({.most_bytes = most_bytes}, key));
      if (is_no_key(answer)) return Status::ok();
      if (!is_good(answer)) return bucket_.error_in(answer);
      if (answer.is_longer)
        return {Code::kBadData, "it has more than " + std::to_string(most_bytes) +
                                    " bytes, the limit for this kind of object"};
      bytes = std::move(answer.body);
      return Status::ok();
    }));
    return bytes;
  }

  Status read(const std::string& key, uint64_t offset, std::span<uint8_t> out) override {
    const uint64_t last = offset + out.size() - 1;
    return again("read", key, [&]() -> Status {
      LOCKSTEP_ASSIGN_OR_RETURN(const HttpAnswer answer,
                                send({.range = std::to_string(offset) + "-" + std::to_string(last),
                                      .most_bytes = out.size()},
                                     key));
      if (answer.status == 416)
        return {Code::kBadData, "it ends before byte " + std::to_string(last)};
      if (!is_good(answer)) return bucket_.error_in(answer);
      const auto range = http::parse_content_range(answer.content_range);
      const bool is_whole = answer.status == 200 && offset == 0 && !answer.is_longer;
      if (range && range->first == offset && range->total <= last)
        return {Code::kBadData, "it ends before byte " + std::to_string(last)};
      const bool is_range = range && range->first == offset && range->last == last;
      if ((!is_whole && !is_range) || answer.body.size() != out.size())
        return {Code::kUnavailable, "the server sent another byte range than Lockstep asked for"};
      std::memcpy(out.data(), answer.body.data(), out.size());
      return Status::ok();
    });
  }

  Result<std::vector<Blob>> list(const std::string& prefix) override {
    LOCKSTEP_ASSIGN_OR_RETURN(std::vector<Blob> blobs,
                              bucket_.list(full(prefix), place_, [&](const auto& try_it) {
                                return again("list", prefix, try_it);
                              }));
    for (Blob& blob : blobs) blob.key.erase(0, full("").size());
    return blobs;
  }

  Status remove(const std::string& key) override {
    return again("remove", key, [&]() -> Status {
      LOCKSTEP_ASSIGN_OR_RETURN(const HttpAnswer answer, send({.method = Method::kDelete}, key));
      return is_good(answer) || is_no_key(answer) ? Status::ok() : bucket_.error_in(answer);
    });
  }

  Result<std::string> begin(const std::string& key) override {
    std::string id;
    LOCKSTEP_RETURN_IF_ERROR(again("begin an upload of", key, [&]() -> Status {
      HttpRequest request{.method = Method::kPost, .most_bytes = limits::kHttpAnswerBytes};
      if (sends_checksums_.load()) request.headers.emplace_back("x-amz-checksum-algorithm: CRC32C");
      LOCKSTEP_ASSIGN_OR_RETURN(const HttpAnswer answer,
                                send(std::move(request), key, {{"uploads", ""}}));
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
      HttpRequest request = with_body(Method::kPut, bytes, crc);
      part.crc32c = has_checksum(request) ? std::optional(crc) : std::nullopt;
      LOCKSTEP_ASSIGN_OR_RETURN(HttpAnswer answer,
                                send(std::move(request), key,
                                     {{"partNumber", std::to_string(number)}, {"uploadId", id}}));
      if (!is_good(answer)) return bucket_.error_in(answer);
      if (answer.etag.empty())
        return {Code::kUnavailable, "the server's answer does not name the part (ETag)"};
      part.etag = std::move(answer.etag);
      return Status::ok();
    }));
    return part;
  }

  Result<std::vector<Part>> parts(const std::string& key, const std::string& id) override {
    return all_pages<Part>("list the parts of", key, key, {{"uploadId", id}}, parse_parts);
  }

  Status complete(const std::string& key, const std::string& id,
                  const std::vector<Part>& parts) override {
    const std::string xml = completion_of(parts);
    const Status done = again("complete", key, [&]() -> Status {
      HttpRequest request{.method = Method::kPost,
                          .body = xml,
                          .headers = {"Content-Type: application/xml"},
                          .most_bytes = limits::kHttpAnswerBytes,
                          .timeout_ms = kCompletionMs};
      LOCKSTEP_ASSIGN_OR_RETURN(const HttpAnswer answer,
                                send(std::move(request), key, {{"uploadId", id}}));
      return is_good(answer) ? check_completion(answer.body) : bucket_.error_in(answer);
    });
    if (done.code() != Code::kNoInput) return done;
    // The upload is gone: an attempt whose answer was lost may have completed it.
    uint64_t bytes = 0;
    for (const Part& part : parts) bytes += part.bytes;
    LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<uint64_t> there, size_of(key));
    return there == bytes ? Status::ok() : done;
  }

  Status abandon(const std::string& key, const std::string& id) override {
    return again("abandon the upload of", key, [&]() -> Status {
      LOCKSTEP_ASSIGN_OR_RETURN(const HttpAnswer answer,
                                send({.method = Method::kDelete}, key, {{"uploadId", id}}));
      const bool is_gone = answer.status == 404 && s3_error_code(answer.body) != "NoSuchBucket";
      return is_good(answer) || is_gone ? Status::ok() : bucket_.error_in(answer);
    });
  }

  Result<std::vector<Upload>> uploads(const std::string& prefix) override {
    LOCKSTEP_ASSIGN_OR_RETURN(
        std::vector<Upload> uploads,
        all_pages<Upload>("list the uploads of", prefix, std::nullopt,
                          {{"prefix", full(prefix)}, {"uploads", ""}}, parse_uploads));
    // Some servers know no prefix here.
    std::erase_if(uploads, [&](const Upload& one) { return !one.key.starts_with(full(prefix)); });
    for (Upload& upload : uploads) upload.key.erase(0, full("").size());
    return uploads;
  }

 private:
  std::string full(const std::string& key) const {
    return where_.prefix.empty() ? key : where_.prefix + "/" + key;
  }

  HttpRequest with_body(Method method, std::string_view bytes) const {
    return with_body(method, bytes, crc32c(bytes));
  }

  HttpRequest with_body(Method method, std::string_view bytes, uint32_t crc) const {
    HttpRequest request{.method = method,
                        .body = bytes,
                        .headers = {"Content-Type: application/octet-stream"},
                        .most_bytes = limits::kHttpAnswerBytes};
    if (sends_checksums_.load())
      request.headers.push_back("x-amz-checksum-crc32c: " + crc32c_text(crc));
    return request;
  }

  // 501: the server does not implement the header. It gets none from the next attempt on.
  Result<HttpAnswer> send(HttpRequest request, const std::optional<std::string>& key,
                          const Query& query = {}) {
    const bool has_one = has_checksum(request);
    auto answer = bucket_.send(std::move(request), key ? full(*key) : "", query);
    if (answer.is_ok() && answer->status == 501 && has_one) sends_checksums_ = false;
    return answer;
  }

  // Tries until it is ok, or cannot be. `what` and `key` say what it is.
  Status again(const std::string& what, const std::string& key,
               const std::function<Status()>& try_it) {
    const Tried tried = with_retries(options_.retries, stop_, may_pass, try_it);
    if (tried.status.is_ok() || tried.status.code() == Code::kAborted) return tried.status;
    const std::string count =
        tried.attempts > 1 ? " (" + std::to_string(tried.attempts) + " attempts)" : "";
    const Code code =
        tried.status.code() == Code::kTimeout ? Code::kUnavailable : tried.status.code();
    return {code, "cannot " + what + " " + place_ + (key.empty() ? "" : "/" + key) + count + ": " +
                      tried.status.message()};
  }

  // The items of all pages. A page that names itself as the next one would never end.
  template <typename Item>
  Result<std::vector<Item>> all_pages(const std::string& what, const std::string& name,
                                      const std::optional<std::string>& key, const Query& asked,
                                      Result<Page<Item>> (*parse)(std::string_view)) {
    std::vector<Item> items;
    Query next;
    do {
      Query query = asked;
      query.insert(next.begin(), next.end());
      Page<Item> page;
      LOCKSTEP_RETURN_IF_ERROR(again(what, name, [&]() -> Status {
        LOCKSTEP_ASSIGN_OR_RETURN(const HttpAnswer answer,
                                  send({.most_bytes = limits::kSourceListBytes}, key, query));
        if (!is_good(answer)) return bucket_.error_in(answer);
        LOCKSTEP_ASSIGN_OR_RETURN(page, parse(answer.body));
        return Status::ok();
      }));
      std::ranges::move(page.items, std::back_inserter(items));
      if (items.size() > limits::kSourceObjects || (!next.empty() && page.next == next))
        return Status(Code::kBadData, "the server's list of " + place_ + " does not end");
      next = std::move(page.next);
    } while (!next.empty());
    return items;
  }

  Result<std::optional<uint64_t>> size_of(const std::string& key) {
    std::optional<uint64_t> bytes;
    LOCKSTEP_RETURN_IF_ERROR(again("look at", key, [&]() -> Status {
      bytes.reset();
      LOCKSTEP_ASSIGN_OR_RETURN(const HttpAnswer answer, send({.method = Method::kHead}, key));
      if (is_no_key(answer)) return Status::ok();
      if (!is_good(answer)) return bucket_.error_in(answer);
      bytes = static_cast<uint64_t>(std::max<int64_t>(answer.content_length, 0));
      return Status::ok();
    }));
    return bytes;
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
