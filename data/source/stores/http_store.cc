#include "data/source/stores/http_store.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "comm/base/limits.h"
#include "comm/base/text/lower_case.h"
#include "comm/http/content_range.h"
#include "comm/http/http_client.h"
#include "comm/http/percent_encoding.h"
#include "data/source/base/at_once.h"
#include "data/source/base/object_names.h"
#include "data/source/base/retry.h"
#include "data/source/stores/ranged_get.h"

namespace lockstep::source {
namespace {

using http::HttpAnswer;
using http::HttpClient;
using http::HttpRequest;

// True for a web page, which web applications send for any name.
bool is_page(const HttpAnswer& answer) {
  const std::string_view text = std::string_view(answer.body).substr(0, 64);
  const size_t begin = text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (begin == std::string_view::npos) return false;
  const std::string head = lower_case(text.substr(begin));
  return head.starts_with("<!doctype html") || head.starts_with("<html");
}

class HttpStore final : public ObjectStore {
 public:
  HttpStore(std::string url, const CacheOptions& options, const std::atomic<bool>& stop)
      : url_(std::move(url)), options_(options), stop_(stop), client_(options.stall_s, stop) {}

  const std::string& place() const override { return url_; }
  bool is_one_object() const override { return is_one_; }

  Result<std::vector<ObjectInfo>> list() override {
    std::optional<std::vector<std::string>> names;
    LOCKSTEP_ASSIGN_OR_RETURN(names, names_from(kManifestName, names_in_manifest));
    if (!names) {
      LOCKSTEP_ASSIGN_OR_RETURN(names, names_from("index.json", names_in_mds_index));
    }
    if (!names) return list_one();
    std::vector<ObjectInfo> objects(names->size());
    LOCKSTEP_RETURN_IF_ERROR(at_once(options_.requests, names->size(), [&](uint64_t i) {
      objects[i].name = (*names)[i];
      return look(url_of(objects[i].name), objects[i]);
    }));
    return objects;
  }

  Status read(const ObjectInfo& object, uint64_t offset, uint64_t bytes, uint8_t* out) override {
    HttpRequest request;
    request.url = is_one_ ? url_ : url_of(object.name);
    return get_range([this](const HttpRequest& asked) { return client_.send(asked); },
                     std::move(request), object, offset, bytes, out);
  }

 private:
  std::string url_of(const std::string& name) const {
    return url_ + "/" + http::percent_encoded(name, /*keeps_slashes=*/true);
  }

  // Names in the file that lists them; nothing if that file is not there.
  Result<std::optional<std::vector<std::string>>> names_from(
      const char* name, Result<std::vector<std::string>> (*parse)(std::string_view)) {
    HttpRequest request;
    request.url = url_of(name);
    request.most_bytes = limits::kSourceListBytes;
    HttpAnswer answer;
    // A server that takes a name for nonsense, or fails on it, has no such file. A bucket that may
    // not be listed answers 403 to any name.
    const auto is_not_there = [&] {
      const long status = answer.status;
      const bool may_pass = status == 408 || status == 429 || status >= 500;
      return status >= 400 && status != 401 && status != 407 && (!may_pass || status == 501);
    };
    const Status asked = with_retries(retries(), stop_, request.url, [&]() -> Status {
      answer = HttpAnswer();
      LOCKSTEP_ASSIGN_OR_RETURN(answer, client_.send(request));
      return answer.status == 200 || is_not_there() ? Status::ok() : status_error(answer);
    });
    const bool still_fails = !asked.is_ok() && answer.status == 500;
    if (!still_fails) LOCKSTEP_RETURN_IF_ERROR(asked);
    if (still_fails || is_not_there() || is_page(answer))
      return std::optional<std::vector<std::string>>();
    if (answer.is_longer)
      return Status(Code::kBadData, request.url + " has more than " +
                                        std::to_string(limits::kSourceListBytes) +
                                        " bytes, the limit for a list of files");
    auto names = parse(answer.body);
    if (!names.is_ok())
      return Status(names.status().code(), request.url + " " + names.status().message());
    return std::optional(std::move(*names));
  }

  Result<std::vector<ObjectInfo>> list_one() {
    std::vector<ObjectInfo> objects(1);
    objects[0].name = url_.substr(url_.rfind('/') + 1);
    const Status status = look(url_, objects[0]);
    if (status.code() == Code::kNoInput)
      return Status(Code::kNoInput, status.message() +
                                        "; a directory needs a file manifest.txt in it, with the "
                                        "names of the files, one a line");
    LOCKSTEP_RETURN_IF_ERROR(status);
    is_one_ = true;
    return objects;
  }

  // Its size and version.
  Status look(const std::string& url, ObjectInfo& object) {
    HttpRequest request;
    request.url = url;
    request.method = http::Method::kHead;
    return with_retries(retries(), stop_, url, [&]() -> Status {
      LOCKSTEP_ASSIGN_OR_RETURN(const HttpAnswer answer, client_.send(request));
      const bool is_known =
          answer.status == 200 && answer.content_length >= 0 && !answer.is_encoded;
      if (!is_known && !is_final(answer)) return look_by_range(url, answer, object);
      if (answer.status != 200) return status_error(answer);
      object.bytes = static_cast<uint64_t>(answer.content_length);
      object.version = version_of(answer);
      return Status::ok();
    });
  }

  // Whether another kind of request would get the same answer.
  static bool is_final(const HttpAnswer& answer) {
    const long status = answer.status;
    return status == 404 || status == 410 || status == 408 || status == 429 ||
           (status >= 500 && status != 501);
  }

  // For servers that refuse HEAD, and URLs that are signed for GET: asks for the first byte
  // instead.
  Status look_by_range(const std::string& url, const HttpAnswer& of_head, ObjectInfo& object) {
    HttpRequest request;
    request.url = url;
    request.range = "0-0";
    request.most_bytes = 1;
    LOCKSTEP_ASSIGN_OR_RETURN(const HttpAnswer answer, client_.send(request));
    if (answer.status != 200 && answer.status != 206 && answer.status != 416)
      return status_error(of_head.status == 200 ? answer : of_head);
    const auto bytes = http::whole_bytes(answer);
    if (!bytes || answer.is_encoded)
      return {Code::kNoInput, "the server does not send the file's length (Content-Length)"};
    object.bytes = *bytes;
    object.version = version_of(answer);
    return Status::ok();
  }

  RetryOptions retries() const { return {.attempts = options_.attempts}; }

  const std::string url_;
  const CacheOptions options_;
  const std::atomic<bool>& stop_;
  HttpClient client_;
  bool is_one_ = false;
};

}  // namespace

std::unique_ptr<ObjectStore> make_http_store(const std::string& url, const CacheOptions& options,
                                             const std::atomic<bool>& stop) {
  return std::make_unique<HttpStore>(url, options, stop);
}

Result<std::vector<std::string>> names_in_manifest(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with("./")) line.remove_prefix(2);  // as `find` writes them
    if (line.empty() || line.front() == '#' || is_manifest(line)) continue;
    if (names.size() == limits::kHttpObjects)
      return Status(Code::kBadData, "names more than " + std::to_string(limits::kHttpObjects) +
                                        " files; put samples into shards");
    names.emplace_back(line);
  }
  if (names.empty()) return Status(Code::kBadData, "names no file");
  return names;
}

Result<std::vector<std::string>> names_in_mds_index(std::string_view text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto is_object_with = [](const nlohmann::json& value, const char* key) {
    return value.is_object() && value.contains(key);
  };
  if (!is_object_with(json, "shards") || !json["shards"].is_array())
    return Status(Code::kBadData, "is not an index of MDS");
  std::vector<std::string> names{"index.json"};
  for (const nlohmann::json& shard : json["shards"]) {
    if (!is_object_with(shard, "raw_data") || !is_object_with(shard["raw_data"], "basename") ||
        !shard["raw_data"]["basename"].is_string())
      return Status(Code::kBadData, "does not name the file of every shard");
    if (names.size() > limits::kHttpObjects)
      return Status(Code::kBadData, "names more than " + std::to_string(limits::kHttpObjects) +
                                        " shards; make larger shards");
    names.push_back(shard["raw_data"]["basename"]);
  }
  return names;
}

}  // namespace lockstep::source
