#include "data/dataset/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>

#include "comm/base/hash.h"
#include "data/files/cached_text.h"

namespace lockstep::data {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr char kTitle[] = "lockstep statistics 1";

// Text, one channel a line, and a last line with the hash of all before.
std::string to_file(const std::vector<ChannelSums>& sums, const std::string& fingerprint) {
  std::string text = std::string(kTitle) + "\nfingerprint " + fingerprint + "\n";
  for (const ChannelSums& channel : sums)
    text += std::to_string(channel.values) + " " + std::to_string(channel.sum) + " " +
            std::to_string(channel.sum_of_squares) + "\n";
  return text + "xxh3 " + xxh3_hex(text.data(), text.size()) + "\n";
}

// The sums in `text`; empty unless `text` is exactly what to_file() writes for them.
std::vector<ChannelSums> from_file(const std::string& text, const std::string& fingerprint,
                                   uint32_t channels) {
  std::istringstream in(text);
  std::string line;
  if (!std::getline(in, line) || !std::getline(in, line)) return {};
  std::vector<ChannelSums> sums;
  for (uint32_t i = 0; i < channels; ++i) {
    ChannelSums channel;
    if (!(in >> channel.values >> channel.sum >> channel.sum_of_squares)) return {};
    sums.push_back(channel);
  }
  if (to_file(sums, fingerprint) != text) return {};
  return sums;
}

// Adds one channel of an image in (C, H, W).
void add_plane(const uint8_t* p, uint64_t plane, ChannelSums& channel) {
  // Up to 65,536 values their squares sum to less than 2^32: the inner loop stays narrow.
  constexpr uint64_t kNarrow = 65'536;
  for (uint64_t begin = 0; begin < plane; begin += kNarrow) {
    const uint64_t n = std::min(kNarrow, plane - begin);
    uint32_t sum = 0;
    uint32_t squares = 0;
    for (uint64_t k = 0; k < n; ++k) {
      const uint32_t x = p[begin + k];
      sum += x;
      squares += x * x;
    }
    channel.sum += sum;
    channel.sum_of_squares += squares;
  }
  channel.values += plane;
}

// Adds all channels of an image in (H, W, C).
void add_pixels(const uint8_t* image, uint64_t pixels, std::vector<ChannelSums>& sums) {
  for (uint64_t i = 0; i < pixels; ++i) {
    for (ChannelSums& channel : sums) {
      const uint64_t x = *image++;
      channel.sum += x;
      channel.sum_of_squares += x * x;
    }
  }
  for (ChannelSums& channel : sums) channel.values += pixels;
}

}  // namespace

void add_image(const uint8_t* image, const SampleShape& shape, std::vector<ChannelSums>& sums) {
  const uint64_t plane = uint64_t{shape.height} * shape.width;
  if (shape.channels_last) return add_pixels(image, plane, sums);
  for (ChannelSums& channel : sums) {
    add_plane(image, plane, channel);
    image += plane;
  }
}

std::vector<ChannelSums> sums_of(const Records& records) {
  std::vector<ChannelSums> sums(records.shape.channels);
  for (uint64_t i = 0; i < records.samples; ++i) add_image(records.sample(i), records.shape, sums);
  return sums;
}

ChannelStatistics statistics_of(const ChannelSums& sums) {
  // n * sum(x^2) - sum(x)^2 in integers: no cancellation, whatever the number of values.
  const Wide n = sums.values;
  const Wide spread = n * sums.sum_of_squares - Wide{sums.sum} * sums.sum;
  const double count = static_cast<double>(sums.values);
  ChannelStatistics statistics;
  statistics.mean = static_cast<double>(sums.sum) / count / 255.0;
  statistics.std = std::sqrt(static_cast<double>(spread)) / count / 255.0;
  return statistics;
}

Result<std::vector<ChannelStatistics>> row_statistics(const Records& records) {
  const size_t columns = records.shape.channels;
  const auto rows = static_cast<double>(records.samples);
  struct Column {
    float least = std::numeric_limits<float>::infinity();
    float most = -std::numeric_limits<float>::infinity();
    double sum = 0;  // of the values, then of the squares of what they are off their mean
  };
  std::vector<Column> seen(columns);
  std::vector<float> row(columns);
  const auto read = [&](uint64_t i) {
    std::memcpy(row.data(), records.sample(i), columns * sizeof(float));
  };
  for (uint64_t i = 0; i < records.samples; ++i) {
    read(i);
    for (size_t c = 0; c < columns; ++c) {
      if (!std::isfinite(row[c]))
        return Status(Code::kBadData,
                      "has a value that is not a finite number in row " + std::to_string(i) +
                          ", column " + std::to_string(c) +
                          " (both counted from 0); fill it in, or leave out the row or the column");
      seen[c].least = std::min(seen[c].least, row[c]);
      seen[c].most = std::max(seen[c].most, row[c]);
      seen[c].sum += double{row[c]};
    }
  }
  std::vector<ChannelStatistics> statistics(columns);
  for (size_t c = 0; c < columns; ++c) {
    const bool is_constant = seen[c].least == seen[c].most;
    statistics[c].mean = is_constant ? double{seen[c].least} : seen[c].sum / rows;
    seen[c].sum = 0;
  }
  for (uint64_t i = 0; i < records.samples; ++i) {
    read(i);
    for (size_t c = 0; c < columns; ++c) {
      const double off = double{row[c]} - statistics[c].mean;
      seen[c].sum += off * off;
    }
  }
  for (size_t c = 0; c < columns; ++c) statistics[c].std = std::sqrt(seen[c].sum / rows);
  return statistics;
}

std::vector<ChannelStatistics> stored_statistics(
    const std::string& key, uint32_t channels, const std::string& cache_dir,
    const std::function<std::vector<ChannelSums>()>& compute) {
  const std::string name = "statistics-" + key + ".txt";
  std::vector<ChannelSums> sums;
  if (const auto text = cached_text(cache_dir, name)) sums = from_file(*text, key, channels);
  if (sums.empty()) {
    sums = compute();
    if (!sums.empty()) keep_text(cache_dir, name, to_file(sums, key));
  }
  std::vector<ChannelStatistics> statistics;
  for (const ChannelSums& channel : sums) statistics.push_back(statistics_of(channel));
  return statistics;
}

}  // namespace lockstep::data
