#include "data/source/stores/ranged_get.h"

#include <cstring>
#include <utility>

#include "comm/http/content_range.h"
#include "comm/store/s3_answers.h"

namespace lockstep::source {
namespace {

using http::HttpAnswer;
using http::HttpRequest;

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
  const auto range = http::parse_content_range(answer.content_range);
  if (!range || range->first != offset || range->last != offset + bytes - 1)
    return {Code::kUnavailable, "the server sent another byte range than Lockstep asked for"};
  if (range->total != object.bytes)
    return is_another_one("it had " + std::to_string(object.bytes) + " bytes and has " +
                          std::to_string(range->total));
  if (answer.is_longer || answer.body.size() != bytes)
    return {Code::kUnavailable, "the server sent more or less than its headers say"};
  return Status::ok();
}

}  // namespace

std::string version_of(const HttpAnswer& answer) {
  return answer.etag.empty() ? answer.last_modified : answer.etag;
}

Status status_error(const HttpAnswer& answer) {
  const Status error = store::error_of(answer);
  const bool is_other = answer.status == 412 || answer.status == 416;
  return is_other ? is_another_one(error.message()) : error;
}

Status get_range(const SendFn& send, HttpRequest request, const ObjectInfo& object, uint64_t offset,
                 uint64_t bytes, uint8_t* out) {
  request.range = std::to_string(offset) + "-" + std::to_string(offset + bytes - 1);
  request.most_bytes = bytes;
  LOCKSTEP_ASSIGN_OR_RETURN(const HttpAnswer answer, send(request));
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
