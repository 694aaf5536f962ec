// What a bucket answers: pages of its listing (ListObjectsV2), and errors, in XML.
//
// Source: Amazon S3 API Reference, ListObjectsV2 and "Error responses".
// Thread-safety: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"
#include "data/source/object_store.h"

namespace lockstep::source {

struct S3Page {
  std::vector<ObjectInfo> objects;  // names are whole keys
  std::string next;                 // token of the next page; empty: this is the last
};

// kUnavailable where it is no such page: whoever sent it is in trouble.
Result<S3Page> parse_s3_page(std::string_view xml);

// "AccessDenied", of an error; empty where it does not tell, or says what is no such word.
std::string s3_error_code(std::string_view xml);

}  // namespace lockstep::source
