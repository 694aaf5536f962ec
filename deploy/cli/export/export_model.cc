#include "deploy/cli/export/export_model.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "comm/base/file.h"
#include "comm/base/hash.h"
#include "comm/base/limits.h"
#include "comm/base/text/shell_word.h"
#include "comm/run/checkpoint/store.h"
#include "comm/run/directory/layout.h"
#include "comm/run/directory/run_files.h"
#include "comm/run/job/predictions.h"
#include "data/bpe/vocabulary.h"
#include "deploy/agent/process.h"
#include "deploy/agent/worker_launch.h"
#include "deploy/cli/export/exported_weights.h"
#include "deploy/cli/export/find_checkpoint.h"
#include "deploy/cli/export/int8_choice.h"
#include "deploy/cli/export/measure_export.h"
#include "deploy/cli/export/model_card.h"
#include "deploy/cli/watch/run_summary.h"
#include "worker/model/exported_program/int8/int8_program.h"
#include "worker/model/exported_program/write_program.h"
#include "worker/model/model_file.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr char kTorchScriptFile[] = "model.pt";
constexpr char kProgramFile[] = "model.pt2";
constexpr char kTrainingFile[] = "train.pt2";
constexpr char kPredictFile[] = "predict.pt2";
constexpr char kFloatProgram[] = "float.pt2";  // while the export is made
constexpr char kInt8File[] = "model.int8.safetensors";
constexpr char kUsageName[] = "lockstep.json";
constexpr char kChosenWeights[] = "chosen";      // a directory, while the export is made
constexpr char kFiguresFile[] = "figures.json";  // while the export is made

Status check_target(const std::string& target) {
  std::error_code error;
  if (!fs::exists(target, error) ||
      (fs::is_directory(target, error) && fs::is_empty(target, error)))
    return Status::ok();
  return {Code::kUsage, target + " is there already; name a directory that is new or empty"};
}

// The directory while it is filled, gone with this if it was not published.
class HalfMade {
 public:
  static Result<HalfMade> beside(const std::string& target) {
    HalfMade made;
    std::error_code error;
    fs::path clean = fs::absolute(target).lexically_normal();
    if (clean.filename().empty()) clean = clean.parent_path();
    made.target_ = clean.string();
    fs::create_directories(clean.parent_path(), error);
    made.path_ = made.target_ + std::string(rundir::kTemporaryMark) +
                 to_hex({reinterpret_cast<const uint8_t*>(random_bytes(4).data()), 4});
    if (!fs::create_directory(made.path_, error))
      return Status(Code::kInternal, "cannot make " + made.path_ + ": " + error.message());
    return made;
  }
  HalfMade(HalfMade&& other) noexcept
      : target_(std::move(other.target_)), path_(std::exchange(other.path_, {})) {}
  HalfMade& operator=(HalfMade&&) = delete;
  ~HalfMade() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  Status publish() {
    std::error_code error;
    LOCKSTEP_RETURN_IF_ERROR(sync_directory(path_));
    fs::rename(path_, target_, error);  // over an empty directory, too
    if (error) return {Code::kInternal, "cannot make " + target_ + ": " + error.message()};
    path_.clear();
    return Status::ok();
  }

 private:
  HalfMade() = default;
  std::string target_;
  std::string path_;
};

// Runs `lockstep-worker export`: only the worker has LibTorch.
Status write_torchscript(const std::string& run_dir, const std::string& checkpoint,
                         const std::string& file) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string program, worker_program(sibling_program("")));
  ProcessSpec spec;
  spec.argv = {program, "export", "--run-dir", run_dir, "--checkpoint", checkpoint, "--file", file};
  LOCKSTEP_ASSIGN_OR_RETURN(const pid_t pid, start_process(spec));
  const ProcessEnd end = wait_for_end(pid);
  if (end.is_success()) return Status::ok();
  return {end.exit_code == 66   ? Code::kNoInput
          : end.exit_code == 64 ? Code::kUsage
          : end.exit_code == 78 ? Code::kConfig
                                : Code::kInternal,
          "the TorchScript file was not written: lockstep-worker " + end.text()};
}

Result<std::string> hash_of(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string content, read_file(path, limits::kModelFileBytes));
  return to_hex(sha256(content));
}

class Export {
 public:
  Export(const ExportRequest& request, HalfMade& out) : request_(request), out_(out) {}

  Status write(const CheckpointInfo& checkpoint) {
    LOCKSTEP_ASSIGN_OR_RETURN(model_.job, read_job_spec(request_.run_dir));
    if (is_script(model_.job.model()))
      return {Code::kUsage, "the run in " + request_.run_dir +
                                " trains a script, whose model only Python can build; load " +
                                checkpoint.path + "/model.safetensors there"};
    LOCKSTEP_ASSIGN_OR_RETURN(model_.facts, read_data_facts(request_.run_dir));
    if (auto summary = read_summary(request_.run_dir); summary.is_ok())
      model_.summary = std::move(summary).value();
    model_.manifest = checkpoint.manifest;
    model_.checkpoint = checkpoint.name;
    model_.command = request_.command;
    model_.weights = request_.weights;
    if (!request_.int8.empty()) LOCKSTEP_RETURN_IF_ERROR(check_int8_model(model_.job.model()));
    MeasureRequest measure{.run_dir = request_.run_dir,
                           .checkpoints = {checkpoint.path},
                           .exported = request_.int8.empty() ? "" : out_.path(),
                           .file = out_.file(kFiguresFile)};
    const std::string chosen = out_.file(kChosenWeights);
    std::error_code error;
    if (!request_.weights.is_plain()) {
      fs::create_directory(chosen, error);
      if (error) return {Code::kInternal, "cannot make " + chosen + ": " + error.message()};
      LOCKSTEP_RETURN_IF_ERROR(write_chosen_weights(checkpoint.path, request_.weights, chosen));
      measure.checkpoints.push_back(chosen);
    }
    LOCKSTEP_RETURN_IF_ERROR(write_weights(measure.checkpoints.back()));
    LOCKSTEP_RETURN_IF_ERROR(copy_tokenizer());
    if (!request_.int8.empty() || request_.weights.pruned > 0) {
      // The worker opens the directory as others will.
      LOCKSTEP_RETURN_IF_ERROR(put_usage());
      model_.measured = measure_export(measure, measured_models());
    }
    fs::remove_all(chosen, error);
    if (error) return {Code::kInternal, "cannot remove " + chosen + ": " + error.message()};
    LOCKSTEP_RETURN_IF_ERROR(put_usage());
    return put("README.md", readme_text(model_));
  }

  std::string figures() const { return figures_text(model_); }

 private:
  Status put(const std::string& name, const std::string& content) {
    model_.files[name] = to_hex(sha256(content));
    return replace_file(out_.file(name), content);
  }

  // lockstep.json names all files but itself and the page.
  Status put_usage() {
    model_.files.erase(kUsageName);
    return put(kUsageName, usage_json(model_).dump(2) + "\n");
  }

  // As measure_export() takes them.
  std::vector<MeasuredModel> measured_models() const {
    std::vector<MeasuredModel> models;
    const auto add = [&models](const std::string& what, uint64_t bytes) {
      models.push_back({.what = what, .file_bytes = bytes});
    };
    add("the checkpoint's", float_bytes_);
    const std::string average = request_.weights.is_average ? "averaged" : "";
    if (!request_.weights.is_plain())
      add(request_.weights.pruned > 0 ? (average.empty() ? "pruned" : average + " and pruned")
                                      : average,
          float_bytes_);
    if (model_.int8) add(models.size() > 1 ? "these in 8 bits" : "in 8 bits", int8_bytes_);
    return models;
  }

  // `from`: the directory with model.safetensors.
  Status write_weights(const std::string& from) {
    const std::string& name = model_.job.model().name();
    LOCKSTEP_ASSIGN_OR_RETURN(const ExportedWeights weights,
                              ExportedWeights::of(name, from + "/" + std::string(kModelFile)));
    learn_sizes(weights);
    if (name == "torchscript") {
      LOCKSTEP_RETURN_IF_ERROR(
          write_torchscript(request_.run_dir, from, out_.file(kTorchScriptFile)));
      LOCKSTEP_ASSIGN_OR_RETURN(model_.files[kTorchScriptFile],
                                hash_of(out_.file(kTorchScriptFile)));
      return Status::ok();
    }
    if (name == "exported") return write_programs(weights);
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string content, weights.safetensors());
    float_bytes_ = content.size();
    LOCKSTEP_RETURN_IF_ERROR(request_.int8.empty() ? put(kModelFile, content)
                                                   : put_int8_weights(weights));
    return name == "gpt2" ? put("config.json", gpt2_config(model_).dump(2) + "\n") : Status::ok();
  }

  Status put_int8_weights(const ExportedWeights& weights) {
    model_.int8.emplace();
    model_.int8->form = "stored";
    const auto content = weights.int8_safetensors(&model_.int8->counts.tensors);
    if (!content.is_ok()) return content.status().with_context("--int8");
    int8_bytes_ = content->size();
    LOCKSTEP_RETURN_IF_ERROR(put(kInt8File, *content));
    return put("load.py", int8_load_script(int8_loading_lines(model_)));
  }

  // model.pt2 becomes one in 8 bits.
  Status make_program_int8() {
    const auto form = int8_form(request_.int8);
    if (!form)
      return {Code::kUsage, "--int8 is " + shell_word(request_.int8) +
                                "; it takes auto, dynamic or weights, as --int8=weights"};
    const std::string program = out_.file(kProgramFile);
    const std::string floats = out_.file(kFloatProgram);
    std::error_code error;
    fs::rename(program, floats, error);
    if (error) return {Code::kInternal, "cannot make " + floats + ": " + error.message()};
    const auto counts = exported::write_int8_program(floats, program, *form);
    if (!counts.is_ok()) return counts.status().with_context("--int8");
    float_bytes_ = fs::file_size(floats, error);
    int8_bytes_ = fs::file_size(program, error);
    fs::remove(floats, error);
    if (error) return {Code::kInternal, "cannot remove " + floats + ": " + error.message()};
    model_.int8 = Int8Facts{int8_form_word(*form), *counts};
    LOCKSTEP_ASSIGN_OR_RETURN(model_.files[kProgramFile], hash_of(program));
    return Status::ok();
  }

  // Writes the program for evaluation, which most users want, the program that training can go on
  // with, and, if the job has one, the program for predictions alone.
  Status write_programs(const ExportedWeights& weights) {
    const wire::ModelSpec& spec = model_.job.model();
    LOCKSTEP_RETURN_IF_ERROR(check_same_file(spec.path(), spec.sha256(), kModelFileKeys));
    if (spec.eval_path().empty()) {
      LOCKSTEP_RETURN_IF_ERROR(
          put_program(spec.path(), kProgramFile, /*is_evaluation=*/true, weights));
    } else {
      LOCKSTEP_RETURN_IF_ERROR(
          check_same_file(spec.eval_path(), spec.eval_sha256(), kEvalFileKeys));
      LOCKSTEP_RETURN_IF_ERROR(
          put_program(spec.eval_path(), kProgramFile, /*is_evaluation=*/false, weights));
    }
    if (!request_.int8.empty()) return make_program_int8();
    std::error_code error;
    float_bytes_ = fs::file_size(out_.file(kProgramFile), error);
    if (!spec.predict_path().empty())
      LOCKSTEP_RETURN_IF_ERROR(
          put_program(spec.predict_path(), kPredictFile, /*is_evaluation=*/false, weights));
    return put_program(spec.path(), kTrainingFile, /*is_evaluation=*/false, weights);
  }

  static Status check_same_file(const std::string& path, const std::string& sha256,
                                const ModelFileKeys& keys) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string found, hash_model_file(path, keys));
    return check_model_hash(path, sha256, found, keys);
  }

  Status put_program(const std::string& from, const std::string& name, bool is_evaluation,
                     const ExportedWeights& weights) {
    const exported::NewWeights values =
        [&weights](const std::string& tensor) -> Result<std::span<const uint8_t>> {
      const FileTensor* found = weights.find(tensor);
      if (found == nullptr) return std::span<const uint8_t>();
      return std::span<const uint8_t>(found->data,
                                      *safetensors::bytes_of(found->type->bytes, found->shape));
    };
    LOCKSTEP_RETURN_IF_ERROR(exported::write_program(from, out_.file(name), is_evaluation, values));
    LOCKSTEP_ASSIGN_OR_RETURN(model_.files[name], hash_of(out_.file(name)));
    return Status::ok();
  }

  void learn_sizes(const ExportedWeights& weights) {
    const FileTensor* first = weights.find("conv1.weight");
    if (first != nullptr && first->shape.size() != 4) first = nullptr;
    if (first != nullptr) model_.channels = first->shape[1];
    for (const char* last : {"wte.weight", "fc.weight", "fc3.weight", "fc2.weight"}) {
      const FileTensor* tensor = weights.find(last);
      if (tensor == nullptr || tensor->shape.empty()) continue;
      model_.outputs = tensor->shape[0];
      if (std::string(last) == "wte.weight") model_.channels = 0;
      // The stem that the job resolved is not in the job: the window of the first layer tells it.
      if (first != nullptr && std::string(last) == "fc.weight")
        model_.job.mutable_model()->set_stem(first->shape[3] == 7 ? "imagenet" : "cifar");
      return;
    }
  }

  Status copy_tokenizer() {
    const std::string& path = model_.job.data().tokenizer();
    if (path.empty()) return Status::ok();
    const auto vocabulary = data::BpeVocabulary::open(path);
    if (!vocabulary.is_ok()) return vocabulary.status().with_context("data.tokenizer");
    LOCKSTEP_RETURN_IF_ERROR(data::check_vocabulary_hash(path, model_.job.data().tokenizer_sha256(),
                                                         vocabulary->sha256()));
    for (const std::string& file : vocabulary->files()) {
      const std::string name = fs::path(file).filename().string();
      LOCKSTEP_ASSIGN_OR_RETURN(const std::string content,
                                read_file(file, limits::kVocabularyBytes));
      LOCKSTEP_RETURN_IF_ERROR(put(name, content));
      model_.tokenizer_files.push_back(name);
    }
    return Status::ok();
  }

  const ExportRequest& request_;
  HalfMade& out_;
  ModelFacts model_;
  uint64_t float_bytes_ = 0;  // of the weights, or of the program for evaluation
  uint64_t int8_bytes_ = 0;   // the same with --int8
};

}  // namespace

Result<ExportDone> export_model(const ExportRequest& request) {
  ExportRequest whole = request;
  std::error_code error;
  whole.run_dir = fs::canonical(request.run_dir, error).string();
  if (error) return Status(Code::kNoInput, "there is no run directory " + request.run_dir);
  LOCKSTEP_RETURN_IF_ERROR(check_target(request.target));
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const CheckpointInfo checkpoint,
                              find_checkpoint(whole.run_dir, whole.checkpoint));
    LOCKSTEP_ASSIGN_OR_RETURN(HalfMade out, HalfMade::beside(request.target));
    Export made(whole, out);
    const Status written = made.write(checkpoint);
    const bool is_gone = !written.is_ok() && !fs::exists(checkpoint.path, error);
    if (is_gone && whole.checkpoint == "last") continue;  // there is a newer one
    if (is_gone) return why_unusable(written, checkpoint.path);
    LOCKSTEP_RETURN_IF_ERROR(written);
    LOCKSTEP_RETURN_IF_ERROR(out.publish());
    return ExportDone{checkpoint.name, made.figures()};
  }
}

}  // namespace lockstep
