// Any bytes as a server's answer: pages of a bucket's listings, an upload, an error, a manifest,
// MDS's index.json, the range of an answer; and as a file of AWS's. Results pass as names of files,
// and Lockstep takes a part of an object only if all of it is there.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "comm/base/check.h"
#include "comm/store/aws_credentials.h"
#include "comm/store/s3_answers.h"
#include "data/source/base/object_names.h"
#include "data/source/stores/http_store.h"
#include "data/source/stores/ranged_get.h"

namespace lockstep::source {
namespace {

void try_names(const std::vector<ObjectInfo>& objects) {
  const Status status = check_names(objects);
  LOCKSTEP_CHECK(fetching_of(objects).size() == objects.size(), "each is fetched in some way");
  if (!status.is_ok()) return;
  for (const ObjectInfo& object : objects) {
    const std::string inside = "/" + object.name + "/";
    LOCKSTEP_CHECK(
        inside.find("/../") == std::string::npos && inside.find("//") == std::string::npos,
        "a name that was let through leads out of its directory");
  }
}

void try_list(const Result<std::vector<std::string>>& names) {
  if (!names.is_ok()) return;
  std::vector<ObjectInfo> objects;
  for (const std::string& name : *names) objects.push_back({name, 1, ""});
  try_names(objects);
}

// What a bucket may answer to any request.
void try_bucket(std::string_view text) {
  if (const auto page = store::parse_blobs(text); page.is_ok()) {
    std::vector<ObjectInfo> objects;
    for (const store::Blob& blob : page->items)
      objects.push_back({blob.key, blob.bytes, blob.version});
    try_names(objects);
  }
  if (const auto page = store::parse_parts(text); page.is_ok()) {
    for (const store::Part& part : page->items)
      LOCKSTEP_CHECK(part.number >= 1 && part.number <= store::kMostParts, "a part has a number");
    LOCKSTEP_CHECK(!store::completion_of(page->items).empty(), "parts can be completed");
  }
  if (const auto page = store::parse_uploads(text); page.is_ok())
    for (const store::Upload& upload : page->items)
      LOCKSTEP_CHECK(!upload.id.empty(), "an upload has an id");
  (void)store::parse_upload_id(text);
  (void)store::check_completion(text);
  LOCKSTEP_CHECK(store::s3_error_code(text).size() <= 64 && store::s3_region(text).size() <= 64,
                 "what is repeated in messages is short");
}

// `text` is the answer's range. The requested part begins at the first number in it, so that it has
// a chance; the first byte gives the lengths of body and part.
void try_range(std::string_view text) {
  if (text.empty()) return;
  const auto byte = static_cast<uint8_t>(text[0]);
  http::HttpAnswer answer;
  answer.status = byte % 5 == 0 ? 200 : 206;
  answer.content_range = text.substr(1);
  answer.body.assign(byte / 16, 7);
  const uint64_t bytes = 1 + byte % 16;
  const size_t digit = answer.content_range.find_first_of("0123456789");
  const uint64_t offset = digit == std::string::npos
                              ? 0
                              : std::strtoull(answer.content_range.c_str() + digit, nullptr, 10);
  if (offset > UINT64_MAX - bytes) return;
  const ObjectInfo object{"x", offset + bytes, ""};
  std::vector<uint8_t> out(bytes);
  const Status status = take_range(answer, object, offset, bytes, out.data());
  const bool is_taken = std::count(out.begin(), out.end(), 7) == static_cast<int64_t>(bytes);
  LOCKSTEP_CHECK(status.is_ok() == is_taken, "a part is taken whole or not at all");
  LOCKSTEP_CHECK(!status.is_ok() || answer.body.size() >= bytes, "and never what is not there");
}

}  // namespace
}  // namespace lockstep::source

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep::source;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_bucket(text);
  try_range(text);
  try_list(names_in_manifest(text));
  try_list(names_in_mds_index(text));
  (void)lockstep::store::parse_ini(text);
  (void)lockstep::store::parse_utc(std::string(text));
  return 0;
}
