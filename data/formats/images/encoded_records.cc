#include "data/formats/images/encoded_records.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "comm/base/hash.h"
#include "comm/base/prng.h"
#include "data/base/change_mark.h"
#include "data/base/file_errors.h"
#include "data/base/thread_team.h"
#include "data/formats/images/look_at_image.h"

namespace lockstep::data {
namespace {

// In rising order, without one twice.
std::vector<uint64_t> contents_to_hash(const std::vector<Extent>& extents, uint64_t whole_bytes) {
  uint64_t bytes = 0;
  for (const Extent& extent : extents) bytes += extent.bytes;
  std::vector<uint64_t> chosen;
  if (bytes <= whole_bytes || extents.size() <= kSampledContents) {
    chosen.resize(extents.size());
    std::iota(chosen.begin(), chosen.end(), uint64_t{0});
    return chosen;
  }
  const uint64_t key = stream_key({extents.size(), kSampledContents});
  for (uint64_t i = 0; i < kSampledContents; ++i)
    chosen.push_back(stream_value(key, i) % extents.size());
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

// Notes the mark of the content, too.
Result<std::string> hash_of_content(const IndexContent& content, const std::string& directory,
                                    Extent& extent, source::RemoteFiles* far) {
  thread_local std::vector<uint8_t> bytes;
  const IndexContent::Path& file = content.files[extent.file];
  LOCKSTEP_RETURN_IF_ERROR(read_wherever(far, directory + "/" + file.name, extent,
                                         {file.bytes, file.modified_ns, 0}, bytes));
  extent.content = static_cast<uint32_t>(content_mark(bytes));
  return xxh3_hex(bytes.data(), bytes.size());
}

void add_number(uint64_t value, Xxh3& hash) {
  uint8_t bytes[8];
  for (size_t i = 0; i < sizeof bytes; ++i) bytes[i] = static_cast<uint8_t>(value >> (8 * i));
  hash.update(bytes, sizeof bytes);
}

void add_text(std::string_view text, Xxh3& hash) {
  add_number(text.size(), hash);
  hash.update(text.data(), text.size());
}

}  // namespace

Result<std::string> fingerprint_of(IndexContent& content, const std::string& directory,
                                   uint32_t threads, const ProgressFn& progress,
                                   uint64_t whole_bytes, source::RemoteFiles* far) {
  const std::vector<uint64_t> chosen = contents_to_hash(content.extents, whole_bytes);
  std::vector<std::string> hashes(chosen.size());
  LOCKSTEP_ASSIGN_OR_RETURN(const auto team, ThreadTeam::start(threads, "index"));
  ProgressOfMany shown("checking the content of the images", chosen.size(), progress);
  LOCKSTEP_RETURN_IF_ERROR(team->run(chosen.size(), [&](uint32_t thread, uint64_t i) {
    auto hash = hash_of_content(content, directory, content.extents[chosen[i]], far);
    if (hash.is_ok()) hashes[i] = std::move(*hash);
    shown.one_done(thread);
    return hash.status();
  }));
  Xxh3 hash;
  hash.update("lockstep encoded samples 1\n");
  add_number(content.extents.size(), hash);
  for (const std::string& name : content.classes) add_text(name, hash);
  for (const Extent& extent : content.extents) {
    add_text(content.files[extent.file].name, hash);
    for (const uint64_t value : {extent.offset, uint64_t{extent.bytes}, uint64_t{extent.label}})
      add_number(value, hash);
  }
  for (const std::string& content_hash : hashes) add_text(content_hash, hash);
  return hash.hex();
}

Result<std::vector<ChannelSums>> sums_of(const ExtentIndex& index, const EncodedFiles& files,
                                         const WantedImage& wanted, uint32_t threads,
                                         const ProgressFn& progress, DamagedFiles& damaged) {
  struct Hand {  // of one thread
    ImageDecoder decoder;
    std::vector<uint8_t> encoded;
    std::vector<uint8_t> image;
    std::vector<ChannelSums> sums;
  };
  const uint64_t images = std::min(index.samples(), kStatisticsImages);
  LOCKSTEP_ASSIGN_OR_RETURN(const auto team, ThreadTeam::start(threads, "index"));
  std::vector<Hand> hands(team->threads());
  for (Hand& hand : hands) {
    hand.image.resize(uint64_t{wanted.width} * wanted.height * wanted.channels);
    hand.sums.resize(wanted.channels);
  }
  ProgressOfMany shown("measuring the images", images, progress);
  const auto look = [&](uint32_t thread, uint64_t i) -> Status {
    Hand& hand = hands[thread];
    const uint64_t sample = i * index.samples() / images;
    shown.one_done(thread);
    if (Status read = files.read(sample, hand.encoded); !read.is_ok())
      return damaged.take(sample, std::move(read));
    const Status decoded =
        hand.decoder.decode(hand.encoded, wanted, std::nullopt, hand.image.data());
    if (!decoded.is_ok())
      return damaged.take(sample, about(files.name_of(index.extent(sample)), decoded));
    add_image(hand.image.data(), {wanted.channels, wanted.height, wanted.width}, hand.sums);
    return Status::ok();
  };
  LOCKSTEP_RETURN_IF_ERROR(team->run(images, look));
  std::vector<ChannelSums> sums(wanted.channels);  // of integers: any order gives the same
  for (const Hand& hand : hands)
    for (uint32_t c = 0; c < wanted.channels; ++c) sums[c].add(hand.sums[c]);
  return sums;
}

}  // namespace lockstep::data
