#include "worker/model/exported_program/stored_zip.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "comm/base/descriptors.h"
#include "comm/base/file.h"
#include "comm/base/text/shell_word.h"

namespace lockstep::exported {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr uint32_t kIn64Bits = 0xffffffff;
constexpr uint16_t kUtf8Names = 0x800;
constexpr uint16_t kVersion = 45;      // 64-bit sizes
constexpr uint16_t kPadding = 0x4246;  // "FB", as PyTorch marks it
constexpr size_t kFixedLocalBytes = 30;
constexpr size_t kExtraHeadBytes = 4;

void put(std::string& out, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

uint32_t in_32(uint64_t value) {
  return value >= kIn64Bits ? kIn64Bits : static_cast<uint32_t>(value);
}

// The numbers that do not fit 32 bits, in the order of the format; empty if all fit.
std::string wide_numbers(std::initializer_list<uint64_t> numbers) {
  std::string wide;
  for (const uint64_t n : numbers)
    if (n >= kIn64Bits) put(wide, n, 8);
  if (wide.empty()) return wide;
  std::string extra;
  put(extra, 1, 2);
  put(extra, wide.size(), 2);
  return extra + wide;
}

uint32_t crc_of(std::span<const uint8_t> content) {
  constexpr size_t kMostAtOnce = size_t{1} << 30;
  uLong crc = ::crc32(0, nullptr, 0);
  for (size_t at = 0; at < content.size(); at += kMostAtOnce)
    crc = ::crc32(crc, content.data() + at,
                  static_cast<uInt>(std::min(content.size() - at, kMostAtOnce)));
  return static_cast<uint32_t>(crc);
}

// The fields that local header and directory share, from flags to the length of the name.
std::string common_fields(uint32_t crc, uint64_t bytes, const std::string& name) {
  std::string out;
  put(out, kUtf8Names, 2);
  put(out, 0, 2);  // stored
  put(out, 0, 4);  // no time: the same weights make the same file
  put(out, crc, 4);
  put(out, in_32(bytes), 4);
  put(out, in_32(bytes), 4);
  put(out, name.size(), 2);
  return out;
}

}  // namespace

StoredZip::StoredZip(std::string path)
    : path_(std::move(path)),
      temporary_(path_ + ".tmp" + std::to_string(::getpid())),
      fd_(create_own_file(temporary_, 0644)) {
  if (fd_ < 0) fail("cannot be created");
}

StoredZip::~StoredZip() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void StoredZip::fail(const std::string& what) {
  if (!status_.is_ok()) return;
  status_ = {Code::kInternal, shell_word(temporary_) + " " + what + ": " + errno_text(errno) +
                                  "; make room or choose another directory"};
}

void StoredZip::write(std::string_view bytes) {
  if (!status_.is_ok()) return;
  if (!write_all(fd_, bytes)) fail("cannot be written");
  at_ += bytes.size();
}

Status StoredZip::add(const std::string& name, std::span<const uint8_t> content) {
  const Entry entry{name, at_, content.size(), crc_of(content)};
  // A local header has both sizes in the extension, or neither.
  std::string extra;
  if (entry.bytes >= kIn64Bits) extra = wide_numbers({entry.bytes, entry.bytes});
  const uint64_t begin = at_ + kFixedLocalBytes + name.size() + extra.size() + kExtraHeadBytes;
  const uint64_t padding = (kAlignment - begin % kAlignment) % kAlignment;
  put(extra, kPadding, 2);
  put(extra, padding, 2);
  extra.append(padding, 'Z');
  std::string header = "PK\x03\x04";
  put(header, kVersion, 2);
  header += common_fields(entry.crc, entry.bytes, name);
  put(header, extra.size(), 2);
  write(header + name + extra);
  write({reinterpret_cast<const char*>(content.data()), content.size()});
  entries_.push_back(entry);
  return status_;
}

std::string StoredZip::directory() const {
  std::string list;
  for (const Entry& entry : entries_) {
    const std::string extra = wide_numbers({entry.bytes, entry.bytes, entry.header});
    list += "PK\x01\x02";
    put(list, kVersion, 2);
    put(list, kVersion, 2);
    list += common_fields(entry.crc, entry.bytes, entry.name);
    put(list, extra.size(), 2);
    list.append(10, '\0');  // comment, disk, attributes
    put(list, in_32(entry.header), 4);
    list += entry.name + extra;
  }
  return list;
}

Status StoredZip::finish() {
  const uint64_t begin = at_;
  const std::string list = directory();
  std::string end = "PK\x06\x06";
  put(end, 44, 8);  // bytes that follow in this record
  put(end, kVersion, 2);
  put(end, kVersion, 2);
  put(end, 0, 8);  // disks
  put(end, entries_.size(), 8);
  put(end, entries_.size(), 8);
  put(end, list.size(), 8);
  put(end, begin, 8);
  end += "PK\x06\x07";
  put(end, 0, 4);
  put(end, begin + list.size(), 8);
  put(end, 1, 4);
  end += "PK\x05\x06";
  put(end, 0, 4);
  for (int i = 0; i < 2; ++i) put(end, std::min<uint64_t>(entries_.size(), 0xffff), 2);
  put(end, in_32(list.size()), 4);
  put(end, in_32(begin), 4);
  put(end, 0, 2);
  write(list + end);
  if (status_.is_ok() && ::fsync(fd_) != 0) fail("cannot be written");
  if (status_.is_ok() && ::rename(temporary_.c_str(), path_.c_str()) != 0)
    fail("cannot become " + shell_word(path_));
  if (!status_.is_ok()) return status_;
  ::close(std::exchange(fd_, -1));
  const std::string folder = std::filesystem::path(path_).parent_path().string();
  return sync_directory(folder.empty() ? "." : folder);
}

}  // namespace lockstep::exported
