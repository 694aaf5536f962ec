#include "data/source/stores/ranged_get.h"

#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "data/source/stores/s3_listing.h"

namespace lockstep::source {
namespace {

using http::HttpAnswer;
using http::HttpClient;
using http::HttpRequest;

struct ContentRange {
  uint64_t first = 0;
  uint64_t last = 0;
  uint64_t total = 0;
};

bool take_number(std::string_view& text, uint64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

// "bytes FIRST-LAST/TOTAL"
bool parse(std::string_view text, ContentRange& out) {
  return take(text, "bytes ") && take_number(text, out.first) && take(text, "-") &&
         take_number(text, out.last) && take(text, "/") && take_number(text, out.total) &&
         text.empty();
}

Status is_another_one(const std::string& how) {
  return {Code::kBadData, "it has changed since it was listed: " + how};
}

Status check_whole(const HttpAnswer& answer, const ObjectInfo& object, uint64_t bytes) {
  if (bytes < object.bytes)
    return {Code::kNoInput,
            "the server ignores the byte range and sends the whole file; serve the data from a "
            "server with byte ranges (nginx, Apache, or S3)"};
  if (answer.is_longer || answer.body.size() != object.bytes)
    return is_another_one("it had " + std::to_string(object.bytes) + " bytes");
  return Status::ok();
}

Status check_part(const HttpAnswer& answer, const ObjectInfo& object, uint64_t offset,
                  uint64_t bytes) {
  ContentRange range;
  if (!parse(answer.content_range, range) || range.first != offset ||
      range.last != offset + bytes - 1)
    return {Code::kUnavailable, "the server sent another byte range than Lockstep asked for"};
  if (range.total != object.bytes)
    return is_another_one("it had " + std::to_string(object.bytes) + " bytes and has " +
                          std::to_string(range.total));
  if (answer.is_longer || answer.body.size() != bytes)
    return {Code::kUnavailable, "the server sent more or less than its headers say"};
  return Status::ok();
}

}  // namespace

std::string version_of(const HttpAnswer& answer) {
  return answer.etag.empty() ? answer.last_modified : answer.etag;
}

std::optional<uint64_t> whole_bytes(const HttpAnswer& answer) {
  if (answer.status == 200 && answer.content_length >= 0)
    return static_cast<uint64_t>(answer.content_length);
  std::string_view text = answer.content_range;
  uint64_t bytes = 0;
  if (take(text, "bytes */") && take_number(text, bytes) && text.empty()) return bytes;  // of 416
  ContentRange range;
  if (answer.status != 206 || !parse(answer.content_range, range)) return std::nullopt;
  return range.total;
}

Status status_error(const HttpAnswer& answer) {
  const std::string code = s3_error_code(answer.body);
  const std::string text = "the server answers " + std::to_string(answer.status) +
                           (code.empty() ? "" : " (" + code + ")");
  const bool is_expired = code == "ExpiredToken" || code == "TokenRefreshRequired";
  if (answer.status == 401 || answer.status == 403 || is_expired)
    return {Code::kRefused, text + ": access is denied"};
  if (answer.status == 404 || answer.status == 410) return {Code::kNoInput, text + ": not found"};
  if (answer.status == 412 || answer.status == 416) return is_another_one(text);
  const bool may_pass = answer.status == 408 || answer.status == 429 || answer.status >= 500;
  return {may_pass ? Code::kUnavailable : Code::kNoInput, text};
}

Status get_range(HttpClient& client, HttpRequest request, const ObjectInfo& object, uint64_t offset,
                 uint64_t bytes, uint8_t* out) {
  request.range = std::to_string(offset) + "-" + std::to_string(offset + bytes - 1);
  request.most_bytes = bytes;
  LOCKSTEP_ASSIGN_OR_RETURN(const HttpAnswer answer, client.send(request));
  return take_range(answer, object, offset, bytes, out);
}

Status take_range(const HttpAnswer& answer, const ObjectInfo& object, uint64_t offset,
                  uint64_t bytes, uint8_t* out) {
  if (answer.status != 200 && answer.status != 206) return status_error(answer);
  if (answer.is_encoded)
    return {Code::kNoInput, "the server compresses its answers; switch that off for the data"};
  if (version_of(answer) != object.version) return is_another_one("the server has another version");
  LOCKSTEP_RETURN_IF_ERROR(answer.status == 200 ? check_whole(answer, object, bytes)
                                                : check_part(answer, object, offset, bytes));
  std::memcpy(out, answer.body.data(), bytes);
  return Status::ok();
}

}  // namespace lockstep::source
