#include "worker/replay/sample_place.h"

#include <zlib.h>

#include <algorithm>
#include <array>

#include "comm/base/limits.h"
#include "data/index/cifar_files.h"
#include "data/index/idx_header.h"
#include "data/index/mapped_file.h"
#include "data/index/npy_header.h"
#include "data/index/token_files.h"

namespace lockstep {
namespace {

Result<SamplePlace> place_in_idx(const data::Dataset& dataset) {
  SamplePlace place;
  place.sample_bytes = dataset.shape().stored_bytes();
  const std::string& path = dataset.files().front();
  // Reads plain files as they are, and others inflated.
  const gzFile file = ::gzopen(path.c_str(), "rb");
  if (file == nullptr) return Status(Code::kNoInput, "cannot open " + path);
  std::array<uint8_t, limits::kIdxHeaderBytes> head{};
  const int got = ::gzread(file, head.data(), head.size());
  place.is_compressed = ::gzdirect(file) == 0;
  ::gzclose(file);
  if (got < 0) return Status(Code::kBadData, path + " cannot be read");
  const auto header = data::parse_idx_header(std::span(head.data(), static_cast<size_t>(got)));
  if (!header.is_ok()) return header.status().with_context(path);
  place.files.push_back({path, 0, header->header_bytes});
  return place;
}

// Of records, the label before the pixels included.
Result<SamplePlace> place_in_cifar(const data::Dataset& dataset, const data::CifarFormat& format) {
  SamplePlace place;
  place.sample_bytes = format.record_bytes();
  uint64_t first = 0;
  for (const std::string& path : dataset.files()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto file, data::MappedFile::open(path));
    place.files.push_back({path, first, 0});
    first += file.bytes().size() / place.sample_bytes;
  }
  return place;
}

Result<SamplePlace> place_in_npy(const data::Dataset& dataset) {
  const std::string& path = dataset.files().front();
  LOCKSTEP_ASSIGN_OR_RETURN(const auto file, data::MappedFile::open(path));
  const auto header = data::parse_npy_header(file.bytes());
  if (!header.is_ok()) return header.status().with_context(path);
  SamplePlace place;
  place.sample_bytes = dataset.shape().stored_bytes();
  place.files.push_back({path, 0, header->header_bytes});
  return place;
}

Result<SamplePlace> place_in_tokens(const data::Dataset& dataset, const std::string& format) {
  const data::SampleShape shape = dataset.shape();
  SamplePlace place;
  place.sample_bytes = uint64_t{shape.tokens} * shape.token_bytes;
  uint64_t first = 0;
  for (const std::string& path : dataset.files()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto file, data::MappedFile::open(path));
    LOCKSTEP_ASSIGN_OR_RETURN(const data::TokenRange range,
                              data::token_range_of(path, file, format));
    place.files.push_back({path, first, range.offset});
    first += (range.tokens - 1) / shape.tokens;
  }
  return place;
}

}  // namespace

const SamplePlace::File& SamplePlace::file_of(uint64_t sample) const {
  auto file = std::upper_bound(files.begin(), files.end(), sample,
                               [](uint64_t n, const File& f) { return n < f.first_sample; });
  return *--file;
}

uint64_t SamplePlace::offset_of(uint64_t sample) const {
  const File& file = file_of(sample);
  return file.first_offset + (sample - file.first_sample) * sample_bytes;
}

std::string to_text(const SamplePlace& place, uint64_t sample) {
  if (place.files.empty()) return "in memory";
  return place.file_of(sample).path + (place.is_compressed ? " (inflated)" : "") + " offset " +
         std::to_string(place.offset_of(sample));
}

Result<SamplePlace> place_of_samples(const data::Dataset& dataset, const std::string& format) {
  if (dataset.files().empty()) return SamplePlace{};
  if (dataset.shape().is_sequence()) return place_in_tokens(dataset, format);
  if (const data::CifarFormat* cifar = data::cifar_format(dataset.format()))
    return place_in_cifar(dataset, *cifar);
  return dataset.format() == "npy" ? place_in_npy(dataset) : place_in_idx(dataset);
}

}  // namespace lockstep
