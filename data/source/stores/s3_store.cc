#include "data/source/stores/s3_store.h"

#include <algorithm>
#include <utility>

#include "comm/base/limits.h"
#include "comm/http/http_client.h"
#include "data/source/base/retry.h"
#include "data/source/stores/ranged_get.h"
#include "data/source/stores/s3_listing.h"
#include "data/source/url.h"

namespace lockstep::source {
namespace {

using http::HttpAnswer;
using http::HttpClient;
using http::HttpRequest;

constexpr size_t kEmptyPages = 1'000;  // in a row, of a list; there may be some

// The hash of no bytes: requests that read have no content.
constexpr const char* kEmptyHash =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

class S3Store final : public ObjectStore {
 public:
  S3Store(std::string url, const CacheOptions& options, const std::atomic<bool>& stop)
      : url_(std::move(url)), options_(options), stop_(stop), client_(options.stall_s, stop) {
    const std::string rest = url_.substr(std::string_view("s3://").size());
    const size_t slash = std::min(rest.find('/'), rest.size());
    bucket_ = rest.substr(0, slash);
    prefix_ = rest.substr(std::min(slash + 1, rest.size()));
    set_base();
  }

  const std::string& place() const override { return url_; }
  bool is_one_object() const override { return is_one_; }

  Result<std::vector<ObjectInfo>> list() override {
    const std::string directory = prefix_.empty() ? "" : prefix_ + "/";
    LOCKSTEP_ASSIGN_OR_RETURN(std::vector<ObjectInfo> objects, list_below(directory));
    std::erase_if(objects, [](const ObjectInfo& object) { return object.name.ends_with('/'); });
    if (!objects.empty()) {
      for (ObjectInfo& object : objects) object.name.erase(0, directory.size());
      return objects;
    }
    // It is no directory of objects. Is it an object of this very name?
    if (!prefix_.empty()) {
      LOCKSTEP_ASSIGN_OR_RETURN(objects, list_below(prefix_));
    }
    std::erase_if(objects, [this](const ObjectInfo& object) { return object.name != prefix_; });
    if (objects.empty())
      return Status(Code::kNoInput,
                    "there are no objects below " + url_ + "; check the bucket and the prefix");
    objects[0].name = prefix_.substr(prefix_.rfind('/') + 1);
    is_one_ = true;
    return objects;
  }

  Status read(const ObjectInfo& object, uint64_t offset, uint64_t bytes, uint8_t* out) override {
    const std::string key = is_one_           ? prefix_
                            : prefix_.empty() ? object.name
                                              : prefix_ + "/" + object.name;
    return signed_in([&](const AwsKeys& keys) {
      return get_range(client_, request(percent_encoded(key, true), "", keys), object, offset,
                       bytes, out);
    });
  }

 private:
  void set_base() {
    const AwsPlace place = credentials_.place();
    region_ = place.region;
    std::string endpoint = place.endpoint;
    while (endpoint.ends_with('/')) endpoint.pop_back();
    if (!endpoint.empty()) {
      base_ = endpoint + "/" + bucket_ + "/";
      return;
    }
    // A certificate for *.s3... does not hold for names with a dot in them.
    const std::string host = "s3." + region_ + ".amazonaws.com";
    base_ = bucket_.find('.') == std::string::npos ? "https://" + bucket_ + "." + host + "/"
                                                   : "https://" + host + "/" + bucket_ + "/";
  }

  HttpRequest request(const std::string& path, const std::string& query,
                      const AwsKeys& keys) const {
    HttpRequest request;
    request.url = base_ + path + (query.empty() ? "" : "?" + query);
    request.follows_redirects = false;  // a signature is for one host
    if (keys.key_id.empty()) return request;
    request.sign = "aws:amz:" + region_ + ":s3";
    request.key_id = keys.key_id;
    request.secret = keys.secret;
    request.headers.push_back(std::string("x-amz-content-sha256: ") + kEmptyHash);
    if (!keys.session_token.empty())
      request.headers.push_back("x-amz-security-token: " + keys.session_token);
    return request;
  }

  // Calls send() with our keys, and once more if they were refused and there are newer keys.
  template <typename Send>
  Status signed_in(const Send& send) {
    LOCKSTEP_ASSIGN_OR_RETURN(AwsKeys keys, credentials_.keys());
    Status status = send(keys);
    if (status.code() == Code::kRefused && credentials_.has_newer_than(keys)) {
      LOCKSTEP_ASSIGN_OR_RETURN(keys, credentials_.keys());
      status = send(keys);
    }
    if (status.code() != Code::kRefused) return status;
    const std::string advice =
        keys.key_id.empty()
            ? "; there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
              "AWS_PROFILE and ~/.aws/credentials, where the workers run"
            : "; check whether the credentials may read this bucket, have expired, or belong to "
              "another region or endpoint";
    return {Code::kRefused, status.message() + advice};
  }

  Result<std::vector<ObjectInfo>> list_below(const std::string& prefix) {
    std::vector<ObjectInfo> objects;
    std::string token;
    size_t empty_pages = 0;  // in a row
    do {
      S3Page page;
      LOCKSTEP_RETURN_IF_ERROR(with_retries({.attempts = options_.attempts}, stop_, url_, [&] {
        return signed_in([&](const AwsKeys& keys) { return list_page(prefix, token, keys, page); });
      }));
      for (ObjectInfo& object : page.objects) objects.push_back(std::move(object));
      if (objects.size() > limits::kSourceObjects)
        return Status(Code::kBadData, url_ + " holds more than " +
                                          std::to_string(limits::kSourceObjects) + " objects");
      empty_pages = page.objects.empty() ? empty_pages + 1 : 0;
      if ((!token.empty() && page.next == token) || empty_pages > kEmptyPages)
        return Status(Code::kBadData,
                      "the server lists " + url_ + " without end: " +
                          (empty_pages > kEmptyPages ? "too many pages in a row have no objects"
                                                     : "a page names itself as the next one"));
      token = std::move(page.next);
    } while (!token.empty());
    return objects;
  }

  Status list_page(const std::string& prefix, const std::string& token, const AwsKeys& keys,
                   S3Page& page) {
    // Sorted by name, as they are signed.
    std::string query;
    if (!token.empty()) query += "continuation-token=" + percent_encoded(token, false) + "&";
    query += "list-type=2&prefix=" + percent_encoded(prefix, false);
    HttpRequest wanted = request("", query, keys);
    wanted.most_bytes = limits::kSourceListBytes;
    LOCKSTEP_ASSIGN_OR_RETURN(const HttpAnswer answer, client_.send(wanted));
    if (answer.status != 200) return status_error(answer);
    LOCKSTEP_ASSIGN_OR_RETURN(page, parse_s3_page(answer.body));
    return Status::ok();
  }

  const std::string url_;
  const CacheOptions options_;
  const std::atomic<bool>& stop_;
  AwsCredentials credentials_;
  HttpClient client_;
  std::string bucket_;
  std::string prefix_;
  std::string region_;
  std::string base_;
  bool is_one_ = false;
};

}  // namespace

std::unique_ptr<ObjectStore> make_s3_store(const std::string& url, const CacheOptions& options,
                                           const std::atomic<bool>& stop) {
  return std::make_unique<S3Store>(url, options, stop);
}

}  // namespace lockstep::source
