#include "comm/store/s3_bucket.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "comm/base/limits.h"
#include "comm/base/text/moment.h"
#include "comm/http/percent_encoding.h"
#include "comm/store/s3_pages.h"
#include "comm/store/signature.h"

namespace lockstep::store {
namespace {

using http::HttpAnswer;
using http::HttpRequest;

constexpr char kRegionHeader[] = "x-amz-bucket-region";

std::string text_of(const Query& query) {
  std::string text;
  for (const auto& [name, value] : query)
    text += (text.empty() ? "" : "&") + http::percent_encoded(name, false) + "=" +
            http::percent_encoded(value, false);
  return text;
}

bool is_refused(const HttpAnswer& answer) {
  return error_of(answer).code() == Code::kRefused;
}

// By how much the server's clock differs from `now_s`, for people; empty if it does not say.
std::string clock_text(const HttpAnswer& answer, int64_t now_s) {
  const auto date = answer.kept.find("date");
  if (date == answer.kept.end()) return "";
  const auto server_s = parse_moment(date->second, kHttpDate);
  if (!server_s) return "";
  const int64_t minutes = (now_s - *server_s) / 60;
  return " by " + std::to_string(std::abs(minutes)) + " minutes";
}

// Text that libcurl and signature.cc understand alike.
bool is_endpoint(std::string_view url) {
  const bool has_scheme = url.starts_with("http://") || url.starts_with("https://");
  const size_t host = std::min(url.find("://") + 3, url.size());
  const bool is_plain = std::ranges::all_of(
      url, [](unsigned char c) { return c > ' ' && c < 127 && c != '@' && c != '?' && c != '#'; });
  return has_scheme && is_plain && host < url.size() && url[host] != '/';
}

}  // namespace

BucketPlace parse_s3_url(std::string_view url) {
  url.remove_prefix(std::string_view("s3://").size());
  const size_t slash = std::min(url.find('/'), url.size());
  std::string_view prefix = url.substr(std::min(slash + 1, url.size()));
  while (prefix.ends_with('/')) prefix.remove_suffix(1);
  while (prefix.starts_with('/')) prefix.remove_prefix(1);
  return {std::string(url.substr(0, slash)), std::string(prefix)};
}

S3Bucket::S3Bucket(std::string bucket, uint32_t stall_s, const std::atomic<bool>& stop,
                   AwsCredentials::EnvFn env, AwsCredentials::NowFn now)
    : bucket_(std::move(bucket)),
      credentials_(std::move(env), std::move(now)),
      client_(stall_s, stop) {
  const AwsPlace place = credentials_.place();
  region_ = place.region;
  std::string endpoint = place.endpoint;
  while (endpoint.ends_with('/')) endpoint.pop_back();
  if (!endpoint.empty()) {
    if (!is_endpoint(endpoint))
      trouble_ = {
          Code::kConfig,
          "AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_S3 or endpoint_url is no address of a server; "
          "write it as https://HOST or http://HOST:PORT, without a user and a query"};
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
  if (!keys.key_id.empty())
    sign(request, {.keys = keys, .region = region_, .now_s = credentials_.now_s()});
  return client_.send(request);
}

Result<HttpAnswer> S3Bucket::send(HttpRequest request, const std::string& key, const Query& query) {
  request.url = url_of(key, query);
  request.follows_redirects = false;  // a signature is for one host
  request.keeps = {"date", kRegionHeader};
  LOCKSTEP_RETURN_IF_ERROR(trouble_);
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
                                clock_text(answer, credentials_.now_s()) + ": set it (NTP)"};
  const auto said = answer.kept.find(kRegionHeader);
  const std::string region = said == answer.kept.end()
                                 ? s3_region(answer.body)
                                 : s3_region("<Region>" + said->second + "</Region>");
  // Some servers name their region in every answer.
  const bool may_say =
      answer.status == 301 || answer.status == 307 || answer.status == 400 || answer.status == 403;
  const bool is_elsewhere = code == "PermanentRedirect" || code == "TemporaryRedirect" ||
                            (may_say && !region.empty() && region != region_);
  if (is_elsewhere)
    return {Code::kRefused, error.message() + "; the bucket is not in the region " + region_ +
                                ": set AWS_REGION" +
                                (region.empty() ? " to its region" : "=" + region)};
  if (answer.status >= 300 && answer.status < 400)
    return {Code::kRefused, error.message() +
                                "; the endpoint redirects: name the address that it "
                                "leads to in AWS_ENDPOINT_URL"};
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
  const auto ask = [&](const Query& query) -> Result<Page<Blob>> {
    Page<Blob> page;
    LOCKSTEP_RETURN_IF_ERROR(again([&]() -> Status {
      LOCKSTEP_ASSIGN_OR_RETURN(const HttpAnswer answer,
                                send({.most_bytes = limits::kSourceListBytes}, "", query));
      if (answer.status != 200) return error_in(answer);
      LOCKSTEP_ASSIGN_OR_RETURN(page, parse_blobs(answer.body));
      return Status::ok();
    }));
    return page;
  };
  return all_pages<Blob>(place, limits::kSourceObjects, {{"list-type", "2"}, {"prefix", prefix}},
                         ask);
}

}  // namespace lockstep::store
