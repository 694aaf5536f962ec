// One range of one object over HTTP, and what an answer must look like to be believed.
//
// Thread-safety: free functions; any thread.
#pragma once

#include <cstdint>

#include "comm/base/status.h"
#include "data/source/http_client.h"
#include "data/source/object_store.h"

namespace lockstep::source {

// Sends `request` for [offset, offset + bytes) of `object`, and copies what comes to `out`. Codes
// as object_store.h; messages go on after "cannot read NAME: ".
Status get_range(HttpClient& client, HttpRequest request, const ObjectInfo& object, uint64_t offset,
                 uint64_t bytes, uint8_t* out);

// Of the answer to such a request what was asked for, once it has it.
Status take_range(const HttpAnswer& answer, const ObjectInfo& object, uint64_t offset,
                  uint64_t bytes, uint8_t* out);

// What an answer's headers tell of an object's content: its ETag, or else its time.
std::string version_of(const HttpAnswer& answer);

// What a status other than 2xx means.
Status status_error(const HttpAnswer& answer);

}  // namespace lockstep::source
