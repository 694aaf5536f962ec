#include "deploy/cli/watch/hang_report.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <vector>

#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "comm/base/text/number_text.h"
#include "comm/base/text/printable.h"
#include "comm/base/text/shallow_json.h"
#include "comm/run/directory/layout.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kEnd = ".hang.json";
constexpr int kDepth = 3;  // the file, its lists, their lines
constexpr size_t kMostFindings = 8;
constexpr size_t kTextBytes = 2 * limits::kHangLineBytes;

struct Operation {
  std::string name;
  std::string state;
  uint64_t step = 0;
  uint64_t bucket = 0;
  std::optional<int64_t> queued_ms;  // before the file was written
  std::optional<int64_t> running_ms;
  std::optional<int64_t> ended_ms;

  // The same on each rank.
  auto place() const { return std::tuple(step, name, bucket); }
  bool has_ended() const { return state == "done" || state == "failed"; }
};
using Place = decltype(Operation().place());

struct RankNotes {
  std::string process, node, written, why;
  uint64_t pid = 0, generation = 0, rank = 0, world = 0;
  uint64_t finished = 0, given = 0;
  std::vector<Operation> operations;  // oldest first
  std::vector<std::string> nccl;
};
using NotesByRank = std::map<uint64_t, std::pair<RankNotes, std::string>>;  // with their files

std::string text_in(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_string()) return "";
  return printable_line(it->get_ref<const std::string&>().substr(0, kTextBytes));
}

std::optional<int64_t> time_in(const Json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number_unsigned()) return std::nullopt;
  constexpr uint64_t kMost = int64_t{1} << 53;
  return static_cast<int64_t>(std::min(it->get<uint64_t>(), kMost));
}

// Gives the last entries of the list to `take`, which checks their kind.
template <typename Take>
void last_of(const Json& object, const char* key, const Take& take) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_array()) return;
  const size_t begin = it->size() - std::min(it->size(), limits::kHangLines);
  for (size_t i = begin; i < it->size(); ++i) take((*it)[i]);
}

// Takes its bytes off `bytes_left`.
std::optional<RankNotes> read_notes(const std::string& path, size_t& bytes_left) {
  const auto text = read_file(path, std::min(limits::kHangFileBytes, bytes_left));
  if (!text.is_ok()) return std::nullopt;
  bytes_left -= text->size();
  const Json root = parse_shallow_json(*text, kDepth);
  if (!root.is_object() || count_in(root, "format") != 1) return std::nullopt;
  RankNotes notes;
  notes.process = text_in(root, "process");
  notes.node = text_in(root, "node");
  notes.written = text_in(root, "written");
  notes.why = text_in(root, "why");
  notes.pid = count_in(root, "pid");
  notes.generation = count_in(root, "generation");
  notes.rank = count_in(root, "rank");
  notes.world = std::min<uint64_t>(count_in(root, "world"), limits::kMembers);
  notes.finished = count_in(root, "buckets_finished");
  notes.given = count_in(root, "buckets_given");
  last_of(root, "operations", [&](const Json& line) {
    if (!line.is_object()) return;
    if (count_in(line, "generation") != notes.generation) return;
    notes.operations.push_back({text_in(line, "operation"), text_in(line, "state"),
                                count_in(line, "step"), count_in(line, "bucket"),
                                time_in(line, "queued_ms"), time_in(line, "running_ms"),
                                time_in(line, "ended_ms")});
  });
  last_of(root, "nccl", [&](const Json& line) {
    if (line.is_string())
      notes.nccl.push_back(
          printable_line(line.get_ref<const std::string&>().substr(0, kTextBytes)));
  });
  return notes;
}

// The notes of the newest generation that is there, by rank. If two files have a rank, the first by
// name counts.
NotesByRank newest_notes(const std::string& run_dir) {
  NotesByRank newest;
  std::error_code error;
  std::filesystem::directory_iterator files(rundir::file_in(run_dir, rundir::kLogs), error);
  std::vector<std::string> paths;
  for (; !error && files != std::filesystem::directory_iterator(); files.increment(error)) {
    const std::string path = files->path().string();
    if (path.ends_with(kEnd) && paths.size() < limits::kHangFiles) paths.push_back(path);
  }
  std::sort(paths.begin(), paths.end());
  size_t bytes_left = limits::kHangBytes;
  for (const std::string& path : paths) {
    auto notes = read_notes(path, bytes_left);
    if (!notes || notes->generation == 0) continue;
    const uint64_t shown = newest.empty() ? 0 : newest.begin()->second.first.generation;
    if (notes->generation < shown) continue;
    if (notes->generation > shown) newest.clear();
    const uint64_t rank = notes->rank;
    newest.emplace(rank, std::pair(std::move(*notes), path));
  }
  return newest;
}

std::string named(const Place& place) {
  const auto& [step, name, bucket] = place;
  const std::string at = " of step " + grouped(step);
  const std::string which = " of bucket " + grouped(bucket);
  if (name == "sum") return "the sum" + which + at;
  if (name == "gpu_sum") return "the sum between GPUs" + which + at;
  if (name == "gpu_wait") return "the wait for the GPU's sums" + at;
  if (name == "agree") return "the agreement" + at;
  if (name == "begin_step") return "the beginning" + at;
  if (name == "connect") return "connecting";
  if (name == "connect_gpus") return "connecting the GPUs";
  return name + (bucket > 0 ? " " + grouped(bucket) : "") + at;
}

std::string seconds(int64_t ms) {
  return fixed(static_cast<double>(ms) / 1'000, 1) + " s";
}

std::string ranks_text(const std::vector<uint64_t>& ranks) {
  constexpr size_t kShown = 8;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < std::min(ranks.size(), kShown); ++i)
    text += (i == 0 ? "" : ", ") + grouped(ranks[i]);
  if (ranks.size() > kShown) text += " and " + grouped(ranks.size() - kShown) + " more";
  return text;
}

std::string stands(const RankNotes& notes) {
  if (notes.operations.empty()) return "in no collective";
  const auto open = std::find_if(notes.operations.begin(), notes.operations.end(),
                                 [](const Operation& o) { return o.state == "running"; });
  std::string text;
  if (open != notes.operations.end()) {
    text = "in " + named(open->place());
    if (open->running_ms) text += " for " + seconds(*open->running_ms);
  } else {
    const Operation& last = notes.operations.back();
    text = "in no collective since " + named(last.place());
    if (last.ended_ms) text += ", for " + seconds(*last.ended_ms);
    if (last.state == "queued") text = named(last.place()) + " is queued";
  }
  if (notes.finished < notes.given)
    text += "; its GPU has finished " + grouped(notes.finished) + " of " + grouped(notes.given) +
            " buckets";
  return text;
}

std::string line_text(const Operation& o) {
  const auto since = o.ended_ms ? o.ended_ms : o.running_ms ? o.running_ms : o.queued_ms;
  std::string text = since ? "-" + seconds(*since) : "";
  text.insert(0, text.size() < 11 ? 11 - text.size() : 0, ' ');
  const auto column = [&text](std::string part, size_t width) {
    part.resize(std::max(part.size(), width), ' ');
    text += "  " + part;
  };
  column(o.state, 7);
  column(o.name, 12);
  column("step " + grouped(o.step), 14);
  column("bucket " + grouped(o.bucket), 10);
  const auto begun = o.running_ms ? o.running_ms : o.queued_ms;
  if (o.ended_ms && begun)
    text += "  took " + grouped(static_cast<uint64_t>(std::max<int64_t>(0, *begun - *o.ended_ms))) +
            " ms";
  text.resize(text.find_last_not_of(' ') + 1);
  return text;
}

struct Finding {
  std::vector<std::string> texts;
  std::set<uint64_t> missing;  // ranks that others wait for
};

std::vector<uint64_t> without_notes(const NotesByRank& all) {
  std::vector<uint64_t> ranks;
  for (uint64_t rank = 0; rank < all.begin()->second.first.world; ++rank)
    if (!all.contains(rank)) ranks.push_back(rank);
  return ranks;
}

// The places of ranks that others wait for. An operation that all of them have begun is named, too.
Finding findings_of(const NotesByRank& all) {
  std::map<Place, std::vector<uint64_t>> waiting;
  std::map<Place, std::set<uint64_t>> came;
  for (const auto& [rank, entry] : all)
    for (const Operation& o : entry.first.operations) {
      if (o.name == "gpu_wait") continue;  // a rank's own
      if (o.state != "queued") came[o.place()].insert(rank);
      if (o.state == "running") waiting[o.place()].push_back(rank);
    }
  Finding found;
  const std::vector<uint64_t> silent = without_notes(all);
  for (const auto& [place, ranks] : waiting) {
    std::vector<uint64_t> missing;
    for (const auto& [rank, entry] : all)
      if (!came[place].contains(rank)) missing.push_back(rank);
    found.missing.insert(missing.begin(), missing.end());
    if (found.texts.size() == kMostFindings) continue;
    std::string text =
        ranks_text(ranks) + (ranks.size() == 1 ? " waits in " : " wait in ") + named(place);
    if (!missing.empty())
      text +=
          "; " + ranks_text(missing) + (missing.size() == 1 ? " has" : " have") + " not come to it";
    else if (silent.empty())
      text += "; all ranks have come to it";
    found.texts.push_back(text);
  }
  if (!silent.empty())
    found.texts.push_back(ranks_text(silent) +
                          " left no notes: killed, or in no collective that stood still");
  return found;
}

Json rank_json(const RankNotes& notes, bool has_lines) {
  Json rank = {{"rank", notes.rank},     {"process", notes.process}, {"node", notes.node},
               {"pid", notes.pid},       {"written", notes.written}, {"why", notes.why},
               {"stands", stands(notes)}};
  if (!has_lines) return rank;
  rank["lines"] = Json::array();
  for (const Operation& o : notes.operations) rank["lines"].push_back(line_text(o));
  rank["nccl"] = notes.nccl;
  return rank;
}

}  // namespace

std::string hang_report(const std::string& run_dir) {
  const NotesByRank all = newest_notes(run_dir);
  if (all.empty()) return "null";
  const Finding found = findings_of(all);
  const RankNotes& first = all.begin()->second.first;
  Json report = {{"generation", first.generation},
                 {"world", first.world},
                 {"findings", found.texts},
                 {"files", Json::array()},
                 {"ranks", Json::array()}};
  for (const bool is_missing : {true, false})
    for (const auto& [rank, entry] : all) {
      if (found.missing.contains(rank) != is_missing) continue;
      const bool has_lines = report["ranks"].size() < limits::kHangRanksShown;
      report["ranks"].push_back(rank_json(entry.first, has_lines));
      if (has_lines) report["files"].push_back(printable_line(entry.second));
    }
  return report.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace lockstep
