#include "data/formats/images/index_marks.h"

#include <sys/stat.h>

#include <algorithm>

#include "comm/base/hash.h"
#include "data/base/change_mark.h"
#include "data/base/modified_ns.h"
#include "data/base/sampled_hash.h"
#include "data/base/thread_team.h"

namespace lockstep::data {
namespace {

constexpr uint64_t kFilesOfAPart = 512;

struct Stamp {  // no gaps: it is hashed
  uint64_t mark = 0;
  uint64_t bytes = 0;
  int64_t modified_ns = 0;
};

Stamp stamp_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {};
  return {change_mark(info), static_cast<uint64_t>(info.st_size), modified_ns(info)};
}

}  // namespace

Result<IndexMarks> look_at_files(const ExtentIndex& index, const std::string& directory,
                                 uint32_t threads) {
  if (index.files() > kMarkedFiles) return IndexMarks{};
  std::vector<Stamp> stamps(index.files());
  const uint64_t parts = (index.files() + kFilesOfAPart - 1) / kFilesOfAPart;
  const auto used = static_cast<uint32_t>(std::clamp<uint64_t>(parts, 1, threads));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto team, ThreadTeam::start(used, "index"));
  LOCKSTEP_RETURN_IF_ERROR(team->run(parts, [&](uint32_t, uint64_t part) {
    const uint64_t end = std::min(index.files(), (part + 1) * kFilesOfAPart);
    for (uint64_t i = part * kFilesOfAPart; i < end; ++i)
      stamps[i] = stamp_of(directory + "/" + std::string(index.file_name(i)));
    return Status::ok();
  }));
  Xxh3 hash;
  hash.update("lockstep index marks 1\n" + std::string(index.fingerprint()));
  hash.update(stamps.data(), stamps.size() * sizeof(Stamp));
  IndexMarks found{{}, hash.hex()};
  for (const Stamp& stamp : stamps) found.marks.push_back(stamp.mark);
  return found;
}

bool covers_all_content(const ExtentIndex& index) {
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < index.samples(); ++i) bytes += index.extent(i).bytes;
  return bytes <= kWholeContentBytes;
}

}  // namespace lockstep::data
