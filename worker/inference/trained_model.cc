#include "worker/inference/trained_model.h"

#include <google/protobuf/util/json_util.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "comm/base/file.h"
#include "comm/base/hash.h"
#include "comm/base/limits.h"
#include "comm/base/text/shallow_json.h"
#include "comm/run/checkpoint/newest_checkpoint.h"
#include "comm/run/directory/run_files.h"
#include "comm/run/job/data_formats.h"
#include "comm/run/job/data_legend.h"
#include "comm/run/job/predictions.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

using Json = nlohmann::json;

constexpr char kUsageFile[] = "lockstep.json";
constexpr char kInt8WeightsFile[] = "model.int8.safetensors";
constexpr int kMostDepth = 8;

std::string model_file(const std::string& checkpoint) {
  return checkpoint + "/" + std::string(kModelFile);
}

Result<TrainedModel> read_checkpoint_model(const std::string& run_dir,
                                           const std::string& checkpoint) {
  TrainedModel model;
  model.place = run_dir;
  LOCKSTEP_ASSIGN_OR_RETURN(model.job, read_job_spec(run_dir));
  if (is_script(model.job.model()))
    return Status(Code::kUsage, "the run in " + run_dir +
                                    " trains a script, whose model only Python can build; load " +
                                    model_file(checkpoint) + " there");
  LOCKSTEP_ASSIGN_OR_RETURN(const wire::DataFacts facts, read_data_facts(run_dir));
  model.legend = facts.legend();
  model.weights = model_file(checkpoint);
  model.tokenizer = model.job.data().tokenizer();
  model.is_of_bytes = is_text_format(model.job.data().train().format());
  return model;
}

// Reads a directory of `lockstep export model`.
class ExportedDirectory {
 public:
  explicit ExportedDirectory(const std::string& path) : path_(path) { model_.place = path; }

  Result<TrainedModel> read() {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string text,
                              read_file(file(kUsageFile), limits::kJobFileBytes));
    const Json json = parse_shallow_json(text, kMostDepth);
    if (!json.is_object() || !member(json, "model").is_object() ||
        !member(json, "files").is_object())
      return bad("is not what lockstep export model writes");
    if (member(json, "format") != 1)
      return Status(Code::kConfig, file(kUsageFile) +
                                       " is of another version of Lockstep; export the model "
                                       "again with this one");
    google::protobuf::util::JsonParseOptions options;
    options.ignore_unknown_fields = true;
    if (!google::protobuf::util::JsonStringToMessage(json["model"].dump(),
                                                     model_.job.mutable_model(), options)
             .ok())
      return bad("has a model that cannot be read");
    LOCKSTEP_ASSIGN_OR_RETURN(model_.legend, legend_from_json(json));
    LOCKSTEP_RETURN_IF_ERROR(check_files(json["files"]));
    model_.is_directory = true;
    take_model(json);
    for (const std::string& used :
         {model_.weights, model_.job.model().path(), model_.job.model().eval_path(),
          model_.job.model().predict_path()})
      if (!used.empty() && !json["files"].contains(fs::path(used).filename().string()))
        return bad("does not have the hash of " + used);
    take_input(member(json, "input"));
    take_tokens(member(json, "input"));
    return std::move(model_);
  }

 private:
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  Status bad(const std::string& what) const {
    return {Code::kBadData, file(kUsageFile) + " " + what + "; export the model again"};
  }
  static Json member(const Json& object, const char* key) {
    return object.is_object() ? object.value(key, Json()) : Json();
  }

  // Refuses files whose content has changed: they would make another model of this directory.
  Status check_files(const Json& files) const {
    for (const auto& [name, hash] : files.items()) {
      if (name == "README.md") continue;
      if (name.find('/') != std::string::npos || !hash.is_string())
        return bad("has a list of files that cannot be read");
      LOCKSTEP_ASSIGN_OR_RETURN(const std::string content,
                                read_file(file(name), limits::kModelFileBytes));
      if (to_hex(sha256(content)) != hash.get<std::string>())
        return {Code::kBadData, file(name) +
                                    " is damaged or was changed: its hash is not that in " +
                                    kUsageFile + "; export the model again"};
    }
    return Status::ok();
  }

  void take_model(const Json& json) {
    wire::ModelSpec& spec = *model_.job.mutable_model();
    spec.clear_sha256();  // of the files of the run; these here have been checked
    spec.clear_eval_sha256();
    spec.clear_predict_path();  // another's file could be named here
    model_.is_int8 = member(json, "int8").is_object();
    if (spec.name() == "exported" && model_.is_int8) {
      spec.set_path(file("model.pt2"));
      spec.clear_eval_path();
    } else if (spec.name() == "exported") {
      spec.set_path(file("train.pt2"));
      spec.set_eval_path(file("model.pt2"));
      if (json["files"].contains("predict.pt2")) spec.set_predict_path(file("predict.pt2"));
    } else if (spec.name() == "torchscript") {
      spec.set_path(file("model.pt"));
    } else {
      model_.weights = file(model_.is_int8 ? kInt8WeightsFile : std::string(kModelFile));
    }
    if (const Json outputs = member(json, "outputs"); outputs.is_number_unsigned())
      model_.outputs = outputs.get<uint32_t>();
    const Json evaluation = member(json, "evaluation");
    wire::TrainSpec& train = *model_.job.mutable_train();
    if (const Json batch = member(evaluation, "batch"); batch.is_number_unsigned())
      train.set_eval_batch(batch.get<uint32_t>());
    train.set_precision(word(evaluation, "precision"));
    train.set_loss(word(evaluation, "loss"));
  }

  // Takes the settings that decide how files become samples.
  void take_input(const Json& input) {
    wire::DataSpec& keys = *model_.job.mutable_data();
    for (const auto& [key, list] : {std::pair("transforms", keys.mutable_transforms()),
                                    std::pair("inputs", keys.mutable_inputs()),
                                    std::pair("targets", keys.mutable_targets())}) {
      const Json words = member(input, key);
      for (const Json& one : words.is_array() ? words : Json::array())
        if (one.is_string()) *list->Add() = one.get<std::string>();
    }
    keys.set_weight(word(input, "weight_column"));
    keys.mutable_train()->set_format(word(input, "format"));
    keys.set_input(word(input, "column"));
    keys.set_label(word(input, "label_column"));
    keys.set_documents(word(input, "documents"));
    keys.set_document_end(word(input, "document_end"));
  }
  static std::string word(const Json& object, const char* key) {
    const Json value = member(object, key);
    return value.is_string() ? value.get<std::string>() : "";
  }

  void take_tokens(const Json& input) {
    model_.is_of_bytes = member(input, "tokens") == "bytes";
    const Json tokenizer = member(input, "tokenizer");
    const Json files = member(tokenizer, "files");
    if (!files.is_array() || files.empty() || !files[0].is_string()) return;
    // Two files: vocab.json and merges.txt, in a directory.
    model_.tokenizer = files.size() == 1 ? file(files[0].get<std::string>()) : path_;
    model_.job.mutable_data()->set_tokenizer(model_.tokenizer);
    const Json hash = member(tokenizer, "sha256");
    if (hash.is_string()) model_.job.mutable_data()->set_tokenizer_sha256(hash.get<std::string>());
  }

  const std::string path_;
  TrainedModel model_;
};

}  // namespace

Result<TrainedModel> read_trained_model(const ModelPlace& place) {
  if (!place.checkpoint.empty()) return read_checkpoint_model(place.path, place.checkpoint);
  std::error_code error;
  if (!fs::exists(place.path + "/" + kUsageFile, error))
    return Status(Code::kUsage, place.path +
                                    " is neither the directory of a run nor one that lockstep "
                                    "export model wrote; name one of these");
  return ExportedDirectory(place.path).read();
}

Status load_trained_model(const ModelPlace& place,
                          const std::function<Status(const TrainedModel&)>& load) {
  ModelPlace now = place;
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(const TrainedModel model, read_trained_model(now));
    const Status loaded = load(model);
    std::error_code error;
    if (loaded.is_ok() || !now.or_newer || fs::exists(now.checkpoint, error)) return loaded;
    LOCKSTEP_ASSIGN_OR_RETURN(const CheckpointInfo newer,
                              newest_checkpoint(fs::path(now.checkpoint).parent_path().string()));
    now.checkpoint = newer.path;
  }
}

Result<TokenText> token_text(const TrainedModel& model, const std::string& tokenizer) {
  if (!tokenizer.empty()) return TokenText::of_vocabulary(tokenizer, "");
  if (!model.tokenizer.empty())
    return TokenText::of_vocabulary(model.tokenizer, model.job.data().tokenizer_sha256());
  return model.is_of_bytes ? TokenText::of_bytes() : TokenText::of_numbers();
}

}  // namespace lockstep
