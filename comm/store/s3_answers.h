// What a bucket answers: pages of its listings, uploads and their parts, errors.
//
// Source: Amazon S3 API Reference, ListObjectsV2, ListParts, ListMultipartUploads,
// CreateMultipartUpload, CompleteMultipartUpload and "Error responses".
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "comm/base/status.h"
#include "comm/http/http_client.h"
#include "comm/store/blob_store.h"

namespace lockstep::store {

using Query = std::map<std::string, std::string>;  // not encoded; sorted, as it is signed

// A page of a listing. `next` is what asks for the page after it; empty: this is the last.
template <typename Item>
struct Page {
  std::vector<Item> items;
  Query next;
};

// Keys and sizes as they stand there. kUnavailable if it is no such page: the sender is in trouble.
Result<Page<Blob>> parse_blobs(std::string_view xml);
Result<Page<Part>> parse_parts(std::string_view xml);
Result<Page<Upload>> parse_uploads(std::string_view xml);
Result<std::string> parse_upload_id(std::string_view xml);

// What completes an upload of these parts, and whether an answer says that it was completed: errors
// come with the status 200, too. kNoInput if the upload is not known.
std::string completion_of(const std::vector<Part>& parts);
Status check_completion(std::string_view xml);

// As S3 writes a CRC-32C, in headers and XML.
std::string crc32c_text(uint32_t crc);

// The code of an error, such as "AccessDenied"; empty if there is none, or no single word.
std::string s3_error_code(std::string_view xml);

// The region of the bucket, where an error says it; else empty.
std::string s3_region(std::string_view xml);

// The error of a status other than 2xx, from S3 or any other server of files: kRefused where it
// does not know us or forbids this, kNoInput where asking again gives the same, else kUnavailable.
Status error_of(const http::HttpAnswer& answer);

}  // namespace lockstep::store
