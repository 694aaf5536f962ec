#include "deploy/cli/run/prepare_data.h"

#include <filesystem>

#include "comm/base/text/printable.h"
#include "comm/run/job/models/resnet_spec.h"
#include "comm/run/job/predictions.h"
#include "data/base/progress.h"
#include "data/dataset/dataset.h"
#include "data/dataset/facts.h"
#include "data/dataset/float_image.h"
#include "data/dataset/id_row.h"
#include "data/loader/sample_reader.h"
#include "data/open/empty_classes.h"
#include "data/open/job_sample_cut.h"
#include "data/transform/legend.h"
#include "data/view/run_data.h"
#include "deploy/cli/base/text.h"

namespace lockstep {
namespace {

std::string describe(const data::Dataset& train, const data::Dataset* eval) {
  const data::SampleShape shape = train.shape();
  std::string text = grouped(train.samples());
  if (shape.is_sequence()) {
    text += " sequences of " + grouped(shape.tokens) + " tokens, " + grouped(train.classes()) +
            " different ones";
  } else if (shape.is_row) {
    text += " rows of " + std::to_string(shape.channels) + " columns";
  } else if (shape.float_bytes > 0) {
    text += " " + data::floats_text(shape);
  } else if (shape.has_ids()) {
    text += " " + data::ids_text(shape);
  } else {
    text += " samples of " + std::to_string(shape.height) + "x" + std::to_string(shape.width) +
            "x" + std::to_string(shape.channels);
  }
  if (!shape.is_sequence() && shape.has_label())
    text += " in " + std::to_string(train.classes()) + " classes";
  if (shape.fields != nullptr) text += " with " + data::text_of(*shape.fields);
  if (!train.parts().empty())
    text += " of " + std::to_string(train.parts().size()) + " data sets, " +
            grouped(data::epoch_units(train)) + " an epoch";
  const data::TakenColumns& columns = train.notes().columns;
  if (!columns.note.empty()) text += ", labels in " + columns.label + " (" + columns.note + ")";
  if (eval != nullptr) text += ", " + grouped(eval->samples()) + " for evaluation";
  if (!columns.header.empty()) text += "\nnote: in the training data " + columns.header;
  if (eval != nullptr && !eval->notes().columns.header.empty())
    text += "\nnote: in the evaluation data " + eval->notes().columns.header;
  if (const std::string empty = data::empty_classes_text(train); !empty.empty())
    text += "\nwarning: " + empty;
  return text;
}

// With what the key `auto` has become, where it changes how long a step takes.
std::string describe_model(const wire::ModelSpec& model, const data::SampleShape& shape) {
  if (!is_resnet(model)) return model.name();
  return model.name() + " (stem " + std::string(resnet_stem(model, shape.height, shape.width)) +
         (model.stem() == "auto" ? ", by model.stem auto)" : ")");
}

// The facts of a script's data are open until its workers report them.
PreparedData prepare_script(const wire::ScriptSpec& script, const std::string& data) {
  PreparedData prepared;
  prepared.facts.set_open(true);
  prepared.model =
      script.module().empty()
          ? "script " + printable(std::filesystem::path(script.path()).filename().string())
          : "module " + printable(script.module());
  prepared.description = data;
  return prepared;
}

// Workers would say it too, but only after they have started.
Status check_transforms(const wire::DataSpec& spec, const data::Dataset& train) {
  const auto& words = spec.transforms();
  return data::SampleReader::create(train, {words.begin(), words.end()}, train.statistics())
      .status();
}

}  // namespace

Result<PreparedData> prepare_data(const wire::JobSpec& job, const std::string& run_dir,
                                  const std::function<void(const std::string&)>& progress) {
  if (is_script(job.model()) && job.data().train().path().empty())
    return prepare_script(job.script(), "");
  const std::string cache_dir = data::cache_directory(job.data(), run_dir);
  const data::ProgressFn show = [&](const std::string& what, uint64_t done, uint64_t total) {
    const std::string share =
        total == 0 ? bytes_text(done)
                   : percent(static_cast<double>(done) / static_cast<double>(total), 0);
    progress("preparing data: " + what + " " + share);
  };
  LOCKSTEP_ASSIGN_OR_RETURN(const data::RunData opened, data::open_run_data(job, cache_dir, show));
  const data::Dataset& train = *opened.train;
  const data::Dataset* eval = opened.eval.get();
  if (is_script(job.model())) {
    LOCKSTEP_RETURN_IF_ERROR(check_transforms(job.data(), train));
    return prepare_script(job.script(), describe(train, eval));
  }
  PreparedData prepared{data::make_data_facts(train, eval),
                        describe_model(job.model(), train.shape()), describe(train, eval)};
  LOCKSTEP_RETURN_IF_ERROR(check_transforms(job.data(), train));
  const auto& words = job.data().transforms();
  LOCKSTEP_ASSIGN_OR_RETURN(*prepared.facts.mutable_legend(),
                            data::make_legend({words.begin(), words.end()}, train));
  return prepared;
}

}  // namespace lockstep
