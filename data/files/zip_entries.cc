#include "data/files/zip_entries.h"

#include <algorithm>
#include <optional>

#include "comm/base/little_endian.h"
#include "data/base/file_errors.h"

namespace lockstep::data {
namespace {

constexpr uint32_t kLocalMark = 0x04034b50;
constexpr uint32_t kCentralMark = 0x02014b50;
constexpr uint32_t kEndMark = 0x06054b50;
constexpr uint32_t kEnd64Mark = 0x06064b50;
constexpr uint32_t kEnd64PlaceMark = 0x07064b50;
constexpr size_t kLocalBytes = 30;
constexpr size_t kCentralBytes = 46;
constexpr size_t kEndBytes = 22;
constexpr size_t kEnd64Bytes = 56;
constexpr size_t kEnd64PlaceBytes = 20;
constexpr size_t kCommentBytes = 65'535;
constexpr uint32_t kIn64 = 0xffffffff;  // the number is in the 64-bit extension

struct Directory {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t entries = 0;
};

Status damaged(const std::string& what) {
  return bad("is damaged: " + what + "; copy it again");
}

// The last record of the archive. Only its own comment may follow.
std::optional<size_t> find_end(std::span<const uint8_t> archive) {
  if (archive.size() < kEndBytes) return std::nullopt;
  const size_t last = archive.size() - kEndBytes;
  const size_t first = last > kCommentBytes ? last - kCommentBytes : 0;
  for (size_t at = last + 1; at-- > first;) {
    const uint8_t* end = archive.data() + at;
    if (load_le<uint32_t>(end) == kEndMark &&
        at + kEndBytes + load_le<uint16_t>(end + 20) == archive.size())
      return at;
  }
  return std::nullopt;
}

Result<Directory> find_directory(std::span<const uint8_t> archive, size_t most_entries) {
  const auto at = find_end(archive);
  if (!at)
    return bad("is truncated, or not a zip archive: the list of its files is not at its end");
  const uint8_t* end = archive.data() + *at;
  Directory found{load_le<uint32_t>(end + 16), load_le<uint32_t>(end + 12),
                  load_le<uint16_t>(end + 10)};
  const uint8_t* place = *at >= kEnd64PlaceBytes ? end - kEnd64PlaceBytes : nullptr;
  if (place != nullptr && load_le<uint32_t>(place) == kEnd64PlaceMark) {
    const uint64_t offset = load_le<uint64_t>(place + 8);
    if (offset > archive.size() || archive.size() - offset < kEnd64Bytes ||
        load_le<uint32_t>(archive.data() + offset) != kEnd64Mark)
      return damaged("the list of its files is not at the offset in its end record");
    const uint8_t* end64 = archive.data() + offset;
    found = {load_le<uint64_t>(end64 + 48), load_le<uint64_t>(end64 + 40),
             load_le<uint64_t>(end64 + 32)};
  }
  if (found.offset > archive.size() || found.bytes > archive.size() - found.offset)
    return damaged("the list of its files reaches beyond the archive");
  if (found.entries > most_entries)
    return bad("holds " + std::to_string(found.entries) + " files, more than the limit of " +
               std::to_string(most_entries));
  return found;
}

// Numbers of an entry that do not fit 32 bits, in the order of the format.
bool read_extension(std::span<const uint8_t> extra, std::span<uint64_t*> wanted) {
  if (wanted.empty()) return true;
  while (extra.size() >= 4) {
    const uint16_t kind = load_le<uint16_t>(extra.data());
    const size_t bytes = load_le<uint16_t>(extra.data() + 2);
    extra = extra.subspan(4);
    if (bytes > extra.size()) return false;
    if (kind == 1) {
      if (bytes < 8 * wanted.size()) return false;
      for (size_t i = 0; i < wanted.size(); ++i)
        *wanted[i] = load_le<uint64_t>(extra.data() + 8 * i);
      return true;
    }
    extra = extra.subspan(bytes);
  }
  return false;
}

// Finds the content of an entry from the place of the entry's own header.
Status find_content(std::span<const uint8_t> archive, uint64_t header, ZipEntry& entry) {
  const bool is_there = header <= archive.size() && archive.size() - header >= kLocalBytes &&
                        load_le<uint32_t>(archive.data() + header) == kLocalMark;
  if (!is_there) return damaged(entry.name + " is not at its offset in the list of files");
  const uint8_t* local = archive.data() + header;
  const uint64_t skipped =
      kLocalBytes + uint64_t{load_le<uint16_t>(local + 26)} + load_le<uint16_t>(local + 28);
  entry.offset = header + skipped;
  if (entry.offset > archive.size() || entry.stored_bytes > archive.size() - entry.offset)
    return damaged(entry.name + " reaches beyond the archive");
  return Status::ok();
}

Status check_entry_kind(const ZipEntry& entry, uint16_t flags, uint16_t method) {
  if ((flags & 1) != 0)
    return bad("holds " + entry.name +
               ", which is encrypted; write the archive without encryption");
  if (method != 0 && method != 8)
    return bad("holds " + entry.name + ", packed by method " + std::to_string(method) +
               "; Lockstep reads only stored and deflated files");
  if (method == 0 && entry.bytes != entry.stored_bytes)
    return damaged(entry.name + " is not compressed, but has two different sizes");
  return Status::ok();
}

// Takes one entry off the front of the list.
Result<ZipEntry> read_entry(std::span<const uint8_t> archive, std::span<const uint8_t>& list) {
  const uint8_t* central = list.data();
  if (list.size() < kCentralBytes || load_le<uint32_t>(central) != kCentralMark)
    return damaged("the list of its files ends early");
  const size_t name = load_le<uint16_t>(central + 28);
  const size_t extra = load_le<uint16_t>(central + 30);
  const size_t whole = kCentralBytes + name + extra + load_le<uint16_t>(central + 32);
  if (whole > list.size()) return damaged("the list of its files ends early");
  ZipEntry entry;
  entry.name.assign(reinterpret_cast<const char*>(central) + kCentralBytes, name);
  entry.crc = load_le<uint32_t>(central + 16);
  entry.is_deflated = load_le<uint16_t>(central + 10) == 8;
  entry.bytes = load_le<uint32_t>(central + 24);
  entry.stored_bytes = load_le<uint32_t>(central + 20);
  uint64_t header = load_le<uint32_t>(central + 42);
  std::vector<uint64_t*> wide;
  for (uint64_t* number : {&entry.bytes, &entry.stored_bytes, &header})
    if (*number == kIn64) wide.push_back(number);
  if (!read_extension(list.subspan(kCentralBytes + name, extra), wide))
    return damaged(entry.name + " has no size");
  LOCKSTEP_RETURN_IF_ERROR(
      check_entry_kind(entry, load_le<uint16_t>(central + 8), load_le<uint16_t>(central + 10)));
  LOCKSTEP_RETURN_IF_ERROR(find_content(archive, header, entry));
  list = list.subspan(whole);
  return entry;
}

Status check_apart(std::vector<ZipEntry> entries) {
  std::sort(entries.begin(), entries.end(),
            [](const ZipEntry& a, const ZipEntry& b) { return a.offset < b.offset; });
  for (size_t i = 1; i < entries.size(); ++i)
    if (entries[i].offset < entries[i - 1].offset + entries[i - 1].stored_bytes)
      return damaged(entries[i - 1].name + " and " + entries[i].name + " overlap");
  return Status::ok();
}

}  // namespace

Result<std::vector<ZipEntry>> zip_entries(std::span<const uint8_t> archive, size_t most_entries) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Directory directory, find_directory(archive, most_entries));
  auto list = archive.subspan(directory.offset, directory.bytes);
  std::vector<ZipEntry> entries;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(ZipEntry entry, read_entry(archive, list));
    entries.push_back(std::move(entry));
  }
  LOCKSTEP_RETURN_IF_ERROR(check_apart(entries));
  return entries;
}

}  // namespace lockstep::data
