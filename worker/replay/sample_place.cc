#include "worker/replay/sample_place.h"

#include <zlib.h>

#include <array>

#include "comm/base/limits.h"
#include "data/index/idx_header.h"

namespace lockstep {

Result<SamplePlace> place_of_samples(const data::Dataset& dataset) {
  SamplePlace place;
  place.sample_bytes = dataset.shape().elements();
  if (dataset.files().empty()) return place;
  place.file = dataset.files().front();
  // Reads plain files as they are, and others inflated.
  const gzFile file = ::gzopen(place.file.c_str(), "rb");
  if (file == nullptr) return Status(Code::kNoInput, "cannot open " + place.file);
  std::array<uint8_t, limits::kIdxHeaderBytes> head{};
  const int got = ::gzread(file, head.data(), head.size());
  place.is_compressed = ::gzdirect(file) == 0;
  ::gzclose(file);
  if (got < 0) return Status(Code::kBadData, place.file + " cannot be read");
  const auto header = data::parse_idx_header(std::span(head.data(), static_cast<size_t>(got)));
  if (!header.is_ok()) return header.status().with_context(place.file);
  place.first_offset = header->header_bytes;
  return place;
}

}  // namespace lockstep
