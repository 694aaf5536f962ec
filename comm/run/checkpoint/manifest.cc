#include "comm/run/checkpoint/manifest.h"

#include <google/protobuf/util/json_util.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "comm/base/hash.h"
#include "comm/base/limits.h"
#include "comm/run/job/data_legend.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

constexpr char kSelfHash[] = "self_sha256";
constexpr char kLegend[] = "legend";
constexpr char kEndsAt[] = "ends_at";
constexpr char kAfterEdge[] = "after_edge";
constexpr size_t kSha256HexDigits = 64;

Status bad_manifest(const std::string& what) {
  return Status(Code::kBadData, "the checkpoint manifest is damaged: " + what);
}

// The text that self_sha256 covers.
std::string canonical(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json message_to_json(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  return status.ok() ? Json::parse(text, nullptr, false) : Json();
}

Status message_from_json(const Json& json, google::protobuf::Message* message) {
  const auto status = google::protobuf::util::JsonStringToMessage(canonical(json), message);
  return status.ok() ? Status::ok() : bad_manifest(std::string(status.message()));
}

bool is_sha256(const std::string& text) {
  return text.size() == kSha256HexDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// Takes a whole number: the library would cast a fraction, or a number that does not fit. Throws
// nlohmann's exceptions for a value that is missing or of the wrong type.
template <typename T>
Status take_whole(const Json& object, const char* key, T& out) {
  const uint64_t value = object.at(key).get_ref<const Json::number_unsigned_t&>();
  if (value > std::numeric_limits<T>::max())
    return bad_manifest(std::string(key) + " is too large");
  out = static_cast<T>(value);
  return Status::ok();
}

Json files_to_json(const std::vector<ManifestFile>& files) {
  Json list = Json::array();
  for (const ManifestFile& file : files)
    list.push_back({{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  return list;
}

Status files_from_json(const Json& list, std::vector<ManifestFile>& files) {
  if (list.size() > limits::kManifestFiles) return bad_manifest("it names too many files");
  for (const Json& entry : list) {
    ManifestFile file{entry.at("name"), 0, entry.at("sha256")};
    LOCKSTEP_RETURN_IF_ERROR(take_whole(entry, "bytes", file.bytes));
    // A name is opened below the checkpoint's directory and must not lead out of it.
    if (file.name.empty() || file.name[0] == '.' || file.name.find('/') != std::string::npos)
      return bad_manifest("it names the file '" + file.name + "'");
    if (!is_sha256(file.sha256))
      return bad_manifest("the hash of " + file.name + " is not a SHA-256");
    files.push_back(std::move(file));
  }
  return Status::ok();
}

Json proof_to_json(const StepProof& proof) {
  if (!proof.is_known()) return Json();
  Json list = Json::array();
  for (const ProvenBlock& block : proof.blocks())
    list.push_back({block.last, block.samples, block.digest});
  return list;
}

Status proof_from_json(const Json& list, StepProof& proof) {
  if (list.is_null()) return Status::ok();
  std::vector<ProvenBlock> blocks;
  for (const Json& entry : list) {
    const auto number = [&entry](size_t i) {
      return entry.at(i).get_ref<const Json::number_unsigned_t&>();
    };
    blocks.push_back({number(0), number(1), number(2)});
  }
  LOCKSTEP_ASSIGN_OR_RETURN(proof, StepProof::of(std::move(blocks)));
  return Status::ok();
}

// Takes the fields that format 1 lacks. Throws as take_whole().
Status take_since_format_2(const Json& root, Manifest& m) {
  m.lineage.id = root.at("lineage").at("id");
  LOCKSTEP_RETURN_IF_ERROR(take_whole(root.at("lineage"), "sequence", m.lineage.sequence));
  for (const Json& slots : root.at("skipped"))
    LOCKSTEP_RETURN_IF_ERROR(message_from_json(slots, &m.skipped.emplace_back()));
  return proof_from_json(root.at("proof"), m.proof);
}

// Throws as take_whole().
Result<Manifest> from_tree(const Json& root, uint32_t format) {
  Manifest m;
  uint32_t phase = 0;
  LOCKSTEP_RETURN_IF_ERROR(take_whole(root, "phase", phase));
  if (!is_phase(phase)) return bad_manifest("the phase is unknown");
  m.resume.phase = static_cast<Phase>(phase);
  LOCKSTEP_RETURN_IF_ERROR(take_whole(root, "step", m.resume.step));
  LOCKSTEP_RETURN_IF_ERROR(take_whole(root, "generation", m.generation));
  LOCKSTEP_RETURN_IF_ERROR(take_whole(root, "member", m.member));
  LOCKSTEP_RETURN_IF_ERROR(take_whole(root, "seed", m.seed));
  LOCKSTEP_RETURN_IF_ERROR(take_whole(root, "slots", m.slots));
  LOCKSTEP_RETURN_IF_ERROR(take_whole(root, "global_batch", m.global_batch));
  LOCKSTEP_RETURN_IF_ERROR(take_whole(root, "epoch", m.epoch));
  LOCKSTEP_RETURN_IF_ERROR(message_from_json(root.at("schedule"), &m.schedule));
  m.dataset_fingerprint = root.at("dataset_fingerprint");
  m.numerics_fingerprint = root.at("numerics_fingerprint").get<std::vector<std::string>>();
  m.weights_sha256 = root.at("weights_sha256");
  m.state_sha256 = root.at("state_sha256");
  const Json& lineage = root.at("lineage");
  m.lineage.run_id = lineage.at("run_id");
  m.lineage.resumed_from = lineage.at("resumed_from");
  LOCKSTEP_RETURN_IF_ERROR(
      take_whole(lineage, "generation_first_step", m.lineage.generation_first_step));
  LOCKSTEP_RETURN_IF_ERROR(files_from_json(root.at("files"), m.files));
  for (const Json& batch : root.at("unacknowledged"))
    LOCKSTEP_RETURN_IF_ERROR(message_from_json(batch, &m.unacknowledged.emplace_back()));
  if (root.contains(kLegend)) {
    LOCKSTEP_ASSIGN_OR_RETURN(m.legend, legend_from_json(root[kLegend]));
  }
  if (root.contains(kEndsAt)) LOCKSTEP_RETURN_IF_ERROR(take_whole(root, kEndsAt, m.ends_at));
  m.is_after_edge = root.contains(kAfterEdge) && root[kAfterEdge].get<bool>();
  if (format >= 2) LOCKSTEP_RETURN_IF_ERROR(take_since_format_2(root, m));
  return m;
}

}  // namespace

std::string manifest_to_json(const Manifest& m) {
  Json root = {
      {"format", kManifestFormat},
      {"step", m.resume.step},
      {"phase", static_cast<uint32_t>(m.resume.phase)},
      {"generation", m.generation},
      {"member", m.member},
      {"seed", m.seed},
      {"slots", m.slots},
      {"global_batch", m.global_batch},
      {"epoch", m.epoch},
      {"schedule", message_to_json(m.schedule)},
      {"dataset_fingerprint", m.dataset_fingerprint},
      {"numerics_fingerprint", m.numerics_fingerprint},
      {"weights_sha256", m.weights_sha256},
      {"state_sha256", m.state_sha256},
      {"lineage",
       {{"id", m.lineage.id},
        {"sequence", m.lineage.sequence},
        {"run_id", m.lineage.run_id},
        {"resumed_from", m.lineage.resumed_from},
        {"generation_first_step", m.lineage.generation_first_step}}},
      {"files", files_to_json(m.files)},
      {"proof", proof_to_json(m.proof)},
      {kLegend, legend_json(m.legend)},
  };
  if (m.ends_at > 0) root[kEndsAt] = m.ends_at;
  if (m.is_after_edge) root[kAfterEdge] = true;
  Json& skipped = root["skipped"] = Json::array();
  for (const wire::SkippedSlots& slots : m.skipped) skipped.push_back(message_to_json(slots));
  Json& batches = root["unacknowledged"] = Json::array();
  for (const wire::StepRecords& batch : m.unacknowledged) batches.push_back(message_to_json(batch));
  root[kSelfHash] = to_hex(sha256(canonical(root)));
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Manifest> manifest_from_json(std::string_view text) {
  Json root = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded() || !root.is_object()) return bad_manifest("it is not a JSON object");
  try {
    uint32_t format = 0;
    LOCKSTEP_RETURN_IF_ERROR(take_whole(root, "format", format));
    if (format > kManifestFormat)
      return Status(Code::kConfig, "the checkpoint has format " + std::to_string(format) +
                                       ", this program knows up to " +
                                       std::to_string(kManifestFormat) +
                                       "; use the Lockstep version that wrote it, or a newer one");
    const std::string self = root.at(kSelfHash);
    root.erase(kSelfHash);
    if (self != to_hex(sha256(canonical(root))))
      return bad_manifest("its own SHA-256 does not match");
    return from_tree(root, format);
  } catch (const Json::exception& error) {
    return bad_manifest(error.what());
  }
}

}  // namespace lockstep
