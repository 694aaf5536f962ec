#include "worker/torch/inference/measure_main.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <deque>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "comm/base/file.h"
#include "worker/torch/inference/measured_pass.h"
#include "worker/torch/inference/use_words.h"
#include "worker/torch/model/foreign.h"

namespace lockstep {
namespace {

using Figures = nlohmann::ordered_json;

constexpr uint64_t kUsualMeasuredBatch = 250;

struct MeasureWords {
  std::string run_dir;
  std::vector<std::string> checkpoints;  // directories with model.safetensors
  std::string exported;                  // empty: none
  std::string file;
  double seconds = 60;
};

Result<Figures> measure(const MeasureWords& words) {
  std::vector<TrainedModel> trained;
  for (const std::string& checkpoint : words.checkpoints) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        TrainedModel model,
        read_trained_model({.path = words.run_dir, .checkpoint = checkpoint, .or_newer = false}));
    trained.push_back(std::move(model));
  }
  if (!words.exported.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        TrainedModel model,
        read_trained_model({.path = words.exported, .checkpoint = {}, .or_newer = false}));
    trained.push_back(std::move(model));
  }
  const wire::TrainSpec& train = trained.front().job.train();
  const int threads = std::max(1, static_cast<int>(train.threads_per_worker()));
  at::set_num_threads(threads);
  LOCKSTEP_ASSIGN_OR_RETURN(const auto data, UsedData::open(trained.front(), UsedDataPlace()));
  const data::Dataset& dataset = data->dataset();
  MeasureLimits limits;
  limits.seconds = words.seconds;
  limits.batch = std::min<uint64_t>(
      train.eval_batch() > 0 ? train.eval_batch() : kUsualMeasuredBatch, dataset.samples());
  std::deque<OpenModel> models;
  std::vector<const OpenModel*> all;
  for (const TrainedModel& model : trained) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        OpenModel opened, OpenModel::open(model, {data->name(), dataset.shape(), dataset.classes()},
                                          ModelUse::kEvaluate));
    LOCKSTEP_RETURN_IF_ERROR(opened.check_batch(limits.batch));
    if (const uint64_t rest = dataset.samples() % limits.batch; rest > 0)
      LOCKSTEP_RETURN_IF_ERROR(opened.check_batch(rest));
    models.push_back(std::move(opened));
    all.push_back(&models.back());
  }
  LOCKSTEP_ASSIGN_OR_RETURN(Figures figures, measure_models(all, *data, limits));
  figures["threads"] = threads;
  figures["batch"] = limits.batch;
  return figures;
}

Status write_figures(const MeasureWords& words) {
  Figures out;
  try {
    Result<Figures> figures = measure(words);
    out = figures.is_ok() ? *figures : Figures{{"error", figures.status().message()}};
  } catch (const std::exception& error) {
    out = Figures{{"error", "the model cannot compute this: " + one_line(error)}};
  }
  constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
  return replace_file(words.file, out.dump(-1, ' ', false, kReplace));
}

}  // namespace

int measure_main(int argc, char** argv) {
  MeasureWords words;
  CLI::App app("Measures models; started by `lockstep export model`.", "measure");
  app.add_option("--run-dir", words.run_dir, "directory of the run")->required();
  app.add_option("--checkpoint", words.checkpoints, "directory with weights")->required();
  app.add_option("--export", words.exported, "directory of an export");
  app.add_option("--file", words.file, "file to write")->required();
  app.add_option("--seconds", words.seconds, "after which no batch begins");
  return run_use_command(app, argc, argv, "the model cannot compute this",
                         [&] { return write_figures(words); });
}

}  // namespace lockstep
