#include "deploy/cli/watch/top_frame.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "comm/base/text/printable.h"
#include "deploy/cli/base/text.h"
#include "deploy/cli/watch/live_line.h"
#include "deploy/cli/watch/run_status.h"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr std::array<std::pair<const char*, const char*>, 6> kPhases = {
    {{"data_wait", "data wait"},
     {"forward", "forward"},
     {"backward", "backward"},
     {"communication", "communication"},
     {"optimizer", "optimizer"},
     {"other", "other"}}};
constexpr char kPhaseLetters[] = "dfbco.";
constexpr size_t kLabelColumns = 11;
constexpr size_t kPhaseColumns = 20;  // of a rank's bar

json value_of(const json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto it = object.find(key);
  return it == object.end() ? json() : *it;
}

std::string text_of(const json& object, const char* key) {
  const json value = value_of(object, key);
  return value.is_null() ? "-" : value.is_string() ? value.get<std::string>() : value.dump();
}

double number_or_zero(const json& object, const char* key) {
  const json value = value_of(object, key);
  return value.is_number() ? value.get<double>() : 0;
}

std::string padded(const std::string& text, size_t width) {
  const std::string cut = printable(text, width);
  return cut + std::string(width - std::min(width, columns(cut)), ' ');
}

std::string left_padded(const std::string& text, size_t width) {
  const std::string cut = printable(text, width);
  return std::string(width - std::min(width, columns(cut)), ' ') + cut;
}

double sum_of(const json& phases) {
  double sum = 0;
  for (const auto& [key, name] : kPhases) sum += number_or_zero(phases, key);
  return sum;
}

// A letter for each share of the time.
std::string phase_bar(const json& phases, size_t width) {
  const double sum = sum_of(phases);
  std::string bar;
  double shown = 0;
  for (size_t i = 0; i < kPhases.size() && sum > 0; ++i) {
    shown += number_or_zero(phases, kPhases[i].first) / sum * static_cast<double>(width);
    const auto end = static_cast<size_t>(std::lround(shown));
    bar.append(std::max(end, bar.size()) - bar.size(), kPhaseLetters[i]);
  }
  return bar;
}

std::string phase_text(const json& phases) {
  const double sum = sum_of(phases);
  std::string text;
  for (size_t i = 0; i < kPhases.size() && sum > 0; ++i) {
    text += (i > 0 ? ", " : "") + std::string(kPhases[i].second) + " " +
            percent(number_or_zero(phases, kPhases[i].first) / sum, 0);
  }
  return text;
}

std::string head(const json& status) {
  return text_of(status, "run") + ": " + text_of(status, "state") + ", generation " +
         text_of(status, "generation") + ", goodput " +
         percent(number_or_zero(status, "goodput"), 1) + ", " +
         duration_text(number_or_zero(status, "wall_seconds"));
}

// A narrow terminal has no room for both speeds next to the phases.
bool has_minute(const TopStyle& style) {
  constexpr size_t kWide = 108;
  return style.width >= kWide;
}

// A line of the table of ranks; the frame cuts off at the right what does not fit.
std::string rank_line(const json& member, const TopStyle& style) {
  const auto speed = [&](const char* key) {
    return left_padded(member.contains(key) ? rate_text(number_or_zero(member, key)) : "-", 11);
  };
  return left_padded(text_of(member, "rank"), 5) + "  " + padded(text_of(member, "state"), 10) +
         "  " + padded(text_of(member, "node"), 14) + left_padded(text_of(member, "pid"), 9) +
         left_padded(text_of(member, "id"), 8) + left_padded(text_of(member, "step"), 12) +
         speed("own_samples_per_second") +
         (has_minute(style) ? speed("own_samples_per_second_60s") : "") + "  " +
         phase_bar(value_of(member, "phases"), kPhaseColumns);
}

std::string rank_head(const TopStyle& style) {
  return left_padded("rank", 5) + "  " + padded("state", 10) + "  " + padded("node", 14) +
         left_padded("pid", 9) + left_padded("member", 8) + left_padded("step", 12) +
         left_padded("/s in 10 s", 11) + (has_minute(style) ? left_padded("in 60 s", 11) : "") +
         "  phases";
}

std::string event_line(const json& event) {
  const std::string time = text_of(event, "time");
  return (time.size() >= 19 ? time.substr(11, 8) : time) + "  " + text_of(event, "message");
}

// At most `room` lines. For many events of a kind in a row, such as checkpoints: the newest one and
// how many came before.
std::vector<std::string> event_lines(const json& events, size_t room) {
  std::vector<std::string> lines;
  if (!events.is_array()) return lines;
  for (size_t begin = 0, end = 0; begin < events.size() && lines.size() < room; begin = end) {
    const std::string kind = text_of(events[begin], "event");
    while (end < events.size() && text_of(events[end], "event") == kind) ++end;
    const size_t more = end - begin - 1;
    lines.push_back(event_line(events[begin]) +
                    (more > 0 ? " (and " + std::to_string(more) + " before)" : ""));
  }
  return lines;
}

std::vector<std::string> summary_lines(const TopData& data, const TopStyle& style) {
  const json& status = data.status;
  const RunStatus parsed = parse_status(status);
  std::vector<std::string> lines = {head(status), live_line(parsed, {style.width, style.unicode})};
  if (const std::string now = figures_line(parsed); !now.empty()) lines.push_back(now);
  if (!data.note.empty()) lines.push_back(data.note);
  const std::string message = text_of(status, "message");
  if (message != "-" && !message.empty()) lines.push_back(message);
  lines.emplace_back();
  const size_t plot = style.width > kLabelColumns + 1 ? style.width - kLabelColumns - 1 : 0;
  const json tests = value_of(value_of(data.history, "evals"), "loss");
  const auto draw = [&](const char* label, const json& values) {
    lines.push_back(padded(label, kLabelColumns) + sparkline(values, plot, style.unicode));
  };
  draw("loss", value_of(data.history, "loss"));
  if (tests.is_array() && !tests.empty()) draw("test loss", tests);
  draw("lr", value_of(data.history, "lr"));
  draw("samples/s", value_of(data.history, "samples_per_second"));
  if (const json phases = value_of(status, "phases"); phases.is_object()) {
    lines.push_back(padded("time", kLabelColumns) + phase_bar(phases, plot));
    lines.push_back(padded("", kLabelColumns) + phase_text(phases));
  }
  lines.emplace_back();
  return lines;
}

}  // namespace

std::string printable(const std::string& text, size_t width) {
  std::string out;
  size_t shown = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool is_begin = (byte & 0xC0) != 0x80;
    if (is_begin && ++shown > width) break;
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    const bool is_c1 = byte == 0xC2 && next >= 0x80 && next < 0xA0;  // commands too, in some
    // One character that another part of the program would show as an escape: it turns the text.
    const std::string_view three = std::string_view(text).substr(i, 3);
    const bool turns = byte == 0xE2 && printable(three) != three;
    out += is_c1 || turns || byte < 0x20 || byte == 0x7F ? '?' : text[i];
    i += turns ? 2 : is_c1 ? 1 : 0;
  }
  return out;
}

std::string sparkline(const json& values, size_t width, bool unicode) {
  constexpr std::array kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::array kLetters = {"_", "_", ".", ".", "-", "-", "=", "="};
  const auto& levels = unicode ? kBlocks : kLetters;
  if (!values.is_array() || width == 0) return "";
  const size_t skipped = values.size() > width ? values.size() - width : 0;
  double low = INFINITY;
  double high = -INFINITY;
  for (size_t i = skipped; i < values.size(); ++i) {
    if (!values[i].is_number()) continue;
    low = std::min(low, values[i].get<double>());
    high = std::max(high, values[i].get<double>());
  }
  std::string out;
  for (size_t i = skipped; i < values.size(); ++i) {
    if (!values[i].is_number()) {
      out += ' ';
      continue;
    }
    const double share = high > low ? (values[i].get<double>() - low) / (high - low) : 0;
    out += levels[std::min<size_t>(static_cast<size_t>(share * 8), 7)];
  }
  return out;
}

std::vector<std::string> top_frame(const TopData& data, const TopStyle& style) {
  std::vector<std::string> lines = summary_lines(data, style);
  const json members = value_of(data.status, "members");
  const size_t room = style.height > lines.size() + 2 ? style.height - lines.size() - 2 : 0;
  const std::vector<std::string> events = event_lines(value_of(data.events, "events"), room);
  if (members.is_array() && !members.empty()) {
    lines.push_back(rank_head(style));
    const size_t rows = std::min(members.size(), room - std::min(events.size(), room / 2));
    for (size_t i = 0; i < rows; ++i) lines.push_back(rank_line(members[i], style));
  }
  lines.emplace_back();
  lines.insert(lines.end(), events.begin(), events.end());
  if (lines.size() > style.height) lines.resize(style.height);
  for (std::string& line : lines) line = printable(line, style.width > 0 ? style.width - 1 : 0);
  return lines;
}

}  // namespace lockstep
