#include "worker/inference/prediction_rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "worker/inference/csv.h"

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

std::vector<double> sigmoids(std::span<const float> logits) {
  std::vector<double> out;
  out.reserve(logits.size());
  for (const float logit : logits) out.push_back(1 / (1 + std::exp(-static_cast<double>(logit))));
  return out;
}

std::string probability_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string number_text(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", static_cast<double>(value));
  return text;
}

// Version 1.0: magic, version, length, and a dictionary up to a multiple of 64 bytes.
std::string npy_header(const char* type, const std::vector<uint64_t>& shape) {
  constexpr size_t kAligned = 64;
  constexpr size_t kBefore = 10;
  std::string text = std::string("{'descr': '") + type + "', 'fortran_order': False, 'shape': (";
  for (const uint64_t size : shape) text += std::to_string(size) + ", ";
  if (shape.size() > 1) text.resize(text.size() - 2);  // a tuple of one keeps its comma
  text += "), }";
  text.append((kAligned - (kBefore + text.size() + 1) % kAligned) % kAligned, ' ');
  text += '\n';
  std::string header = "\x93NUMPY";
  header +=
      {'\x01', '\x00', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return header + text;
}

template <typename T>
void append_bytes(const std::vector<T>& values, std::string* out) {
  out->append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

}  // namespace

std::optional<PredictionFormat> prediction_format(std::string_view word) {
  if (word == "csv") return PredictionFormat::kCsv;
  if (word == "jsonl") return PredictionFormat::kJsonl;
  if (word == "npy") return PredictionFormat::kNpy;
  return std::nullopt;
}

PredictionRows::PredictionRows(PredictionFormat format, PredictionContent content)
    : format_(format), content_(std::move(content)) {}

std::string PredictionRows::class_text(uint32_t index) const {
  return index < content_.class_names.size() ? content_.class_names[index] : std::to_string(index);
}

std::string PredictionRows::npy_header_of(uint64_t samples) const {
  std::vector<uint64_t> shape = {samples};
  if (content_.kind == PredictionKind::kClasses || content_.kind == PredictionKind::kLabels)
    shape.push_back(content_.classes);
  if (content_.kind == PredictionKind::kLogits)
    shape.insert(shape.end(), content_.shape.begin(), content_.shape.end());
  if (content_.kind != PredictionKind::kMap) return npy_header("<f4", shape);
  shape.insert(shape.end(), content_.shape.begin() + 1, content_.shape.end());
  return npy_header(is_wide() ? "<i4" : "|u1", shape);
}

std::string PredictionRows::header(uint64_t samples) const {
  if (format_ == PredictionFormat::kNpy) return npy_header_of(samples);
  if (format_ == PredictionFormat::kJsonl) return "";
  std::string text = "sample,name";
  if (content_.kind == PredictionKind::kNumber) return text + ",value\n";
  for (uint32_t i = 1; i <= content_.top; ++i)
    text += ",class_" + std::to_string(i) + ",probability_" + std::to_string(i);
  return text + "\n";
}

void PredictionRows::add(uint64_t sample, const std::string& name, std::span<const float> logits,
                         std::string* out) const {
  switch (content_.kind) {
    case PredictionKind::kMap:
      return add_map(logits, out);
    case PredictionKind::kLogits:
      return append_bytes(std::vector<float>(logits.begin(), logits.end()), out);
    case PredictionKind::kNumber:
      return add_number(sample, name, logits[0], out);
    case PredictionKind::kLabels:
      return add_classes(sample, name, sigmoids(logits), out);
    case PredictionKind::kClasses:
      break;
  }
  const float both[] = {0, logits[0]};
  const bool is_of_one = logits.size() == 1 && content_.classes == 2;
  add_classes(sample, name, softmax(is_of_one ? std::span<const float>(both) : logits), out);
}

void PredictionRows::add_unread(std::string* out) const {
  if (format_ != PredictionFormat::kNpy) return;
  uint64_t values = 1;
  for (const int64_t size : content_.shape) values *= static_cast<uint64_t>(size);
  const auto fill = [&](uint64_t count, auto value) {
    append_bytes(std::vector<decltype(value)>(count, value), out);
  };
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  switch (content_.kind) {
    case PredictionKind::kMap:
      values /= static_cast<uint64_t>(content_.shape[0]);
      return is_wide() ? fill(values, int32_t{-1}) : fill(values, uint8_t{255});
    case PredictionKind::kLogits:
      return fill(values, kNan);
    case PredictionKind::kNumber:
      return fill(1, kNan);
    case PredictionKind::kClasses:
    case PredictionKind::kLabels:
      return fill(content_.classes, kNan);
  }
}

void PredictionRows::add_map(std::span<const float> logits, std::string* out) const {
  const auto classes = static_cast<size_t>(content_.shape[0]);
  const size_t places = logits.size() / classes;
  std::vector<float> most(logits.begin(), logits.begin() + static_cast<std::ptrdiff_t>(places));
  std::vector<int32_t> best(places, 0);
  if (classes == 1)
    for (size_t i = 0; i < places; ++i) best[i] = most[i] > 0 ? 1 : 0;
  for (size_t c = 1; c < classes; ++c)
    for (size_t i = 0; i < places; ++i) {
      if (!(logits[c * places + i] > most[i])) continue;
      most[i] = logits[c * places + i];
      best[i] = static_cast<int32_t>(c);
    }
  if (is_wide()) return append_bytes(best, out);
  append_bytes(std::vector<uint8_t>(best.begin(), best.end()), out);
}

void PredictionRows::add_number(uint64_t sample, const std::string& name, float value,
                                std::string* out) const {
  if (format_ == PredictionFormat::kNpy) return append_bytes(std::vector<float>{value}, out);
  if (format_ == PredictionFormat::kCsv) {
    *out += std::to_string(sample) + "," + csv_cell(name) + "," + number_text(value) + "\n";
    return;
  }
  const nlohmann::ordered_json row = {{"sample", sample}, {"name", name}, {"value", value}};
  *out += row.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void PredictionRows::add_classes(uint64_t sample, const std::string& name,
                                 const std::vector<double>& shares, std::string* out) const {
  if (format_ == PredictionFormat::kNpy)
    return append_bytes(std::vector<float>(shares.begin(), shares.end()), out);
  const uint32_t top = content_.top;
  std::vector<uint32_t> order(shares.size());
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + top, order.end(), [&](uint32_t a, uint32_t b) {
    return shares[a] != shares[b] ? shares[a] > shares[b] : a < b;
  });
  order.resize(top);
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
    if (index < content_.class_names.size()) one["class"] = content_.class_names[index];
    one["index"] = index;
    one["probability"] = shares[index];
    row["top"].push_back(std::move(one));
  }
  *out += row.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep
