// Any bytes as MDS's index.json, and as a shard of several kinds of columns: refused, or samples
// that lie within it.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "data/formats/shards/mds.h"
#include "tests/fuzz/samples_within.h"

namespace lockstep::data {
namespace {

void try_index(std::string_view text) {
  auto shards = parse_mds_index(text);
  if (!shards.is_ok()) {
    LOCKSTEP_CHECK(shards.status().code() == Code::kBadData, "damage is bad data");
    return;
  }
  for (MdsShard& shard : *shards) {
    if (!choose_mds_columns(shard, {}).is_ok()) continue;
    LOCKSTEP_CHECK(shard.samples > 0 && shard.image < shard.columns.size() &&
                       shard.label < shard.columns.size() && shard.image != shard.label,
                   "a shard has samples with an image and a label");
    LOCKSTEP_CHECK(
        !shard.name.empty() && shard.name.front() != '/' && !shard.packed_name.starts_with('/'),
        "names are relative");
  }
}

void try_columns(std::span<const uint8_t> bytes, uint64_t samples, std::vector<MdsColumn> columns,
                 size_t image, size_t label) {
  const MdsShard shard{.name = "x",
                       .bytes = bytes.size(),
                       .samples = samples,
                       .columns = std::move(columns),
                       .image = image,
                       .label = label};
  check_samples_within(samples_of_mds(shard, bytes), bytes);
}

// The shard gives the number of samples, so that the fuzzer gets past it.
void try_shard(std::span<const uint8_t> bytes) {
  if (bytes.size() < 4) return;
  const uint64_t samples =
      bytes[0] | uint64_t{bytes[1]} << 8 | uint64_t{bytes[2]} << 16 | uint64_t{bytes[3]} << 24;
  const MdsColumn image{"image", "jpeg", 0};
  const MdsColumn name{"name", "str", 0};
  for (const MdsColumn& label : {MdsColumn{"label", "int", 8}, MdsColumn{"label", "uint8", 1}}) {
    try_columns(bytes, samples, {image, label}, 0, 1);
    try_columns(bytes, samples, {label, name, image}, 2, 0);
  }
}

}  // namespace
}  // namespace lockstep::data

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::data::try_index({reinterpret_cast<const char*>(data), size});
  lockstep::data::try_shard({data, size});
  return 0;
}
