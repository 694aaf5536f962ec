#include "worker/use/use_words.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <exception>

#include "comm/inherited/standard_streams.h"
#include "worker/model/foreign.h"

namespace lockstep {
namespace {

constexpr uint32_t kUsualBatch = 250;

}  // namespace

void add_use_words(CLI::App& app, UseWords& words) {
  app.add_option("--model", words.place.path, "directory of a run, or of an exported model")
      ->required();
  app.add_option("--checkpoint", words.place.checkpoint, "directory of the run's checkpoint");
  app.add_flag("--or-newer", words.place.or_newer, "if that one is gone");
  app.add_option("--data", words.data.path, "data");
  app.add_option("--format", words.data.format, "of the data");
  app.add_flag("--train-split", words.data.is_training, "the training part of the data");
  app.add_flag("--unlabelled", words.data.is_unlabelled, "images of any directory");
  app.add_option("--scratch", words.data.scratch, "directory for temporary files");
  app.add_option("--batch", words.batch, "samples of a batch");
  app.add_option("--threads", words.threads, "that compute");
}

Status open_model_and_data(const UseWords& words, ModelAndData* out) {
  LOCKSTEP_RETURN_IF_ERROR(
      load_trained_model(words.place, [&](const TrainedModel& found) -> Status {
        const auto wanted = words.threads > 0
                                ? words.threads
                                : static_cast<int>(found.job.train().threads_per_worker());
        at::set_num_threads(std::max(1, wanted));
        out->trained = found;
        LOCKSTEP_ASSIGN_OR_RETURN(out->data, UsedData::open(found, words.data));
        const data::Dataset& dataset = out->data->dataset();
        LOCKSTEP_ASSIGN_OR_RETURN(
            out->model,
            OpenModel::open(found, {out->data->name(), dataset.shape(), dataset.classes()}));
        return Status::ok();
      }));
  const uint32_t usual = out->trained.job.train().eval_batch();
  out->batch = words.batch > 0 ? words.batch : usual > 0 ? usual : kUsualBatch;
  const uint64_t samples = out->data->dataset().samples();
  const uint64_t full = std::min(out->batch, samples);
  LOCKSTEP_RETURN_IF_ERROR(out->model->check_batch(full));
  return samples % full == 0 ? Status::ok() : out->model->check_batch(samples % full);
}

int run_use_command(CLI::App& app, int argc, char** argv, const std::function<Status()>& command) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : exit_code(Status(Code::kUsage, ""));
  }
  Status done;
  try {
    done = command();
  } catch (const std::exception& error) {
    done = Status(Code::kInternal, "the model cannot compute this: " + one_line(error));
  }
  if (!done.is_ok()) print_error("lockstep: %s\n", done.message().c_str());
  return exit_code(done);
}

}  // namespace lockstep
