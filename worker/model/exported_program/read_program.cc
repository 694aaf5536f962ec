#include "worker/model/exported_program/read_program.h"

#include <algorithm>
#include <utility>

#include "comm/base/hash.h"
#include "comm/base/limits.h"
#include "comm/base/text/printable.h"
#include "comm/base/text/shell_word.h"
#include "data/files/mapped_file.h"
#include "worker/model/exported_program/archive.h"
#include "worker/model/exported_program/graph_reader.h"
#include "worker/model/exported_program/json_fields.h"
#include "worker/model/exported_program/signature_reader.h"
#include "worker/model/exported_program/tensor_reader.h"

namespace lockstep::exported {
namespace {

using nlohmann::json;

constexpr int64_t kSchemaMajor = 8;
constexpr int64_t kSchemaMinor = 17;

std::string who_is(const std::string& path) {
  return "the exported program " + shell_word(path);
}

void check_version(JsonFields& fields, const json& root) {
  const json& version = fields.object(root, "schema_version");
  const int64_t major = fields.integer(version, "major");
  const int64_t minor = fields.integer(version, "minor");
  if (!fields.is_ok()) return;
  if (major != kSchemaMajor || minor > kSchemaMinor)
    fields.fail(
        {Code::kConfig, "has export schema " + std::to_string(major) + "." + std::to_string(minor) +
                            ", and Lockstep knows " + std::to_string(kSchemaMajor) + ".0 to " +
                            std::to_string(kSchemaMajor) + "." + std::to_string(kSchemaMinor) +
                            "; export the model with torch 2.11"});
  if (fields.optional(root, "verifiers") != json::array({"TRAINING"}))
    fields.fail({Code::kConfig,
                 "was changed by run_decompositions() or for inference, and then its "
                 "gradients may differ from the model's; save what "
                 "torch.export.export() gives"});
}

Status with_name(const std::string& path, const Status& status) {
  return {status.code(), who_is(path) + " " + status.message()};
}

std::string hash_of(std::span<const uint8_t> bytes) {
  Sha256 hash;
  hash.update(bytes.data(), bytes.size());
  return to_hex(hash.finish());
}

}  // namespace

Result<Program> parse_program(
    const ProgramTexts& texts,
    const std::function<Result<std::span<const uint8_t>>(const std::string& name)>& read_file,
    std::shared_ptr<const void> owner) {
  LOCKSTEP_ASSIGN_OR_RETURN(const json root, parse_limited(texts.program));
  LOCKSTEP_ASSIGN_OR_RETURN(const json weights, parse_limited(texts.weights));
  LOCKSTEP_ASSIGN_OR_RETURN(const json constants, parse_limited(texts.constants));
  JsonFields fields;
  check_version(fields, root);
  if (!fields.is_ok()) return fields.status();
  Program program;
  std::vector<std::optional<ValueRef>> inputs;
  program.graph = GraphReader(fields).read(
      fields.object(fields.object(root, "graph_module"), "graph"), &inputs);
  if (!fields.is_ok()) return fields.status();
  TensorReader tensors(fields, weights, constants, read_file, std::move(owner));
  read_inputs(fields, root, inputs, tensors, program);
  if (!fields.is_ok()) return fields.status();
  program.tensors = tensors.take();
  read_outputs(fields, root, program);
  read_sizes(fields, root, program);
  if (const json& version = fields.optional(root, "torch_version"); version.is_string())
    program.torch_version = printable(version.get_ref<const std::string&>());
  if (!fields.is_ok()) return fields.status();
  return program;
}

Result<Program> parse_program(std::span<const uint8_t> file, std::shared_ptr<const void> owner) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ProgramArchive archive,
                            ProgramArchive::open(file, std::move(owner)));
  const std::string& name = archive.program();
  ProgramTexts texts;
  LOCKSTEP_ASSIGN_OR_RETURN(texts.program, archive.read_text("models/" + name + ".json"));
  LOCKSTEP_ASSIGN_OR_RETURN(texts.weights,
                            archive.read_text("data/weights/" + name + "_weights_config.json"));
  LOCKSTEP_ASSIGN_OR_RETURN(texts.constants,
                            archive.read_text("data/constants/" + name + "_constants_config.json"));
  return parse_program(
      texts, [&](const std::string& entry) { return archive.read(entry); }, archive.owner());
}

Result<std::shared_ptr<const Program>> read_program(const std::string& path) {
  auto mapped = data::MappedFile::open(path);
  if (!mapped.is_ok())
    return Status(mapped.status().code(),
                  mapped.status().message() + "; name a file that every worker can read");
  const auto file = std::make_shared<const data::MappedFile>(std::move(mapped).value());
  if (file->bytes().size() > limits::kModelFileBytes)
    return Status(Code::kConfig, who_is(path) + " has " + std::to_string(file->bytes().size()) +
                                     " bytes, more than the limit of " +
                                     std::to_string(limits::kModelFileBytes) +
                                     "; export a smaller model");
  auto program = parse_program(file->bytes(), file);
  if (!program.is_ok()) return with_name(path, program.status());
  program->sha256 = hash_of(file->bytes());
  LOCKSTEP_RETURN_IF_ERROR(file->unchanged());
  return std::shared_ptr<const Program>(
      std::make_shared<const Program>(std::move(program).value()));
}

Status check_batch_size(const Program& program, const std::string& path, uint64_t samples,
                        const std::string& what) {
  const SizeRange& range = program.samples;
  if (samples >= static_cast<uint64_t>(std::max<int64_t>(range.min, 0)) &&
      samples <= static_cast<uint64_t>(std::max<int64_t>(range.max, 0)))
    return Status::ok();
  std::string takes = std::to_string(range.min);
  if (range.max == SizeRange{}.max)
    takes += " samples or more";
  else if (range.max != range.min)
    takes += " to " + std::to_string(range.max) + " samples";
  else
    takes += " samples";
  return {Code::kConfig, who_is(path) + " takes batches of " + takes + ", and " + what + " has " +
                             std::to_string(samples) +
                             "; export it with dynamic_shapes=({0: Dim(\"batch\", min=1, max=" +
                             std::to_string(std::max<uint64_t>(samples, 1024)) + ")},)"};
}

}  // namespace lockstep::exported
