#include "worker/torch/replay/replay_main.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "comm/environment/standard_streams.h"
#include "worker/torch/replay/replay.h"

namespace lockstep {
namespace {

constexpr int kNotTheSame = 1;
constexpr size_t kSamplesShown = 256;

void print_stats(const char* what, const std::vector<TensorStats>& all) {
  print_text("%-24s %14s %14s %14s %12s\n", what, "norm", "smallest", "largest", "not finite");
  for (const TensorStats& stats : all) {
    print_text("  %-22s %14.6g %14.6g %14.6g %5llu of %llu\n", stats.name.c_str(), stats.norm(),
               static_cast<double>(stats.smallest), static_cast<double>(stats.largest),
               static_cast<unsigned long long>(stats.non_finite),
               static_cast<unsigned long long>(stats.values));
  }
}

// "3", or of a mixed image "0.8 of 3 and 0.2 of 5 (sample 17)".
std::string label_text(const ReplayedSample& sample) {
  std::string label = std::to_string(sample.label);
  if (sample.share == 1) return label;
  char text[128];
  std::snprintf(text, sizeof text, "%.3g of %s and %.3g of %lld (sample %llu)",
                static_cast<double>(sample.share), label.c_str(),
                static_cast<double>(1 - sample.share), static_cast<long long>(sample.other_label),
                static_cast<unsigned long long>(sample.other));
  return text;
}

void print_samples(const ReplayReport& report) {
  print_text("samples, the largest loss first\n");
  const size_t shown = std::min(report.samples.size(), kSamplesShown);
  for (size_t i = 0; i < shown; ++i) {
    const ReplayedSample& sample = report.samples[i];
    print_text("  loss %-12.6g slot %u position %llu sample %llu label %s  %s\n",
               static_cast<double>(sample.loss), sample.slot,
               static_cast<unsigned long long>(sample.position),
               static_cast<unsigned long long>(sample.sample), label_text(sample).c_str(),
               sample.where.c_str());
  }
  if (shown < report.samples.size()) {
    print_text("  and %zu more, in the saved batch\n", report.samples.size() - shown);
  }
}

void print_workers(const ReplayReport& report) {
  print_text("in the run: generation %llu;",
             static_cast<unsigned long long>(report.recorded.generation));
  for (size_t rank = 0; rank < report.slot_map.runs.size(); ++rank) {
    const SlotRun& run = report.slot_map.runs[rank];
    if (run.begin == run.end) continue;
    print_text(" member %llu slots [%u, %u)",
               static_cast<unsigned long long>(report.slot_map.members[rank]), run.begin, run.end);
  }
  print_text("\n");
}

int print(const ReplayReport& report) {
  print_text("step %llu (epoch %u), computed from %s\n",
             static_cast<unsigned long long>(report.step), report.epoch + 1,
             report.base.empty() ? "the initial weights" : report.base.c_str());
  for (const std::string& note : report.notes) print_text("note: %s\n", note.c_str());
  print_workers(report);
  print_text("loss %.9g\n", report.loss);
  for (const std::string& difference : report.differences) {
    print_text("DIFFERS: %s\n", difference.c_str());
  }
  if (report.differences.empty()) {
    print_text("steps %llu to %llu gave the recorded losses again, bit for bit\n",
               static_cast<unsigned long long>(report.first),
               static_cast<unsigned long long>(report.step));
  }
  for (const std::string& name : report.same_weights) {
    print_text("the weights are those of %s, bit for bit\n", name.c_str());
  }
  print_stats("gradients", report.gradients);
  print_stats("activations", report.activations);
  print_samples(report);
  print_text("the batch is in %s\n", report.batch_file.c_str());
  return report.differences.empty() ? 0 : kNotTheSame;
}

}  // namespace

int replay_main(int argc, char** argv) {
  ReplayRequest request;
  uint32_t slot = 0;
  CLI::App app("Computes one step of a run again; started by `lockstep replay`.", "replay");
  app.add_option("--run-dir", request.run_dir, "directory of the run")->required();
  app.add_option("--step", request.step, "counted from 1")->required();
  auto* one_slot = app.add_option("--slot", slot, "look at this slot only");
  app.add_option("--batch-file", request.batch_file, "where the batch goes");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : exit_code(Status(Code::kUsage, ""));
  }
  if (one_slot->count() > 0) request.slot = slot;
  const auto report = replay(request);
  const int code = report.is_ok() ? print(*report) : exit_code(report.status());
  const Status told = report.is_ok() ? finish_stdout() : report.status();
  if (told.is_ok()) return code;
  print_error("lockstep: %s\n", told.message().c_str());
  return code == 0 ? exit_code(told) : code;
}

}  // namespace lockstep
