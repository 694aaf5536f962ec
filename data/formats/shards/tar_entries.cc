#include "data/formats/shards/tar_entries.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "comm/base/byte_units.h"
#include "comm/base/limits.h"
#include "data/base/file_errors.h"
#include "data/files/gzip.h"

namespace lockstep::data {
namespace {

constexpr uint64_t kBlock = 512;
constexpr uint64_t kExtensionBytes = kMib;  // of a header that is a file of its own

// A header's fields, by where they begin and how long they are.
struct Field {
  size_t at;
  size_t bytes;
};
constexpr Field kName{0, 100};
constexpr Field kSize{124, 12};
constexpr Field kChecksum{148, 8};
constexpr size_t kType = 156;
constexpr Field kTarMagic{257, 5};
constexpr Field kPrefix{345, 155};

std::string_view field_text(const uint8_t* header, Field field) {
  const auto* begin = reinterpret_cast<const char*>(header + field.at);
  return {begin, ::strnlen(begin, field.bytes)};
}

// Octal digits, or, with the highest bit set, bytes, as GNU writes large numbers.
std::optional<uint64_t> octal_number(const uint8_t* header, Field field) {
  const uint8_t* p = header + field.at;
  uint64_t value = 0;
  if ((p[0] & 0x80) != 0) {
    if (p[0] != 0x80) return std::nullopt;  // negative, or beyond 2^88
    for (size_t i = 1; i < field.bytes; ++i) {
      if (value >> 56 != 0) return std::nullopt;
      value = value << 8 | p[i];
    }
    return value;
  }
  std::string_view digits = field_text(header, field);
  while (!digits.empty() && digits.front() == ' ') digits.remove_prefix(1);
  while (!digits.empty() && digits.back() == ' ') digits.remove_suffix(1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 8);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

bool is_all_zero(const uint8_t* block) {
  return std::all_of(block, block + kBlock, [](uint8_t byte) { return byte == 0; });
}

bool checksum_holds(const uint8_t* header) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const bool is_sum = i >= kChecksum.at && i < kChecksum.at + kChecksum.bytes;
    sum += is_sum ? ' ' : header[i];
  }
  return octal_number(header, kChecksum) == sum;
}

std::string entry_name(const uint8_t* header) {
  const std::string name(field_text(header, kName));
  const std::string_view prefix = field_text(header, kPrefix);
  const bool has_prefix = field_text(header, kTarMagic) == "ustar" && !prefix.empty();
  return has_prefix ? std::string(prefix) + "/" + name : name;
}

Status check_name(const std::string& name, uint64_t at) {
  const std::string where = "has a file at byte " + std::to_string(at);
  if (name.empty() || name.size() > limits::kSampleNameBytes ||
      name.find('\0') != std::string::npos)
    return bad(where + " whose name is empty, too long or not text");
  if (name.front() == '/') return bad(where + " with an absolute name, " + name);
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    if (name.compare(begin, end - begin, "..") == 0)
      return bad(where + " whose name leads upwards, " + name);
    begin = end + 1;
  }
  return Status::ok();
}

// The statements of a pax header on the next file.
struct Said {
  std::string name;
  std::optional<uint64_t> bytes;
};

// Lines "LENGTH KEY=VALUE\n", each as long as it says.
Status read_pax(std::string_view text, Said& said) {
  Status damaged = bad("is damaged: Lockstep cannot read one of its pax headers");
  while (!text.empty()) {
    size_t length = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    const auto digits = static_cast<size_t>(end - text.data());
    if (error != std::errc() || length <= digits + 1 || length > text.size()) return damaged;
    const std::string_view line = text.substr(digits + 1, length - digits - 2);
    text.remove_prefix(length);
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) return damaged;
    const std::string_view key = line.substr(0, equals);
    const std::string_view value = line.substr(equals + 1);
    if (key == "path") said.name = value;
    if (key.starts_with("GNU.sparse"))
      return bad("has a sparse file; write the archive without --sparse");
    if (key != "size") continue;
    uint64_t bytes = 0;
    const auto [size_end, wrong] =
        std::from_chars(value.data(), value.data() + value.size(), bytes);
    if (wrong != std::errc() || size_end != value.data() + value.size()) return damaged;
    said.bytes = bytes;
  }
  return Status::ok();
}

Status not_plain(uint8_t type, const std::string& name) {
  if (type == '1' || type == '2')
    return bad("holds a link, " + name +
               "; write the archive again with the files themselves (tar "
               "--dereference --hard-dereference)");
  if (type == 'S')
    return bad("holds a sparse file, " + name +
               ", whose holes are left out; write the archive again without tar's --sparse");
  return bad("holds a special file, " + name + " (type " + std::to_string(type) +
             "); write the archive again with plain files only");
}

Status damaged_at(uint64_t at) {
  return bad("is damaged: no file header begins at byte " + std::to_string(at));
}

Status compressed_or_damaged(std::span<const uint8_t> archive) {
  return is_gzip(archive) ? gzipped_whole() : damaged_at(0);
}

}  // namespace

Status walk_tar(std::span<const uint8_t> archive,
                const std::function<Status(const TarEntry&)>& each) {
  Said said;
  for (uint64_t at = 0; at < archive.size();) {
    if (archive.size() - at < kBlock) return bad("is truncated");
    const uint8_t* header = archive.data() + at;
    if (is_all_zero(header)) return Status::ok();
    if (!checksum_holds(header)) return at == 0 ? compressed_or_damaged(archive) : damaged_at(at);
    const uint8_t type = header[kType];
    const bool is_extension = type == 'x' || type == 'g' || type == 'L' || type == 'K';
    const auto stated = octal_number(header, kSize);
    const uint64_t bytes = !is_extension && said.bytes ? *said.bytes : stated.value_or(0);
    const uint64_t begin = at + kBlock;
    if (!stated) return damaged_at(at);
    if (bytes > archive.size() - begin) return bad("is truncated");
    const uint64_t blocks = (bytes + kBlock - 1) / kBlock * kBlock;
    const uint64_t next = blocks < archive.size() - begin ? begin + blocks : archive.size();
    if (is_extension) {
      if (bytes > kExtensionBytes) return damaged_at(at);
      const std::string_view text(reinterpret_cast<const char*>(archive.data() + begin), bytes);
      if (type == 'x') LOCKSTEP_RETURN_IF_ERROR(read_pax(text, said));
      if (type == 'L') said.name = text.substr(0, text.find('\0'));
      at = next;
      continue;
    }
    const std::string name = said.name.empty() ? entry_name(header) : said.name;
    said = {};
    if (type != '0' && type != 0 && type != '7' && type != '5') return not_plain(type, name);
    LOCKSTEP_RETURN_IF_ERROR(check_name(name, at));
    if (type != '5') LOCKSTEP_RETURN_IF_ERROR(each({name, begin, bytes}));
    at = next;
  }
  return archive.empty() ? bad("is empty") : Status::ok();
}

}  // namespace lockstep::data
