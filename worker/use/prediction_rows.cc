#include "worker/use/prediction_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

namespace lockstep {
namespace {

static_assert(std::endian::native == std::endian::little, "npy files say <f4");

std::vector<double> softmax(std::span<const float> logits) {
  const auto largest = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  std::vector<double> out;
  out.reserve(logits.size());
  double sum = 0;
  for (const float logit : logits) {
    out.push_back(std::exp(static_cast<double>(logit) - largest));
    sum += out.back();
  }
  for (double& value : out) value /= sum;
  return out;
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string probability_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

// Version 1.0: magic, version, length, and a dictionary up to a multiple of 64 bytes.
std::string npy_header(uint64_t samples, uint64_t classes) {
  constexpr size_t kAligned = 64;
  constexpr size_t kBefore = 10;
  std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                     std::to_string(samples) + ", " + std::to_string(classes) + "), }";
  text.append((kAligned - (kBefore + text.size() + 1) % kAligned) % kAligned, ' ');
  text += '\n';
  std::string header = "\x93NUMPY";
  header +=
      {'\x01', '\x00', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return header + text;
}

}  // namespace

std::optional<PredictionFormat> prediction_format(std::string_view word) {
  if (word == "csv") return PredictionFormat::kCsv;
  if (word == "jsonl") return PredictionFormat::kJsonl;
  if (word == "npy") return PredictionFormat::kNpy;
  return std::nullopt;
}

PredictionRows::PredictionRows(PredictionFormat format, uint32_t classes, uint32_t top,
                               std::vector<std::string> class_names)
    : format_(format), classes_(classes), top_(top), class_names_(std::move(class_names)) {}

std::string PredictionRows::class_text(uint32_t index) const {
  return index < class_names_.size() ? class_names_[index] : std::to_string(index);
}

std::string PredictionRows::header(uint64_t samples) const {
  if (format_ == PredictionFormat::kNpy) return npy_header(samples, classes_);
  if (format_ == PredictionFormat::kJsonl) return "";
  std::string text = "sample,name";
  for (uint32_t i = 1; i <= top_; ++i)
    text += ",class_" + std::to_string(i) + ",probability_" + std::to_string(i);
  return text + "\n";
}

void PredictionRows::add(uint64_t sample, const std::string& name, std::span<const float> logits,
                         std::string* out) const {
  const std::vector<double> shares = softmax(logits);
  if (format_ == PredictionFormat::kNpy) {
    const std::vector<float> floats(shares.begin(), shares.end());
    out->append(reinterpret_cast<const char*>(floats.data()), floats.size() * sizeof(float));
    return;
  }
  std::vector<uint32_t> order(shares.size());
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + top_, order.end(), [&](uint32_t a, uint32_t b) {
    return shares[a] != shares[b] ? shares[a] > shares[b] : a < b;
  });
  order.resize(top_);
  if (format_ == PredictionFormat::kCsv) {
    *out += std::to_string(sample) + "," + csv_cell(name);
    for (const uint32_t index : order)
      *out += "," + csv_cell(class_text(index)) + "," + probability_text(shares[index]);
    *out += "\n";
    return;
  }
  nlohmann::ordered_json row = {{"sample", sample}, {"name", name}};
  for (const uint32_t index : order) {
    nlohmann::ordered_json one;
    if (index < class_names_.size()) one["class"] = class_names_[index];
    one["index"] = index;
    one["probability"] = shares[index];
    row["top"].push_back(std::move(one));
  }
  *out += row.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep
