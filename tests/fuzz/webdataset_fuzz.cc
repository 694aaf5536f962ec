// Any bytes as a tar archive of samples: refused, or samples that lie within it. The fuzzer
// corrects the sums of the headers, because it would not find them.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "data/formats/shards/tar_entries.h"
#include "data/formats/shards/webdataset.h"
#include "tests/fuzz/samples_within.h"

namespace lockstep::data {
namespace {

constexpr size_t kBlock = 512;

void put_sum_right(uint8_t* header) {
  std::memset(header + 148, ' ', 8);
  unsigned sum = 0;
  for (size_t i = 0; i < kBlock; ++i) sum += header[i];
  char text[8];
  std::snprintf(text, sizeof text, "%06o", sum);
  std::memcpy(header + 148, text, 7);
}

void try_archive(std::span<const uint8_t> archive) {
  const Status walked = walk_tar(archive, [&](const TarEntry& entry) {
    LOCKSTEP_CHECK(entry.offset <= archive.size() && entry.bytes <= archive.size() - entry.offset,
                   "a file lies within its archive");
    LOCKSTEP_CHECK(!entry.name.empty() && entry.name.front() != '/', "names are relative");
    return Status::ok();
  });
  LOCKSTEP_CHECK(walked.is_ok() || walked.code() == Code::kBadData, "damage is bad data");
  check_samples_within(samples_of_tar(archive), archive);
  TarMasks masks{.endings = {"png"}, .taken = "", .has_label = false};
  check_samples_within(samples_of_tar(archive, {}, nullptr, masks), archive);
  masks.taken = "png";
  check_samples_within(samples_of_tar(archive, {}, nullptr, masks), archive);
}

}  // namespace
}  // namespace lockstep::data

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::data::try_archive({data, size});
  std::vector<uint8_t> archive(data, data + size);
  for (size_t at = 0; at + lockstep::data::kBlock <= archive.size(); at += lockstep::data::kBlock)
    if (archive[at] != 0) lockstep::data::put_sum_right(&archive[at]);
  lockstep::data::try_archive(archive);
  return 0;
}
