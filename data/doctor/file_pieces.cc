#include "data/doctor/file_pieces.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "comm/base/descriptors.h"

namespace lockstep::doctor {
namespace {

uint64_t page_bytes() {
  static const auto bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

// Pieces grow to whole pages, since the system keeps a page that is evicted only in part.
uint64_t page_of(uint64_t byte) {
  return byte / page_bytes() * page_bytes();
}
uint64_t page_behind(uint64_t byte) {
  return page_of(byte + page_bytes() - 1);
}

// By address.
std::vector<MappedRange> ranges_of_this_process() {
  std::vector<MappedRange> ranges;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (auto range = parse_mapped_range(line)) ranges.push_back(std::move(*range));
  return ranges;
}

Descriptor open_quietly(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

}  // namespace

std::optional<MappedRange> parse_mapped_range(const std::string& line) {
  MappedRange range;
  int path_at = 0;
  // begin-end, permissions, offset, device, inode, path
  const int read = std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %*s %" SCNx64 " %*s %*u %n",
                               &range.begin, &range.end, &range.offset, &path_at);
  if (read != 3 || range.begin >= range.end || path_at <= 0) return std::nullopt;
  range.path = line.substr(static_cast<size_t>(path_at));
  if (!range.path.starts_with('/')) return std::nullopt;  // memory of its own
  return range;
}

FilePieces::FilePieces(const data::Dataset& dataset, std::span<const uint64_t> samples) {
  const std::vector<MappedRange> mapped = ranges_of_this_process();
  const uint64_t bytes = dataset.shape().stored_bytes();
  const auto stored = dataset.as<data::StoredSamples>();
  for (const uint64_t i : samples) {
    if (!stored) {
      add_named(dataset.name_of(i));
      continue;
    }
    const auto [from, number] = stored->at(i);
    add_stored(mapped, from.sample(number), bytes);
  }
  for (File& file : files_) {
    for (const MappedRange& range : mapped)
      if (range.path == file.path) file.mapped.push_back(range);
    std::sort(file.pieces.begin(), file.pieces.end(),
              [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
    std::vector<Piece> joined;
    for (const Piece& piece : file.pieces) {
      if (joined.empty() || piece.begin > joined.back().end)
        joined.push_back(piece);
      else
        joined.back().end = std::max(joined.back().end, piece.end);
    }
    file.pieces = std::move(joined);
  }
}

void FilePieces::add(const std::string& path, uint64_t begin, uint64_t end) {
  auto file = std::lower_bound(files_.begin(), files_.end(), path,
                               [](const File& f, const std::string& p) { return f.path < p; });
  if (file == files_.end() || file->path != path) file = files_.insert(file, {path, {}, {}});
  file->pieces.push_back({page_of(begin), page_behind(end)});
}

void FilePieces::add_stored(const std::vector<MappedRange>& mapped, const uint8_t* sample,
                            uint64_t bytes) {
  const auto at = reinterpret_cast<uintptr_t>(sample);
  const auto behind =
      std::upper_bound(mapped.begin(), mapped.end(), at,
                       [](uintptr_t address, const MappedRange& r) { return address < r.begin; });
  if (behind == mapped.begin() || at >= std::prev(behind)->end) return;
  const MappedRange& range = *std::prev(behind);
  const uint64_t begin = range.offset + (at - range.begin);
  add(range.path, begin, begin + std::min<uint64_t>(bytes, range.end - at));
}

// "FILE", or "FILE at byte N", as data sets call their samples.
void FilePieces::add_named(std::string name) {
  if (const size_t at = name.rfind(" at byte "); at != std::string::npos) name.resize(at);
  std::error_code error;
  const auto whole = std::filesystem::canonical(name, error);
  if (error) return;
  const std::string& path = whole.native();
  const auto known =
      std::lower_bound(files_.begin(), files_.end(), path,
                       [](const File& f, const std::string& p) { return f.path < p; });
  if (known != files_.end() && known->path == path) return;
  const uint64_t bytes = std::filesystem::file_size(whole, error);
  if (!error && bytes > 0) add(path, 0, bytes);
}

void FilePieces::put_out_of_memory() const {
  for (const File& file : files_) {
    const Descriptor fd = open_quietly(file.path);
    for (const Piece& piece : file.pieces) {
      // Advice on the file alone does not evict pages that this process has mapped.
      for (const MappedRange& range : file.mapped) {
        const uint64_t range_end = range.offset + (range.end - range.begin);
        const uint64_t begin = std::max(piece.begin, range.offset);
        const uint64_t end = std::min(piece.end, range_end);
        if (begin < end)
          // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses that were compared as numbers
          ::madvise(reinterpret_cast<void*>(range.begin + (begin - range.offset)), end - begin,
                    MADV_PAGEOUT);
      }
      if (fd.get() >= 0)
        ::posix_fadvise(fd.get(), static_cast<off_t>(piece.begin),
                        static_cast<off_t>(piece.end - piece.begin), POSIX_FADV_DONTNEED);
    }
  }
}

namespace {

// How many bytes of these pages of a file are in memory; all if the system does not say, and none
// if the file cannot be mapped, as on some file systems in user space.
double bytes_in_memory(int fd, uint64_t begin, uint64_t bytes) {
  if (fd < 0) return static_cast<double>(bytes);
  void* const at = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(begin));
  if (at == MAP_FAILED) return 0;
  std::vector<unsigned char> is_there(bytes / page_bytes());
  const bool is_told = ::mincore(at, bytes, is_there.data()) == 0;
  ::munmap(at, bytes);
  if (!is_told) return static_cast<double>(bytes);
  const auto there = std::count_if(is_there.begin(), is_there.end(),
                                   [](unsigned char page) { return (page & 1) != 0; });
  return static_cast<double>(there) * static_cast<double>(page_bytes());
}

}  // namespace

double FilePieces::share_out_of_memory() const {
  double all = 0;
  double there = 0;
  for (const File& file : files_) {
    const Descriptor fd = open_quietly(file.path);
    for (const Piece& piece : file.pieces) {
      all += static_cast<double>(piece.end - piece.begin);
      there += bytes_in_memory(fd.get(), piece.begin, piece.end - piece.begin);
    }
  }
  return 1 - there / all;
}

}  // namespace lockstep::doctor
