#include "comm/store/s3_bucket.h"

#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "comm/base/limits.h"
#include "comm/http/percent_encoding.h"
#include "comm/store/signature.h"

namespace lockstep::store {
namespace {

using http::HttpAnswer;
using http::HttpRequest;

constexpr size_t kEmptyPages = 1'000;  // in a row, of a list; there may be some

std::string text_of(const Query& query) {
  std::string text;
  for (const auto& [name, value] : query)
    text += (text.empty() ? "" : "&") + http::percent_encoded(name, false) + "=" +
            http::percent_encoded(value, false);
  return text;
}

// 401 and 403, and what S3 says with 400 of keys that were good once.
bool is_refused(const HttpAnswer& answer) {
  return error_of(answer).code() == Code::kRefused;
}

// By how much the server's clock differs from `now_s`, for people; empty if it does not say.
std::string clock_text(const HttpAnswer& answer, int64_t now_s) {
  const auto date = answer.kept.find("date");
  if (date == answer.kept.end()) return "";
  tm parts{};
  const char* end = ::strptime(date->second.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  if (end == nullptr || *end != '\0') return "";
  const int64_t minutes = (now_s - ::timegm(&parts)) / 60;
  return " by " + std::to_string(std::abs(minutes)) + " minutes";
}

}  // namespace

BucketPlace parse_s3_url(std::string_view url) {
  url.remove_prefix(std::string_view("s3://").size());
  const size_t slash = std::min(url.find('/'), url.size());
  std::string_view prefix = url.substr(std::min(slash + 1, url.size()));
  while (prefix.ends_with('/')) prefix.remove_suffix(1);
  return {std::string(url.substr(0, slash)), std::string(prefix)};
}

S3Bucket::S3Bucket(std::string bucket, uint32_t stall_s, const std::atomic<bool>& stop)
    : S3Bucket(
          std::move(bucket), stall_s, stop,
          [](const char* name) {
            const char* value = std::getenv(name);
            return std::string(value == nullptr ? "" : value);
          },
          [] { return static_cast<int64_t>(::time(nullptr)); }) {}

S3Bucket::S3Bucket(std::string bucket, uint32_t stall_s, const std::atomic<bool>& stop,
                   AwsCredentials::EnvFn env, AwsCredentials::NowFn now)
    : bucket_(std::move(bucket)),
      now_(now),
      credentials_(std::move(env), std::move(now)),
      client_(stall_s, stop) {
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

std::string S3Bucket::url_of(const std::string& key, const Query& query) const {
  return base_ + http::percent_encoded(key, /*keeps_slashes=*/true) +
         (query.empty() ? "" : "?" + text_of(query));
}

Result<HttpAnswer> S3Bucket::send_with(const AwsKeys& keys, HttpRequest request) {
  if (!keys.key_id.empty()) sign(request, {.keys = keys, .region = region_, .now_s = now_()});
  return client_.send(request);
}

Result<HttpAnswer> S3Bucket::send(HttpRequest request, const std::string& key, const Query& query) {
  request.url = url_of(key, query);
  request.follows_redirects = false;  // a signature is for one host
  request.keeps = {"date"};
  LOCKSTEP_ASSIGN_OR_RETURN(AwsKeys keys, credentials_.keys());
  auto answer = send_with(keys, request);
  if (!answer.is_ok() || !is_refused(*answer) || !credentials_.has_newer_than(keys)) return answer;
  LOCKSTEP_ASSIGN_OR_RETURN(keys, credentials_.keys());
  return send_with(keys, std::move(request));
}

Status S3Bucket::error_in(const HttpAnswer& answer) {
  const Status error = error_of(answer);
  const std::string code = s3_error_code(answer.body);
  if (code == "RequestTimeTooSkewed")
    return {Code::kRefused, error.message() + "; this machine's clock differs from the server's" +
                                clock_text(answer, now_()) + ": set it (NTP)"};
  const std::string region = s3_region(answer.body);
  const bool is_elsewhere =
      answer.status == 301 || answer.status == 307 || code == "AuthorizationHeaderMalformed";
  if (is_elsewhere)
    return {Code::kRefused, error.message() + "; the bucket is not in the region " + region_ +
                                ": set AWS_REGION" +
                                (region.empty() ? " to its region" : "=" + region)};
  return error.code() == Code::kRefused ? with_advice(error) : error;
}

Status S3Bucket::with_advice(const Status& refused) {
  const auto keys = credentials_.keys();
  const bool has_keys = keys.is_ok() && !keys->key_id.empty();
  return {Code::kRefused,
          refused.message() +
              (has_keys
                   ? "; check whether the credentials may do this in this bucket, have expired, or "
                     "belong to another region or endpoint"
                   : "; there are no credentials: set AWS_ACCESS_KEY_ID and "
                     "AWS_SECRET_ACCESS_KEY, or AWS_PROFILE and ~/.aws/credentials, on every host "
                     "that reads or writes this bucket")};
}

Result<std::vector<Blob>> S3Bucket::list(const std::string& prefix, const std::string& place,
                                         const AgainFn& again) {
  std::vector<Blob> blobs;
  Query next;
  size_t empty_pages = 0;  // in a row
  do {
    Query query{{"list-type", "2"}, {"prefix", prefix}};
    query.insert(next.begin(), next.end());
    Page<Blob> page;
    LOCKSTEP_RETURN_IF_ERROR(again([&]() -> Status {
      LOCKSTEP_ASSIGN_OR_RETURN(const HttpAnswer answer,
                                send({.most_bytes = limits::kSourceListBytes}, "", query));
      if (answer.status != 200) return error_in(answer);
      LOCKSTEP_ASSIGN_OR_RETURN(page, parse_blobs(answer.body));
      return Status::ok();
    }));
    empty_pages = page.items.empty() ? empty_pages + 1 : 0;
    std::ranges::move(page.items, std::back_inserter(blobs));
    if (blobs.size() > limits::kSourceObjects)
      return Status(Code::kBadData, place + " holds more than " +
                                        std::to_string(limits::kSourceObjects) + " objects");
    if ((!next.empty() && page.next == next) || empty_pages > kEmptyPages)
      return Status(Code::kBadData,
                    "the server lists " + place + " without end: " +
                        (empty_pages > kEmptyPages ? "too many pages in a row have no objects"
                                                   : "a page names itself as the next one"));
    next = std::move(page.next);
  } while (!next.empty());
  return blobs;
}

}  // namespace lockstep::store
