#include "data/source/stores/s3_listing.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

namespace lockstep::source {
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

std::optional<ObjectInfo> object_in(std::string_view contents) {
  const auto key = element(contents, "Key");
  const auto size = element(contents, "Size");
  if (!key || !size) return std::nullopt;
  auto name = unescaped(*key);
  auto etag = unescaped(element(contents, "ETag").value_or(""));
  if (!name || !etag) return std::nullopt;
  ObjectInfo object{std::move(*name), 0, std::move(*etag)};
  const auto [end, error] =
      std::from_chars(size->data(), size->data() + size->size(), object.bytes);
  if (error != std::errc() || end != size->data() + size->size()) return std::nullopt;
  return object;
}

}  // namespace

Result<S3Page> parse_s3_page(std::string_view xml) {
  if (xml.find("<ListBucketResult") == std::string_view::npos) return no_page();
  S3Page page;
  size_t from = 0;
  while (const auto contents = element(xml, "Contents", from)) {
    auto object = object_in(*contents);
    if (!object) return no_page();
    page.objects.push_back(std::move(*object));
  }
  if (element(xml, "IsTruncated").value_or("false") != "true") return page;
  const auto next = unescaped(element(xml, "NextContinuationToken").value_or(""));
  if (!next || next->empty()) return no_page();
  page.next = *next;
  return page;
}

std::string s3_error_code(std::string_view xml) {
  constexpr size_t kLongest = 64;
  const std::string code(element(xml, "Code").value_or(""));
  const bool is_word = code.size() <= kLongest && std::all_of(code.begin(), code.end(), [](char c) {
                         return std::isalnum(static_cast<unsigned char>(c)) != 0;
                       });
  return is_word ? code : "";
}

}  // namespace lockstep::source
