#include "deploy/cli/watch/run_summary.h"

#include <algorithm>

#include "comm/base/file.h"
#include "comm/base/limits.h"
#include "comm/base/text/shell_word.h"
#include "comm/run/directory/layout.h"
#include "deploy/cli/base/text.h"

namespace lockstep {
namespace {

using nlohmann::json;

std::string row(const std::string& name, const std::string& value) {
  constexpr size_t kNameColumn = 18;
  std::string out = "  " + name + "  ";  // a metric's name may be longer than the column
  out.resize(std::max(out.size(), kNameColumn), ' ');
  return out + value + "\n";
}

bool has_number(const json& summary, const char* key) {
  const auto it = summary.find(key);
  return it != summary.end() && it->is_number();
}

std::string count_text(const json& summary, const char* key) {
  return has_number(summary, key) ? grouped(summary[key].get<uint64_t>()) : "?";
}

std::string counted(const json& summary, const char* key, const char* word) {
  if (!has_number(summary, key)) return std::string("? ") + word + "s";
  return plural(summary[key].get<uint64_t>(), word);
}

// "90.82 %, loss 0.2571, after step 1,876", of what the summary has under `key`; "" if it has none.
std::string best_text(const json& summary, const char* key) {
  const auto best = summary.find(key);
  if (best == summary.end() || !best->is_object() || !has_number(*best, "step")) return "";
  const bool is_of_tokens = summary.value("predicts", json()) == "tokens";
  std::string out;
  if (has_number(*best, "accuracy") && !is_of_tokens)
    out += percent((*best)["accuracy"].get<double>(), 2) + ", ";
  if (has_number(*best, "loss")) out += "loss " + fixed((*best)["loss"].get<double>(), 4) + ", ";
  return out + "after step " + count_text(*best, "step");
}

// The best evaluation of a run that keeps no best checkpoint; "" if it is the last one.
std::string better_text(const json& summary) {
  const std::string text = best_text(summary, "best_evaluation");
  if (text.empty()) return "";
  const bool is_last = summary["best_evaluation"]["step"] == summary.value("eval_step", json());
  return is_last ? "" : text + " (not kept: checkpoint.best is none)";
}

bool is_unchecked(const json& summary) {
  const auto checks = summary.find("checks");
  return checks != summary.end() && checks->is_object() && checks->value("every", json()) == 0;
}

// A script's further evaluation has a name, which stands before its results: "other/accuracy".
std::string metric_row(const std::string& name, double value) {
  if (name.ends_with("/accuracy")) return row(name, percent(value, 2));
  return row(name.find('/') == std::string::npos ? "test " + name : name, fixed(value, 4));
}

}  // namespace

bool has_best(const json& summary) {
  return !best_text(summary, "best_checkpoint").empty();
}

Result<json> read_summary(const std::string& run_dir) {
  const std::string path = rundir::file_in(run_dir, rundir::kSummary);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text, read_file(path, limits::kJobFileBytes));
  json summary = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!summary.is_object()) return Status(Code::kBadData, path + " is damaged");
  return summary;
}

std::string summary_table(const json& summary, const std::string& run_dir) {
  std::string out;
  const bool is_of_tokens = summary.value("predicts", json()) == "tokens";
  if (has_number(summary, "eval_accuracy") && !is_of_tokens)
    out += row("test accuracy", percent(summary["eval_accuracy"].get<double>(), 2));
  if (has_number(summary, "eval_top5"))
    out += row("test top 5", percent(summary["eval_top5"].get<double>(), 2));
  if (has_number(summary, "eval_loss")) {
    const double loss = summary["eval_loss"].get<double>();
    out += row("test loss", fixed(loss, 4));
    if (is_of_tokens) out += row("test perplexity", perplexity_text(loss));
  }
  if (const auto metrics = summary.find("eval_metrics");
      metrics != summary.end() && metrics->is_object())
    for (const auto& [name, value] : metrics->items())
      if (value.is_number()) out += metric_row(name, value.get<double>());
  for (const std::string& best : {best_text(summary, "best_checkpoint"), better_text(summary)})
    if (!best.empty()) out += row("best", best);
  out +=
      row("steps", count_text(summary, "steps") + " (" + counted(summary, "epochs", "whole epoch") +
                       "), " + counted(summary, "generations", "generation"));
  if (has_number(summary, "samples_per_second"))
    out += row("speed", rate_text(summary["samples_per_second"].get<double>()) + " samples/s");
  if (has_number(summary, "goodput"))
    out += row("goodput", percent(summary["goodput"].get<double>(), 1));
  if (summary.contains("weights_sha256") && summary["weights_sha256"].is_string())
    out += row("weights", summary["weights_sha256"].get<std::string>());
  if (is_unchecked(summary))
    out += row("checks", "none: the workers' weights were never compared (train.check_every is 0)");
  out += row("results", run_dir);
  return out;
}

}  // namespace lockstep
