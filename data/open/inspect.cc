#include "data/open/inspect.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "comm/base/text/printable.h"
#include "comm/run/job/data_formats.h"
#include "comm/run/job/data_legend.h"
#include "data/base/damaged_files.h"
#include "data/dataset/float_image.h"
#include "data/dataset/id_row.h"
#include "data/formats/images/image_tree.h"
#include "data/open/detect_format.h"
#include "data/open/empty_classes.h"
#include "data/open/find_place.h"
#include "data/open/formats.h"
#include "data/open/left_out.h"
#include "data/open/open_dataset.h"
#include "data/transform/legend.h"

namespace lockstep::data {
namespace {

SplitInspection look_at(const Dataset& dataset, std::string split) {
  SplitInspection seen;
  seen.split = std::move(split);
  seen.format = dataset.format();
  seen.files = dataset.files();
  seen.notes = dataset.notes();
  seen.samples = dataset.samples();
  seen.shape = dataset.shape();
  if (dataset.documents() != nullptr) seen.documents = dataset.documents()->counts();
  seen.classes = dataset.classes();
  seen.class_names = dataset.class_names();
  const auto labels = dataset.as<Labels>();
  if (labels && dataset.shape().has_label()) {
    seen.class_counts.resize(dataset.classes());
    for (uint64_t i = 0; i < dataset.samples(); ++i) {
      const auto [from, number] = labels->at(i);
      ++seen.class_counts[from.label(number)];
    }
  }
  seen.fingerprint = dataset.fingerprint();
  seen.statistics = dataset.statistics();
  return seen;
}

// The legend of a job that sets no data.transforms.
wire::DataLegend usual_legend(const Dataset& train) {
  auto legend = make_legend({"normalize"}, train);
  return legend.is_ok() ? std::move(*legend) : wire::DataLegend();
}

std::string fixed6(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6f", value);
  return text;
}

std::string inspected_shape(const SampleShape& shape, bool is_encoded) {
  if (shape.is_sequence()) {
    return std::to_string(shape.tokens) + " tokens and the next one, uint" +
           std::to_string(8 * shape.token_bytes);
  }
  const std::string fields = shape.fields == nullptr ? "" : "; with " + text_of(*shape.fields);
  if (shape.is_row) return std::to_string(shape.channels) + " columns, float32" + fields;
  if (shape.float_bytes > 0)
    return floats_text(shape) + (shape.channels_last ? ", stored channels-last" : "") + fields;
  if (shape.has_ids()) return ids_text(shape) + fields;
  return std::to_string(shape.channels) + " x " + std::to_string(shape.height) + " x " +
         std::to_string(shape.width) + " (channels x height x width), uint8" +
         (shape.channels_last && !is_encoded ? ", stored channels-last" : "") + fields;
}

std::string statistics_text(const SplitInspection& split) {
  std::string text;
  const std::string what = split.shape.is_row ? "  column " : "  channel ";
  for (size_t c = 0; c < split.statistics.size(); ++c) {
    std::string note = split.shape.is_row ? "" : "of values in 0 to 1";
    if (c < static_cast<size_t>(split.legend.std_size())) {
      const bool is_flat = split.statistics[c].std <= 0;
      note += std::string(note.empty() ? "" : "; ") +
              (is_flat ? "normalize divides by 1" : "normalize takes these");
    }
    text += what + std::to_string(c) + "    mean " + fixed6(split.statistics[c].mean) + "  std " +
            fixed6(split.statistics[c].std) + (note.empty() ? "" : "  (" + note + ")") + "\n";
  }
  return text;
}

std::string columns_line(const std::string& what, const std::string& column) {
  if (column.empty()) return "";
  return "  " + what + std::string(13 - what.size(), ' ') + printable_line(column) + "\n";
}

// Without a job, the statistics are of images cut as the shape says.
std::string sizes_text(const ImageSizes& sizes) {
  return "  sizes        " + std::to_string(sizes.least_width) + " to " +
         std::to_string(sizes.most_width) + " wide, " + std::to_string(sizes.least_height) +
         " to " + std::to_string(sizes.most_height) +
         " high; a job needs resize and a crop in data.transforms\n";
}

// The share of a model's predictions that does not count.
double padding_of(const SplitInspection& split) {
  const auto all = static_cast<double>(split.samples) * static_cast<double>(split.shape.tokens);
  return 1 - static_cast<double>(split.documents->predictions) / all;
}

std::string documents_text(const SplitInspection& split) {
  const DocumentCounts& counts = *split.documents;
  char padding[32];
  std::snprintf(padding, sizeof padding, "%.3f", 100 * padding_of(split));
  std::string text = "  documents    " + std::to_string(counts.documents) + " in " +
                     std::to_string(counts.pieces) + " pieces";
  if (counts.too_short > 0)
    text += "; " + std::to_string(counts.too_short) +
            " left out, because one token or none leaves nothing to predict";
  return text + "\n  predictions  " + std::to_string(counts.predictions) + ", and " + padding +
         " % padding\n";
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_any_size(const wire::DatasetSpec& spec, Split split,
                                               const std::string& cache_dir,
                                               const ProgressFn& progress, const SampleCut& cut) {
  auto dataset = open_dataset(spec, split, cache_dir, progress, cut);
  if (dataset.is_ok() || dataset.status().code() != Code::kUsage || !cut.frame.is_empty())
    return dataset;
  const auto format = resolve_format(spec.path(), spec.format(), cut.columns);
  if (!format.is_ok() || !is_encoded_format(*format)) return dataset;
  SampleCut usual = cut;
  usual.frame = {CropKind::kCenter, 224, 256};
  return open_dataset(spec, split, cache_dir, progress, usual);
}

Result<bool> serves_both(const std::string& path, const std::string& format,
                         const ColumnNames& columns) {
  const DataFormat& row = format_at(path, format);
  const bool are_named = columns.has_fields() && row.named_splits != nullptr;
  return are_named ? row.named_splits(path, columns).serves_both : row.serves_both(path);
}

FilesLeftOut left_out_of(const std::string& path, const std::string& format,
                         const std::vector<std::string>& taken, const FilesLeftOut& said) {
  FilesLeftOut left = said;
  if (format == "image_mask") {
    // The directories that the job names say what is in them.
    const auto names = names_in(path);
    if (!names.is_ok()) return left;
    leave_out(*names, "", left);
    for (const std::string& name : names->images)
      left.add("image beside the directories", name, /*may_be_data=*/false);
  } else if (format != "image_folder") {
    left.add(files_left_out(path, taken));
  }
  return left;
}

namespace {

// The files of a data set. If the data set names only its directory, its format lists them.
std::vector<std::string> taken_of(const Dataset& dataset, const DataPlace& place, Split split) {
  if (!is_encoded_format(dataset.format())) return dataset.files();
  const auto found = format_at(place.spec.path(), dataset.format())
                         .find({place.spec.path(), split, {}, place.cut.far, place.cut.columns});
  return found.is_ok() ? found->files : std::vector<std::string>();
}

void finish(Inspection& inspection, const Dataset& train, const DataPlace& place,
            const std::vector<std::string>& taken) {
  FilesLeftOut said;
  for (const SplitInspection& split : inspection.splits) said.add(split.notes.left_out);
  const std::string& format = inspection.splits.front().format;
  inspection.left_out = left_out_of(place.spec.path(), format, taken, said);
  if (const std::string doubt = doubt_of(place.spec.path(), format); !doubt.empty())
    inspection.warnings.push_back(doubt);
  else if (const std::string empty = empty_classes_text(train); !empty.empty())
    inspection.warnings.push_back(inspection.splits.front().split + ": " + empty);
}

// Adds the damage of the evaluation data to `train`, the error of the training data.
Status damage_of_both(const Status& train, const DataPlace& place, const std::string& cache_dir,
                      const ProgressFn& progress) {
  const auto& [spec, cut] = place;
  if (train.code() != Code::kBadData) return train;
  const auto format = resolve_format(spec.path(), spec.format(), cut.columns);
  if (!format.is_ok()) return train;
  const auto is_both = serves_both(spec.path(), *format, cut.columns);
  if (!is_both.is_ok() || *is_both) return train;
  const auto eval = open_any_size(spec, Split::kEval, cache_dir, progress, cut);
  return joined_damage(train, eval.status());
}

}  // namespace

Result<Inspection> inspect_data(const wire::DatasetSpec& wanted, const std::string& cache_dir,
                                const ProgressFn& progress, const SampleCut& wanted_cut) {
  Inspection inspection;
  inspection.path = wanted.path();
  LOCKSTEP_ASSIGN_OR_RETURN(const DataPlace place,
                            find_place(wanted, cache_dir, progress, wanted_cut));
  const auto& [spec, cut] = place;
  const auto opened = open_any_size(spec, Split::kTrain, cache_dir, progress, cut);
  if (!opened.is_ok()) return damage_of_both(opened.status(), place, cache_dir, progress);
  const std::unique_ptr<Dataset>& train = *opened;
  LOCKSTEP_ASSIGN_OR_RETURN(const bool is_both,
                            serves_both(spec.path(), train->format(), cut.columns));
  inspection.splits.push_back(look_at(*train, is_both ? "data" : "train"));
  inspection.splits.back().legend = usual_legend(*train);
  std::vector<std::string> taken = taken_of(*train, place, Split::kTrain);
  if (is_both) {
    finish(inspection, *train, place, taken);
    return inspection;
  }
  const auto eval = open_any_size(spec, Split::kEval, cache_dir, progress, cut);
  if (eval.is_ok())
    inspection.splits.push_back(look_at(*eval.value(), "eval"));
  else if (eval.status().code() != Code::kNoInput)  // a directory of training data only is fine
    return eval.status();
  if (eval.is_ok()) {
    const auto more = taken_of(**eval, place, Split::kEval);
    taken.insert(taken.end(), more.begin(), more.end());
  }
  finish(inspection, *train, place, taken);
  return inspection;
}

std::string to_text(const Inspection& inspection) {
  std::string text = printable_line(inspection.path) + "\n";
  for (const SplitInspection& split : inspection.splits) {
    text += split.split + "\n";
    text += "  format       " + split.format + "\n";
    for (const std::string& file : split.files)
      text += "  file         " + printable_line(file) + "\n";
    text += "  samples      " + std::to_string(split.samples) + "\n";
    text +=
        "  shape        " + inspected_shape(split.shape, is_encoded_format(split.format)) + "\n";
    if (split.notes.sizes.differ()) text += sizes_text(split.notes.sizes);
    text += columns_line("input", split.notes.columns.input);
    text += columns_line("label", split.notes.columns.label);
    if (!split.notes.columns.note.empty())
      text += "  guessed      label is in " + printable_line(split.notes.columns.note) + "\n";
    text += columns_line("header", split.notes.columns.header);
    if (split.documents) text += documents_text(split);
    if (split.shape.has_label())
      text += (split.shape.is_sequence() ? "  vocabulary   " : "  classes      ") +
              std::to_string(split.classes) + "\n";
    for (size_t label = 0; label < split.class_counts.size(); ++label)
      text += "    " + std::to_string(label) + ": " + std::to_string(split.class_counts[label]) +
              (label < split.class_names.size() ? "  " + printable_line(split.class_names[label])
                                                : "") +
              "\n";
    text += statistics_text(split);
    text += "  fingerprint  " + split.fingerprint + "\n";
  }
  if (const uint64_t files = files_in(inspection.left_out); files > 0)
    text += std::to_string(files) + (files == 1 ? " file" : " files") +
            " left out: " + printable_line(left_out_text(inspection.left_out)) + "\n";
  for (const std::string& warning : inspection.warnings)
    text += "warning: " + printable_message(warning) + "\n";
  return text;
}

nlohmann::json to_json(const FilesLeftOut& left) {
  nlohmann::json kinds = nlohmann::json::array();
  for (const auto& [kind, of] : left.kinds)
    kinds.push_back({{"kind", kind},
                     {"files", of.files},
                     {"example", of.example},
                     {"may_be_data", of.may_be_data}});
  return {{"files", files_in(left)}, {"kinds", kinds}};
}

nlohmann::json to_json(const Inspection& inspection) {
  nlohmann::json splits = nlohmann::json::array();
  for (const SplitInspection& split : inspection.splits) {
    nlohmann::json statistics = nlohmann::json::array();
    for (const ChannelStatistics& channel : split.statistics)
      statistics.push_back({{"mean", channel.mean}, {"std", channel.std}});
    splits.push_back({{"split", split.split},
                      {"format", split.format},
                      {"files", split.files},
                      {"samples", split.samples},
                      {"shape", {split.shape.channels, split.shape.height, split.shape.width}},
                      {"tokens", split.shape.tokens},
                      {"input", split.notes.columns.input},
                      {"label", split.notes.columns.label},
                      {"guessed", split.notes.columns.note},
                      {"header", split.notes.columns.header},
                      {"classes", split.classes},
                      {"class_counts", split.class_counts},
                      {"class_names", split.class_names},
                      {"fingerprint", split.fingerprint},
                      {"statistics", statistics}});
    if (split.shape.depth > 0) splits.back()["shape"] = split.shape.model_sizes();
    if (const auto said = legend_json(split.legend); said.contains("normalize"))
      splits.back()["normalize"] = said["normalize"];
    if (split.notes.sizes.most_width > 0)
      splits.back()["sizes"] = {
          {"width", {split.notes.sizes.least_width, split.notes.sizes.most_width}},
          {"height", {split.notes.sizes.least_height, split.notes.sizes.most_height}}};
    if (split.documents)
      splits.back()["documents"] = {{"count", split.documents->documents},
                                    {"too_short", split.documents->too_short},
                                    {"pieces", split.documents->pieces},
                                    {"predictions", split.documents->predictions},
                                    {"padding", padding_of(split)}};
  }
  return {{"path", inspection.path},
          {"splits", splits},
          {"left_out", to_json(inspection.left_out)},
          {"warnings", inspection.warnings}};
}

}  // namespace lockstep::data
