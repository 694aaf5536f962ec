#include "comm/store/s3_answers.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "comm/base/text/base64.h"

namespace lockstep::store {
namespace {

// The text between the first <name> and </name> from `from` on. Moves `from` past </name>.
std::optional<std::string_view> element(std::string_view xml, const std::string& name,
                                        size_t& from) {
  const std::string open = "<" + name + ">";
  const std::string close = "</" + name + ">";
  const size_t begin = xml.find(open, from);
  if (begin == std::string_view::npos) return std::nullopt;
  const size_t end = xml.find(close, begin + open.size());
  if (end == std::string_view::npos) return std::nullopt;
  from = end + close.size();
  return xml.substr(begin + open.size(), end - begin - open.size());
}

std::optional<std::string_view> element(std::string_view xml, const std::string& name) {
  size_t from = 0;
  return element(xml, name, from);
}

void append_utf8(uint32_t code, std::string& out) {
  const auto byte = [&](uint32_t value) { out += static_cast<char>(value); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) {
    byte(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    byte(0xE0 | code >> 12);
    byte(0x80 | (code >> 6 & 0x3F));
  } else {
    byte(0xF0 | code >> 18);
    byte(0x80 | (code >> 12 & 0x3F));
    byte(0x80 | (code >> 6 & 0x3F));
  }
  byte(0x80 | (code & 0x3F));
}

// Of "amp" or "#x41", what stands between & and ;.
bool append_entity(std::string_view name, std::string& out) {
  constexpr std::pair<std::string_view, char> kNamed[] = {
      {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
  for (const auto& [word, character] : kNamed) {
    if (name != word) continue;
    out += character;
    return true;
  }
  if (!name.starts_with('#')) return false;
  name.remove_prefix(1);
  const bool is_hex = name.starts_with('x');
  if (is_hex) name.remove_prefix(1);
  uint32_t code = 0;
  const auto [end, error] =
      std::from_chars(name.data(), name.data() + name.size(), code, is_hex ? 16 : 10);
  if (error != std::errc() || end != name.data() + name.size() || code == 0 || code > 0x10FFFF)
    return false;
  append_utf8(code, out);
  return true;
}

std::optional<std::string> unescaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t plain = std::min(text.find('&'), text.size());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const size_t end = text.find(';');
    if (end == std::string_view::npos || !append_entity(text.substr(1, end - 1), out))
      return std::nullopt;
    text.remove_prefix(end + 1);
  }
  return out;
}

Status no_page() {
  return {Code::kUnavailable, "Lockstep cannot parse the server's listing"};
}

// The text of an element; nothing if it is not there, or no text.
std::optional<std::string> text_in(std::string_view xml, const std::string& name) {
  const auto inside = element(xml, name);
  return inside ? unescaped(*inside) : std::nullopt;
}

std::optional<uint64_t> number_in(std::string_view xml, const std::string& name) {
  const auto text = element(xml, name);
  uint64_t value = 0;
  if (!text) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return value;
}

std::optional<Blob> blob_in(std::string_view xml) {
  auto key = text_in(xml, "Key");
  const auto bytes = number_in(xml, "Size");
  auto etag = unescaped(element(xml, "ETag").value_or(""));
  if (!key || !bytes || !etag) return std::nullopt;
  return Blob{std::move(*key), *bytes, std::move(*etag)};
}

// Reads what crc32c_text() wrote; nothing for any other text, also of the same number.
std::optional<uint32_t> crc32c_in(const std::string& text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.size() != 8 || !text.ends_with("==")) return std::nullopt;
  uint64_t bits = 0;
  for (const char c : text.substr(0, 6)) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | digit;
  }
  const auto crc = static_cast<uint32_t>(bits >> 4);
  return crc32c_text(crc) == text ? std::optional(crc) : std::nullopt;
}

std::optional<Part> part_in(std::string_view xml) {
  const auto number = number_in(xml, "PartNumber");
  auto etag = text_in(xml, "ETag");
  const auto bytes = number_in(xml, "Size");
  if (!number || *number < 1 || *number > kMostParts || !etag || !bytes) return std::nullopt;
  const auto crc = text_in(xml, "ChecksumCRC32C");
  return Part{static_cast<uint32_t>(*number), std::move(*etag), *bytes,
              crc ? crc32c_in(*crc) : std::nullopt};
}

std::optional<Upload> upload_in(std::string_view xml) {
  auto key = text_in(xml, "Key");
  auto id = text_in(xml, "UploadId");
  if (!key || !id || id->empty()) return std::nullopt;
  return Upload{std::move(*key), std::move(*id)};
}

// A page of a listing whose name begins with `name` (moto's are called Response), and whose items
// are called `item`. `marks`: how a request for the page after it names what the page says under
// another name.
template <typename Item>
Result<Page<Item>> parse_page(std::string_view xml, const std::string& name,
                              const std::string& item,
                              std::optional<Item> (*parse)(std::string_view),
                              const std::map<std::string, std::string>& marks) {
  // Without its end the page was cut off, and lacks what would come.
  if (xml.find("<" + name) == std::string_view::npos ||
      xml.find("</" + name) == std::string_view::npos)
    return no_page();
  Page<Item> page;
  size_t from = 0;
  while (const auto inside = element(xml, item, from)) {
    auto parsed = parse(*inside);
    if (!parsed) return no_page();
    page.items.push_back(std::move(*parsed));
  }
  if (element(xml, "IsTruncated").value_or("false") != "true") return page;
  bool says_where = false;
  for (const auto& [said, asked] : marks) {
    page.next[asked] = text_in(xml, said).value_or("");
    says_where = says_where || !page.next[asked].empty();
  }
  if (!says_where) return no_page();
  return page;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

Result<Page<Blob>> parse_blobs(std::string_view xml) {
  return parse_page<Blob>(xml, "ListBucketResult", "Contents", blob_in,
                          {{"NextContinuationToken", "continuation-token"}});
}

Result<Page<Part>> parse_parts(std::string_view xml) {
  return parse_page<Part>(xml, "ListParts", "Part", part_in,
                          {{"NextPartNumberMarker", "part-number-marker"}});
}

Result<Page<Upload>> parse_uploads(std::string_view xml) {
  return parse_page<Upload>(
      xml, "ListMultipartUploadsResult", "Upload", upload_in,
      {{"NextKeyMarker", "key-marker"}, {"NextUploadIdMarker", "upload-id-marker"}});
}

Result<std::string> parse_upload_id(std::string_view xml) {
  auto id = text_in(xml, "UploadId");
  if (!id || id->empty())
    return Status(Code::kUnavailable, "the server's answer to a new upload has no id of it");
  return *id;
}

std::string completion_of(const std::vector<Part>& parts) {
  std::string xml = "<CompleteMultipartUpload>";
  for (const Part& part : parts) {
    xml += "<Part><PartNumber>" + std::to_string(part.number) + "</PartNumber><ETag>" +
           escaped(part.etag) + "</ETag>";
    if (part.crc32c) xml += "<ChecksumCRC32C>" + crc32c_text(*part.crc32c) + "</ChecksumCRC32C>";
    xml += "</Part>";
  }
  return xml + "</CompleteMultipartUpload>";
}

Status check_completion(std::string_view xml) {
  const std::string code = s3_error_code(xml);
  if (code.empty() && xml.find("<CompleteMultipartUpload") != std::string_view::npos)
    return Status::ok();
  return {code == "NoSuchUpload" ? Code::kNoInput : Code::kUnavailable,
          "the server could not join the parts" + (code.empty() ? "" : " (" + code + ")")};
}

std::string crc32c_text(uint32_t crc) {
  const std::array<uint8_t, 4> bytes{static_cast<uint8_t>(crc >> 24),
                                     static_cast<uint8_t>(crc >> 16),
                                     static_cast<uint8_t>(crc >> 8), static_cast<uint8_t>(crc)};
  return base64(bytes);
}

std::string s3_error_code(std::string_view xml) {
  constexpr size_t kLongest = 64;
  const std::string code(element(xml, "Code").value_or(""));
  const bool is_word = code.size() <= kLongest && std::all_of(code.begin(), code.end(), [](char c) {
                         return std::isalnum(static_cast<unsigned char>(c)) != 0;
                       });
  return is_word ? code : "";
}

std::string s3_region(std::string_view xml) {
  constexpr size_t kLongest = 64;
  const std::string region(element(xml, "Region").value_or(""));
  const bool is_name =
      region.size() <= kLongest && std::all_of(region.begin(), region.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-';
      });
  return is_name ? region : "";
}

Status error_of(const http::HttpAnswer& answer) {
  const std::string code = s3_error_code(answer.body);
  const std::string text = "the server answers " + std::to_string(answer.status) +
                           (code.empty() ? "" : " (" + code + ")");
  // S3 says these with 400: of keys that were good once, and of bytes that came late or broken.
  constexpr std::array kTokens = {"ExpiredToken", "TokenRefreshRequired", "InvalidToken"};
  constexpr std::array kBroken = {"RequestTimeout", "BadDigest", "XAmzContentSHA256Mismatch",
                                  "IncompleteBody"};
  const bool is_old_token = std::ranges::find(kTokens, code) != kTokens.end();
  if (answer.status == 401 || answer.status == 403 || is_old_token)
    return {Code::kRefused, text + ": access is denied"};
  if (answer.status == 404 || answer.status == 410) return {Code::kNoInput, text + ": not found"};
  const bool may_pass = answer.status == 408 || answer.status == 409 || answer.status == 429 ||
                        (answer.status >= 500 && answer.status != 501) ||
                        std::ranges::find(kBroken, code) != kBroken.end();
  return {may_pass ? Code::kUnavailable : Code::kNoInput, text};
}

}  // namespace lockstep::store
