#include "data/formats/arrow/arrow_images.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "comm/base/hash.h"
#include "data/arrow/column.h"
#include "data/base/file_errors.h"
#include "data/base/one_at_a_time.h"
#include "data/files/inflate_cache.h"
#include "data/files/mapped_file.h"
#include "data/formats/arrow/arrow_choice.h"
#include "data/formats/arrow/arrow_file.h"

namespace lockstep::data {
namespace {

// The column of binary, or `bytes` of the struct.
Result<ArrowPart> images_of(const ArrowSchema& schema, const ArrowBatch& batch, size_t column) {
  const std::vector<ArrowPart> parts = parts_of(schema, batch, column);
  if (parts[0].field->kind != ArrowKind::kStruct) return parts[0];
  LOCKSTEP_RETURN_IF_ERROR(check_no_nulls(parts[0]));
  for (const ArrowPart& part : parts) {
    const bool is_wanted =
        part.field->kind == ArrowKind::kBinary || part.field->kind == ArrowKind::kLargeBinary;
    if (!is_wanted || part.field->name != "bytes") continue;
    if (part.node.nulls > 0)
      return bad("has " + std::to_string(part.node.nulls) + " rows in column " +
                 parts[0].field->name +
                 " with the path of an image and not its bytes; write the files into the table "
                 "(Hugging Face: ds.with_format(\"arrow\").map(datasets.table."
                 "embed_table_storage, batched=True)), or name the directory of the images");
    return part;
  }
  return bad("is damaged: column " + parts[0].field->name + " has no bytes");
}

Status add_image_batch(std::span<const uint8_t> file, const ArrowLayout& layout,
                       const ArrowChoice& choice, const ArrowBatch& batch,
                       std::vector<Extent>& samples) {
  if (batch.rows == 0) return Status::ok();
  if (batch.codec != ArrowCodec::kNone)
    return bad("has a compressed batch, but the first file has none; write all files alike");
  LOCKSTEP_ASSIGN_OR_RETURN(ArrowPart images, images_of(layout.schema, batch, choice.samples));
  const ArrowPart label = parts_of(layout.schema, batch, choice.label)[0];
  LOCKSTEP_ASSIGN_OR_RETURN(const uint8_t* labels, fixed_values(file, label));
  const ArrowBuffer& content = images.buffers[2];
  images.node.rows = batch.rows;  // a struct's child may have more
  return walk_offsets(file, images, content.bytes, [&](uint64_t row, uint64_t begin, uint64_t end) {
    const std::string which = "has row " + std::to_string(samples.size()) + ", which has ";
    auto extent = image_in_shard(file, content.offset + begin, end - begin);
    if (!extent.is_ok()) return bad(which + "an image that " + extent.status().message());
    const int64_t number = arrow_integer(*label.field, labels, row);
    const auto value = as_label(number);
    if (!value)
      return bad(which + label.field->name + " " + std::to_string(number) + ", but a label is " +
                 label_bounds());
    extent->label = *value;
    samples.push_back(*extent);
    return Status::ok();
  });
}

}  // namespace

Result<std::vector<Extent>> samples_of_arrow(std::span<const uint8_t> file,
                                             const ColumnNames& columns, TakenColumns* taken) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ArrowLayout layout, parse_arrow(file));
  LOCKSTEP_ASSIGN_OR_RETURN(const ArrowChoice choice, choose_columns(layout.schema, columns));
  if (taken != nullptr) *taken = choice.columns;
  if (choice.use != ArrowUse::kEncoded)
    return bad("is of format " + arrow_format(choice.use) + ", which has no JPEG or PNG images");
  std::vector<Extent> samples;
  for (const ArrowBatch& batch : layout.batches)
    LOCKSTEP_RETURN_IF_ERROR(add_image_batch(file, layout, choice, batch, samples));
  return samples;
}

std::vector<std::string> arrow_class_names(const Shards& shards, const ColumnNames& columns) {
  const auto file = MappedFile::open(shards.directory + "/" + shards.names[0]);
  if (!file.is_ok()) return {};
  const auto layout = parse_arrow(file->bytes());
  if (!layout.is_ok()) return {};
  const auto choice = choose_columns(layout->schema, columns);
  return choice.is_ok() ? choice->classes : std::vector<std::string>();
}

Result<Shards> inflated_arrow_shards(const Shards& shards, const ColumnNames& columns,
                                     const std::string& cache_dir, const ProgressFn& progress) {
  const std::string first = shards.directory + "/" + shards.names[0];
  LOCKSTEP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(first));
  const auto layout = parse_arrow(file.bytes());
  if (!layout.is_ok() || !layout->is_compressed()) return shards;
  LOCKSTEP_RETURN_IF_ERROR(check_cache(cache_dir, first));
  std::error_code error;
  std::string what = std::filesystem::weakly_canonical(shards.directory, error).native();
  for (const std::string& name : shards.names) what += "\n" + name;  // each split by itself
  // Copies have only the chosen columns. If the choice fails, making a copy reports it.
  const auto choice = choose_columns(layout->schema, columns);
  if (choice.is_ok()) what += "\n\n" + choice->columns.input + "\n" + choice->columns.label;
  Shards inflated = shards;
  inflated.home = shards.directory;
  for (size_t i = 0; i < shards.names.size(); ++i)
    inflated.copied.emplace(i, shards.directory + "/" + shards.names[i]);
  inflated.directory =
      cache_dir + "/" + kArrowCopies + xxh3_hex(what.data(), what.size()).substr(0, 16);
  std::filesystem::create_directories(cache_dir, error);
  // A copy that another process replaced would look as if it had been written to.
  const OneAtATime alone(inflated.directory);
  for (const std::string& name : shards.names)
    LOCKSTEP_RETURN_IF_ERROR(inflate_arrow_file(shards.directory + "/" + name, name, columns,
                                                inflated.directory, progress)
                                 .status());
  return inflated;
}

}  // namespace lockstep::data
