#include "data/formats/arrow/arrow_file.h"

#include <algorithm>
#include <utility>

#include "comm/base/limits.h"
#include "comm/base/text/lower_case.h"
#include "data/arrow/column.h"
#include "data/arrow/inflate.h"
#include "data/base/file_errors.h"
#include "data/formats/arrays/image_dataset.h"
#include "data/formats/arrays/image_fields.h"

namespace lockstep::data {
namespace {

struct Parsed {
  ArrowLayout layout;
  ArrowChoice choice;
};

Result<Parsed> read_columns(std::span<const uint8_t> bytes, const ColumnNames& columns) {
  Parsed parsed;
  LOCKSTEP_ASSIGN_OR_RETURN(parsed.layout, parse_arrow(bytes));
  LOCKSTEP_ASSIGN_OR_RETURN(parsed.choice, choose_columns(parsed.layout.schema, columns));
  return parsed;
}

// As above, for a mapped file. Errors name the file.
Result<Parsed> read_columns(const std::string& path, const MappedFile& file,
                            std::span<const uint8_t> bytes, const ColumnNames& columns) {
  auto parsed = read_columns(bytes, columns);
  if (parsed.is_ok()) return parsed;
  LOCKSTEP_RETURN_IF_ERROR(file.unchanged());  // a change would explain it
  return about(path, parsed.status());
}

// A copy has only the columns of samples and labels, so each choice has a copy of its own.
Result<MappedFile> inflate(const std::string& path, const std::string& name, const MappedFile& file,
                           const Parsed& parsed, const std::string& cache_dir,
                           const ProgressFn& progress) {
  LOCKSTEP_RETURN_IF_ERROR(check_cache(cache_dir, path));
  std::vector<size_t> columns = {parsed.choice.samples};
  const std::vector<size_t>& fields = parsed.choice.fields;
  columns.insert(columns.end(), fields.begin(), fields.end());
  if (parsed.choice.use != ArrowUse::kTokens && fields.empty())
    columns.push_back(parsed.choice.label);
  std::sort(columns.begin(), columns.end());
  const auto give = [&](const ByteSink& sink) {
    return inflate_arrow(file.bytes(), parsed.layout, columns, sink);
  };
  Compressed what{path, "", give, name};
  what.means = "columns " + parsed.choice.columns.input + "\n" + parsed.choice.columns.label;
  for (const size_t field : fields) what.means += "\n" + parsed.layout.schema.fields[field].name;
  return open_inflated(what, file, cache_dir, progress);
}

// The values of a target or a weight in one batch.
Result<FieldValues> field_of(const ArrowFile& file, const ArrowBatch& batch, size_t column) {
  const ArrowSchema& schema = file.layout.schema;
  const std::string& name = schema.fields[column].name;
  FieldValues values;
  values.name = file.path + " (column " + name + ")";
  const auto parts = parts_of(schema, batch, column);
  for (const ArrowPart& part : parts) {
    LOCKSTEP_RETURN_IF_ERROR(check_no_nulls(part));
    if (part.field->kind == ArrowKind::kFixedList) values.dims.push_back(part.field->width);
  }
  const ArrowPart& numbers = parts.back();  // of lists the innermost
  const bool is_float = numbers.field->kind == ArrowKind::kFloat;
  values.kind = is_float ? 'f' : numbers.field->is_signed ? 'i' : 'u';
  values.element_bytes = numbers.field->width;
  values.stride_bytes = values.element_bytes;
  const ArrowBuffer& buffer = numbers.buffers[1];
  for (const uint64_t dim : values.dims) {
    if (dim == 0 || values.stride_bytes > limits::kSampleBytes / dim)
      return bad("has lists of no length, or beyond " + std::to_string(limits::kSampleBytes) +
                 " bytes, in column " + name + "; leave it out");
    values.stride_bytes *= dim;
  }
  if (values.stride_bytes == 0 || batch.rows > buffer.bytes / values.stride_bytes)
    return bad("is damaged: column " + name + " is shorter than its batch");
  values.first = file.bytes().data() + buffer.offset;
  return values;
}

// The pixels or rows of one batch, and its labels.
Result<ImageRun> column_run(const ArrowFile& file, const ArrowBatch& batch) {
  const ArrowSchema& schema = file.layout.schema;
  const uint64_t bytes = file.choice.shape.stored_bytes();
  auto parts = parts_of(schema, batch, file.choice.samples);
  for (const ArrowPart& part : parts) LOCKSTEP_RETURN_IF_ERROR(check_no_nulls(part));
  const std::string& column = schema.fields[file.choice.samples].name;
  ArrowPart& values = parts.back();  // of lists the innermost
  const ArrowBuffer& buffer = values.buffers[1];
  if (batch.rows > buffer.bytes / bytes)
    return bad("is damaged: column " + column + " is shorter than its batch");
  ImageRun run;
  run.content = file.bytes().subspan(buffer.offset, batch.rows * bytes);
  run.first = run.content.data();
  run.stride_bytes = bytes;
  run.samples = batch.rows;
  run.path = file.path;
  run.is_inflated = file.is_inflated;
  for (const size_t field : file.choice.fields) {
    LOCKSTEP_ASSIGN_OR_RETURN(FieldValues of_field, field_of(file, batch, field));
    run.fields.push_back(std::move(of_field));
  }
  if (!run.fields.empty()) return run;
  const ArrowPart label = parts_of(schema, batch, file.choice.label)[0];
  LOCKSTEP_ASSIGN_OR_RETURN(const uint8_t* labels, fixed_values(file.bytes(), label));
  run.labels_path = file.path + " (column " + label.field->name + ")";
  const ArrowField number = arrow_int("", label.field->width, label.field->is_signed);
  run.label = [number, labels](uint64_t i) { return arrow_integer(number, labels, i); };
  return run;
}

Status add_runs(const ArrowFile& file, ImageFiles& files) {
  for (const ArrowBatch& batch : file.layout.batches) {
    if (batch.rows == 0) continue;
    auto run = column_run(file, batch);
    if (!run.is_ok()) return about(file.path, run.status());
    run->first_file = files.files.size();
    files.runs.push_back(std::move(*run));
  }
  return Status::ok();
}

}  // namespace

bool has_arrow_ending(const std::string& path) {
  return ends_like(path, ".arrow") || ends_like(path, ".feather") || ends_like(path, ".ipc");
}

bool is_arrow_cache(const std::string& name) {
  constexpr size_t kHashDigits = 16;  // "cache-9f8b2a71c3d4e5f6.arrow", "..._00000_of_00004.arrow"
  if (!name.starts_with("cache-") || !name.ends_with(".arrow")) return false;
  const std::string_view rest = std::string_view(name).substr(6);
  const size_t digits = rest.find_first_not_of("0123456789abcdef");
  return digits >= kHashDigits && (rest[digits] == '.' || rest[digits] == '_');
}

Result<Shards> find_arrow_shards(const std::string& path, Split split) {
  LOCKSTEP_ASSIGN_OR_RETURN(Shards shards, find_shards(path, split, "*.arrow, *.feather or *.ipc",
                                                       has_arrow_ending, ShardNames::kAny));
  if (!std::all_of(shards.names.begin(), shards.names.end(), is_arrow_cache))
    std::erase_if(shards.names, is_arrow_cache);
  return shards;
}

bool has_arrow_eval(const std::string& path) {
  const auto train = find_arrow_shards(path, Split::kTrain);
  const auto eval = find_arrow_shards(path, Split::kEval);
  if (!eval.is_ok()) return false;
  return !train.is_ok() || train->directory != eval->directory || train->names != eval->names;
}

std::string arrow_format(ArrowUse use) {
  if (use == ArrowUse::kPixels) return "arrow";
  return use == ArrowUse::kTokens ? "arrow_tokens" : "arrow_images";
}

std::string arrow_format_of(const std::string& path, const ColumnNames& columns) {
  for (const Split split : {Split::kTrain, Split::kEval}) {
    const auto shards = find_arrow_shards(path, split);
    if (!shards.is_ok()) continue;
    const auto file = MappedFile::open(shards->directory + "/" + shards->names[0]);
    const auto parsed =
        file.is_ok() ? read_columns(file->bytes(), columns) : Result<Parsed>(file.status());
    return arrow_format(parsed.is_ok() ? parsed->choice.use : ArrowUse::kPixels);
  }
  return "arrow";
}

Result<ArrowFile> open_arrow_file(const std::string& path, const std::string& format,
                                  const ColumnNames& columns, const std::string& cache_dir,
                                  const ProgressFn& progress) {
  LOCKSTEP_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  LOCKSTEP_ASSIGN_OR_RETURN(Parsed parsed, read_columns(path, file, file.bytes(), columns));
  if (arrow_format(parsed.choice.use) != format)
    return bad(path + " is of format " + arrow_format(parsed.choice.use) + ", but not " + format +
               ", the format of the files before it or of data.train.format");
  ArrowFile opened{path, std::move(file), false, {}, {}};
  if (parsed.layout.is_compressed()) {
    LOCKSTEP_ASSIGN_OR_RETURN(opened.file,
                              inflate(path, "", opened.file, parsed, cache_dir, progress));
    opened.is_inflated = true;
    LOCKSTEP_ASSIGN_OR_RETURN(parsed, read_columns(path, opened.file, opened.bytes(), columns));
  }
  opened.layout = std::move(parsed.layout);
  opened.choice = std::move(parsed.choice);
  return opened;
}

Result<MappedFile> inflate_arrow_file(const std::string& path, const std::string& name,
                                      const ColumnNames& columns, const std::string& cache_dir,
                                      const ProgressFn& progress) {
  LOCKSTEP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  LOCKSTEP_ASSIGN_OR_RETURN(const Parsed parsed, read_columns(path, file, file.bytes(), columns));
  return inflate(path, name, file, parsed, cache_dir, progress);
}

namespace {

std::vector<FieldSpec> specs_of(const ArrowChoice& choice, const ColumnNames& columns) {
  std::vector<FieldSpec> specs;
  if (choice.fields.empty()) return specs;
  for (const std::string& name : columns.targets)
    specs.push_back({.name = name, .role = FieldRole::kTarget});
  if (specs.empty()) specs.push_back({.name = choice.columns.label, .role = FieldRole::kTarget});
  if (!columns.weight.empty())
    specs.push_back({.name = columns.weight, .role = FieldRole::kWeight});
  return specs;
}

Result<ImageFiles> pixels_of(const Shards& shards, const ColumnNames& columns,
                             const std::string& cache_dir, const ProgressFn& progress) {
  ImageFiles files;
  files.format = "arrow";
  for (const std::string& name : shards.names) {
    const std::string path = shards.directory + "/" + name;
    LOCKSTEP_ASSIGN_OR_RETURN(ArrowFile file,
                              open_arrow_file(path, "arrow", columns, cache_dir, progress));
    if (files.paths.empty()) files.columns = file.choice.columns;
    if (files.paths.empty()) files.shape = file.choice.shape;
    if (files.paths.empty()) files.fields = specs_of(file.choice, columns);
    if (files.paths.empty()) files.row_names = file.choice.row_names;
    if (!(files.shape == file.choice.shape))
      return bad(path + " has images of another shape than " + files.paths[0] +
                 "; they do not belong together");
    if (files.row_names != file.choice.row_names)
      return bad(path + " has rows of other columns than " + files.paths[0] +
                 "; they do not belong together");
    files.classes = std::max(files.classes, static_cast<uint32_t>(file.choice.classes.size()));
    // If the files name classes differently, no name counts: labels are numbers.
    const bool is_first = files.paths.empty();
    const auto& classes = file.choice.classes;
    if (is_first && are_names(classes)) files.class_names = classes;
    if (!is_first && files.class_names != classes) files.class_names.clear();
    files.paths.push_back(path);
    LOCKSTEP_RETURN_IF_ERROR(add_runs(file, files));
    files.files.push_back(std::move(file.file));
  }
  if (files.runs.empty()) return bad(files.paths[0] + " holds no sample");
  if (columns.targets.empty()) files.label_rule = LabelRule{0};
  return files;
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_arrow_pixels(const Shards& shards, const Shards* training,
                                                   const ColumnNames& columns,
                                                   const std::string& cache_dir,
                                                   const ProgressFn& progress) {
  LOCKSTEP_ASSIGN_OR_RETURN(ImageFiles files, pixels_of(shards, columns, cache_dir, progress));
  const bool are_numbers = columns.are_numbers && !columns.targets.empty();
  if (are_numbers) files.label_rule = LabelRule{};  // also where all could be classes
  if (training != nullptr && !columns.targets.empty() && !are_numbers) {
    LOCKSTEP_ASSIGN_OR_RETURN(const ImageFiles trained,
                              pixels_of(*training, columns, cache_dir, progress));
    files.label_rule = LabelRule{label_field(trained)};
  }
  return make_image_dataset(std::move(files), cache_dir, progress);
}

}  // namespace lockstep::data
