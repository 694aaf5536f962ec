// Parses the XML that a bucket answers: pages of its listing (ListObjectsV2), and errors.
//
// Source: Amazon S3 API Reference, ListObjectsV2 and "Error responses".
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"
#include "data/source/base/object_store.h"

namespace lockstep::source {

struct S3Page {
  std::vector<ObjectInfo> objects;  // names are whole keys
  std::string next;                 // token of the next page; empty: this is the last
};

// kUnavailable if it is no such page: the sender is in trouble.
Result<S3Page> parse_s3_page(std::string_view xml);

// The code of an error, such as "AccessDenied"; empty if there is none, or no single word.
std::string s3_error_code(std::string_view xml);

}  // namespace lockstep::source
