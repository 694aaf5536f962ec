// Any bytes as what a server says: a page of a bucket's listing, an error, a manifest, MDS's
// index.json; and as a file of AWS's. What comes out can be checked as names of files.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "comm/base/check.h"
#include "data/source/aws_credentials.h"
#include "data/source/http_store.h"
#include "data/source/object_names.h"
#include "data/source/s3_listing.h"

namespace lockstep::source {
namespace {

void try_names(const std::vector<ObjectInfo>& objects) {
  const Status status = check_names(objects);
  LOCKSTEP_CHECK(fetching_of(objects).size() == objects.size(), "each is fetched in some way");
  if (!status.is_ok()) return;
  for (const ObjectInfo& object : objects) {
    const std::string inside = "/" + object.name + "/";
    LOCKSTEP_CHECK(inside.find("/../") == std::string::npos &&
                       inside.find("//") == std::string::npos,
                   "a name that was let through leads out of its directory");
  }
}

void try_list(const Result<std::vector<std::string>>& names) {
  if (!names.is_ok()) return;
  std::vector<ObjectInfo> objects;
  for (const std::string& name : *names) objects.push_back({name, 1, ""});
  try_names(objects);
}

}  // namespace
}  // namespace lockstep::source

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep::source;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto page = parse_s3_page(text); page.is_ok()) try_names(page->objects);
  (void)s3_error_code(text);
  try_list(names_in_manifest(text));
  try_list(names_in_mds_index(text));
  (void)parse_ini(text);
  (void)parse_utc(std::string(text));
  return 0;
}
