#include "data/formats/arrays/cifar_dataset.h"

#include <utility>

#include "data/files/mapped_file.h"
#include "data/formats/arrays/image_dataset.h"

namespace lockstep::data {
namespace {

Status check_size(const std::string& path, uint64_t bytes, const CifarFormat& format) {
  const std::string fix = std::string("; unpack ") + format.archive + " again";
  if (bytes == 0) return {Code::kBadData, path + " is empty" + fix};
  const uint64_t record_bytes = format.record_bytes();
  if (bytes % record_bytes == 0) return Status::ok();
  return {Code::kBadData, path + " is truncated, or not of format " + format.name + ": it has " +
                              std::to_string(bytes) + " bytes, not a multiple of the " +
                              std::to_string(record_bytes) + " bytes of a record" + fix};
}

ImageRun run_of(const std::string& path, const MappedFile& file, const CifarFormat& format,
                size_t number) {
  const uint64_t stride = format.record_bytes();
  const uint8_t* label = file.bytes().data() + format.label_at;
  ImageRun run;
  run.content = file.bytes();
  run.first = file.bytes().data() + format.label_bytes;
  run.stride_bytes = stride;
  run.samples = file.bytes().size() / stride;
  run.path = path;
  run.labels_path = path;
  run.label = [label, stride](uint64_t i) { return int64_t{label[i * stride]}; };
  run.first_file = number;
  return run;
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_cifar_dataset(const std::vector<std::string>& paths,
                                                    const CifarFormat& format,
                                                    const std::string& cache_dir,
                                                    const ProgressFn& progress) {
  ImageFiles files;
  files.format = format.name;
  files.shape = {CifarFormat::kChannels, CifarFormat::kSide, CifarFormat::kSide};
  files.paths = paths;
  files.classes = format.classes;
  files.columns.label = format.label;
  files.advice = std::string(". If the file is of format ") + format.name +
                 ", it is damaged: unpack " + format.archive + " again";
  for (const std::string& path : paths) {
    LOCKSTEP_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
    LOCKSTEP_RETURN_IF_ERROR(check_size(path, file.bytes().size(), format));
    files.runs.push_back(run_of(path, file, format, files.files.size()));
    files.files.push_back(std::move(file));
  }
  return make_image_dataset(std::move(files), cache_dir, progress);
}

}  // namespace lockstep::data
