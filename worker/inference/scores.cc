#include "worker/inference/scores.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "comm/base/text/printable.h"
#include "comm/base/text/utf8.h"
#include "worker/engine/loss.h"
#include "worker/inference/csv.h"

namespace lockstep {
namespace {

constexpr size_t kMostInTerminal = 12;  // classes
constexpr size_t kNameWidth = 24;
constexpr size_t kLabelWidth = 11;

template <typename... Values>
std::string formatted(const char* format, Values... values) {
  char text[128];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string percent_text(uint64_t part, uint64_t whole) {
  return whole == 0 ? "-" : formatted("%.2f %%", 100 * share(part, whole));
}

// The counts of one class.
struct ClassCounts {
  uint64_t samples = 0;
  uint64_t predicted = 0;
  uint64_t right = 0;
};

ClassCounts counts_of(const Scores& scores, size_t index) {
  ClassCounts counts;
  for (size_t other = 0; other < scores.class_names.size(); ++other) {
    counts.samples += scores.of(index, other);
    counts.predicted += scores.of(other, index);
  }
  counts.right = scores.of(index, index);
  return counts;
}

std::string cell(std::string text, size_t width) {
  if (text.size() < width) text.insert(0, width - text.size(), ' ');
  return text;
}

// The first characters of a name, none of them cut, and how many they are.
std::pair<std::string, size_t> short_name(const std::string& name) {
  const std::string shown = printable_line(name);
  std::string text;
  size_t characters = 0;
  while (characters < kNameWidth && text.size() < shown.size()) {
    const std::string_view rest = std::string_view(shown).substr(text.size());
    text += rest.substr(0, std::max<size_t>(1, utf8_character_bytes(rest)));
    ++characters;
  }
  return {text, characters};
}

// The cell of a metric's name, which may be longer.
std::string left_cell(std::string text, size_t width) {
  if (text.size() + 1 < width) text.resize(width, ' ');
  return text.back() == ' ' ? text : text + " ";
}

std::string name_cell(const std::string& name) {
  auto [text, characters] = short_name(name);
  return text.append(kNameWidth - characters, ' ');
}

std::string class_rows(const Scores& scores) {
  std::string text = "\n" + name_cell("class") + cell("samples", 10) + cell("recall", 11) +
                     cell("precision", 11) + "\n";
  for (size_t i = 0; i < scores.class_names.size(); ++i) {
    const ClassCounts counts = counts_of(scores, i);
    text += name_cell(scores.class_names[i]) + cell(std::to_string(counts.samples), 10) +
            cell(percent_text(counts.right, counts.samples), 11) +
            cell(percent_text(counts.right, counts.predicted), 11) + "\n";
  }
  return text;
}

std::string matrix_rows(const Scores& scores) {
  size_t width = 4;
  for (const uint64_t count : scores.confusion)
    width = std::max(width, std::to_string(count).size() + 1);
  std::string text = "\nrows: the label; columns: the prediction\n" + name_cell("");
  for (size_t i = 0; i < scores.class_names.size(); ++i) text += cell(std::to_string(i), width);
  text += "\n";
  for (size_t i = 0; i < scores.class_names.size(); ++i) {
    text += name_cell(std::to_string(i) + " " + scores.class_names[i]);
    for (size_t j = 0; j < scores.class_names.size(); ++j)
      text += cell(std::to_string(scores.of(i, j)), width);
    text += "\n";
  }
  return text;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return out;
}

// Right ones are blue, wrong ones red.
std::string colour(int shade, bool is_right) {
  const std::string light = std::to_string(shade);
  return is_right ? "rgb(" + light + "," + light + ",255)" : "rgb(255," + light + "," + light + ")";
}

}  // namespace

void ScoreSums::add(const ScoreSums& other) {
  loss += other.loss;
  weight += other.weight;
  squared += other.squared;
  absolute += other.absolute;
  for (size_t i = 0; i < metrics.size(); ++i) metrics[i] += other.metrics[i];
}

double Scores::loss() const {
  return has_weights ? weighted_mean(sums.loss, sums.weight)
                     : sums.loss / static_cast<double>(labels);
}

std::string scores_text(const Scores& scores) {
  std::string text = formatted("loss       %.6f\n", scores.loss());
  if (scores.is_of_tokens && scores.has_accuracy)
    text += formatted("perplexity %.4f\n", std::exp(scores.loss()));
  if (scores.has_errors)
    text += formatted("RMSE       %.6f\n", std::sqrt(scores.mean_of_samples(scores.sums.squared))) +
            formatted("MAE        %.6f\n", scores.mean_of_samples(scores.sums.absolute));
  for (size_t i = 0; i < scores.metric_names.size(); ++i)
    text += left_cell(printable_line(scores.metric_names[i]), kLabelWidth) +
            formatted("%.6f\n", scores.mean_of_samples(scores.sums.metrics[i]));
  if (!scores.has_accuracy) return text;
  text += "accuracy   " + percent_text(scores.correct, scores.labels) + " (" +
          std::to_string(scores.correct) + " of " + std::to_string(scores.labels) +
          (scores.is_of_tokens ? " tokens" : "") + ")\n";
  if (scores.has_top5) text += "top 5      " + percent_text(scores.top5, scores.labels) + "\n";
  if (scores.confusion.empty()) return text;
  text += class_rows(scores);
  if (scores.class_names.size() <= kMostInTerminal) text += matrix_rows(scores);
  return text;
}

nlohmann::ordered_json scores_json(const Scores& scores) {
  nlohmann::ordered_json out = {
      {"samples", scores.samples}, {"labels", scores.labels}, {"loss", scores.loss()}};
  if (scores.has_accuracy) out["accuracy"] = share(scores.correct, scores.labels);
  if (scores.is_of_tokens && scores.has_accuracy) out["perplexity"] = std::exp(scores.loss());
  if (scores.has_errors) {
    out["rmse"] = std::sqrt(scores.mean_of_samples(scores.sums.squared));
    out["mae"] = scores.mean_of_samples(scores.sums.absolute);
  }
  for (size_t i = 0; i < scores.metric_names.size(); ++i)
    out["metrics"][scores.metric_names[i]] = scores.mean_of_samples(scores.sums.metrics[i]);
  if (scores.has_top5) out["top5"] = share(scores.top5, scores.labels);
  for (size_t i = 0; !scores.confusion.empty() && i < scores.class_names.size(); ++i) {
    const ClassCounts counts = counts_of(scores, i);
    out["classes"].push_back({{"class", scores.class_names[i]},
                              {"samples", counts.samples},
                              {"predicted", counts.predicted},
                              {"right", counts.right}});
    const auto row =
        scores.confusion.begin() + static_cast<std::ptrdiff_t>(i * scores.class_names.size());
    out["confusion"].push_back(
        std::vector<uint64_t>(row, row + static_cast<std::ptrdiff_t>(scores.class_names.size())));
  }
  return out;
}

std::string scores_json_text(const Scores& scores) {
  return scores_json(scores).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string confusion_csv(const Scores& scores) {
  std::string text = "label";
  for (const std::string& name : scores.class_names) text += "," + csv_quoted(name);
  text += "\n";
  for (size_t i = 0; i < scores.class_names.size(); ++i) {
    text += csv_quoted(scores.class_names[i]);
    for (size_t j = 0; j < scores.class_names.size(); ++j)
      text += "," + std::to_string(scores.of(i, j));
    text += "\n";
  }
  return text;
}

// A square for each pair, the darker the larger its share of the label's samples.
std::string confusion_svg(const Scores& scores) {
  const size_t classes = scores.class_names.size();
  const size_t side = classes <= 20 ? 36 : classes <= 100 ? 12 : 4;
  constexpr size_t kMargin = 160;
  const size_t whole = kMargin + side * classes + 20;
  const bool has_numbers = side >= 36;
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + std::to_string(whole) +
                    "\" height=\"" + std::to_string(whole) +
                    "\" font-family=\"sans-serif\" font-size=\"10\">\n"
                    "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
                    "<text x=\"4\" y=\"14\">rows: label, columns: prediction</text>\n";
  for (size_t i = 0; i < classes; ++i) {
    const size_t y = kMargin + i * side;
    if (side >= 12) {
      const std::string name = escaped(short_name(scores.class_names[i]).first);
      out += "<text text-anchor=\"end\" x=\"" + std::to_string(kMargin - 4) + "\" y=\"" +
             std::to_string(y + side / 2 + 4) + "\">" + name + "</text>\n";
      out += "<text transform=\"translate(" + std::to_string(y + side / 2 + 4) + " " +
             std::to_string(kMargin - 4) + ") rotate(-90)\">" + name + "</text>\n";
    }
    const uint64_t samples = counts_of(scores, i).samples;
    for (size_t j = 0; j < classes; ++j) {
      const uint64_t count = scores.of(i, j);
      if (count == 0) continue;
      const int shade = 255 - static_cast<int>(std::lround(200 * share(count, samples)));
      out += "<rect x=\"" + std::to_string(kMargin + j * side) + "\" y=\"" + std::to_string(y) +
             "\" width=\"" + std::to_string(side) + "\" height=\"" + std::to_string(side) +
             "\" fill=\"" + colour(shade, i == j) + "\"/>\n";
      if (has_numbers)
        out += "<text text-anchor=\"middle\" x=\"" + std::to_string(kMargin + j * side + side / 2) +
               "\" y=\"" + std::to_string(y + side / 2 + 4) + "\">" + std::to_string(count) +
               "</text>\n";
    }
  }
  return out + "</svg>\n";
}

}  // namespace lockstep
