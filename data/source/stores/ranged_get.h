// Reads one range of an object over HTTP, and checks the answer.
//
// Thread-safety: free functions; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "comm/base/status.h"
#include "comm/http/http_client.h"
#include "data/source/base/object_store.h"

namespace lockstep::source {

using SendFn = std::function<Result<http::HttpAnswer>(const http::HttpRequest&)>;

// Sends `request` for [offset, offset + bytes) of `object` and copies the answer to `out`. Codes as
// in object_store.h. Messages continue "cannot read NAME: ".
Status get_range(const SendFn& send, http::HttpRequest request, const ObjectInfo& object,
                 uint64_t offset, uint64_t bytes, uint8_t* out);

// Copies the range from the answer to such a request, if the answer has exactly that range.
Status take_range(const http::HttpAnswer& answer, const ObjectInfo& object, uint64_t offset,
                  uint64_t bytes, uint8_t* out);

// The version in an answer's headers: the ETag, or else the time.
std::string version_of(const http::HttpAnswer& answer);

// The error of a status other than 2xx.
Status status_error(const http::HttpAnswer& answer);

}  // namespace lockstep::source
