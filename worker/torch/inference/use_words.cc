#include "worker/torch/inference/use_words.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <exception>

#include "comm/base/file.h"
#include "comm/environment/standard_streams.h"
#include "worker/engine/step_memory.h"
#include "worker/torch/model/foreign.h"

namespace lockstep {
namespace {

constexpr uint32_t kUsualBatch = 250;
constexpr std::chrono::milliseconds kBetweenWords{500};  // about the progress

}  // namespace

void add_model_place(CLI::App& app, ModelPlace& place) {
  app.add_option("--model", place.path, "directory of a run, or of an exported model")->required();
  app.add_option("--checkpoint", place.checkpoint, "directory of the run's checkpoint");
  app.add_flag("--or-newer", place.or_newer, "if that one is gone");
}

void add_use_words(CLI::App& app, UseWords& words) {
  add_model_place(app, words.place);
  app.add_option("--data", words.data.path, "data");
  app.add_option("--format", words.data.format, "of the data");
  app.add_flag("--train-split", words.data.is_training, "the training part of the data");
  app.add_flag("--unlabelled", words.data.is_unlabelled, "images of any directory");
  app.add_option("--scratch", words.data.scratch, "directory for temporary files");
  app.add_option("--batch", words.batch, "samples of a batch");
  app.add_option("--threads", words.threads, "that compute");
}

Status open_model_and_data(const UseWords& words, ModelUse use, ModelAndData* out) {
  LOCKSTEP_RETURN_IF_ERROR(
      load_trained_model(words.place, [&](const TrainedModel& found) -> Status {
        const auto wanted = words.threads > 0
                                ? words.threads
                                : static_cast<int>(found.job.train().threads_per_worker());
        at::set_num_threads(std::max(1, wanted));
        out->trained = found;
        UsedDataPlace place = words.data;
        place.is_to_predict = use == ModelUse::kPredict;
        LOCKSTEP_ASSIGN_OR_RETURN(out->data, UsedData::open(found, place));
        const data::Dataset& dataset = out->data->dataset();
        LOCKSTEP_ASSIGN_OR_RETURN(
            out->model,
            OpenModel::open(found, {out->data->name(), out->data->model_shape(), dataset.classes()},
                            use));
        return Status::ok();
      }));
  const uint32_t usual = out->trained.job.train().eval_batch();
  out->batch = words.batch > 0 ? words.batch : usual > 0 ? usual : kUsualBatch;
  const uint64_t samples = out->data->dataset().samples();
  const uint64_t full = std::min(out->batch, samples);
  LOCKSTEP_RETURN_IF_ERROR(out->model->check_batch(full));
  return samples % full == 0 ? Status::ok() : out->model->check_batch(samples % full);
}

void add_part_words(CLI::App& app, PartWords& words) {
  app.add_option("--part", words.part, "number of the part")->required();
  app.add_option("--parts", words.parts, "how many there are")->required();
  app.add_option("--out", words.out, "file of the part")->required();
  app.add_option("--progress", words.progress, "file that says how far it is");
}

Status for_each_batch(const PartWords& words, uint64_t samples, uint64_t batch,
                      const std::function<Status(uint64_t begin, uint64_t end)>& use) {
  if (words.parts == 0 || words.part >= words.parts)
    return {Code::kUsage, "there is no part " + std::to_string(words.part) + " of " +
                              std::to_string(words.parts)};
  const uint64_t batches = (samples + batch - 1) / batch;
  const uint64_t first = batches * words.part / words.parts;
  auto next_word = std::chrono::steady_clock::now() + kBetweenWords;
  for (uint64_t i = first; i < batches * (words.part + 1) / words.parts; ++i) {
    const uint64_t end = std::min((i + 1) * batch, samples);
    LOCKSTEP_RETURN_IF_ERROR(use(i * batch, end));
    const auto now = std::chrono::steady_clock::now();
    if (words.progress.empty() || now < next_word) continue;
    next_word = now + kBetweenWords;
    LOCKSTEP_RETURN_IF_ERROR(replace_file(
        words.progress, std::to_string(end - first * batch) + " " + std::to_string(samples)));
  }
  return Status::ok();
}

int run_use_command(CLI::App& app, int argc, char** argv, const std::string& failed,
                    const std::function<Status()>& command) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : exit_code(Status(Code::kUsage, ""));
  }
  keep_all_freed_memory();  // a batch takes the same tensors as the one before
  Status done;
  try {
    done = command();
  } catch (const std::exception& error) {
    done = Status(Code::kInternal, failed + ": " + one_line(error));
  }
  if (!done.is_ok()) print_error("lockstep: %s\n", done.message().c_str());
  return exit_code(done);
}

}  // namespace lockstep
