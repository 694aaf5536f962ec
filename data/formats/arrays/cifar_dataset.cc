// The binary version of CIFAR-10 and CIFAR-100 (cifar_files.h) as a Dataset.
#include <utility>

#include "data/files/mapped_file.h"
#include "data/formats/arrays/cifar_files.h"
#include "data/formats/arrays/image_dataset.h"
#include "data/formats/format_rows.h"

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

Result<std::string> name_of_cifar(const Result<const CifarFormat*>& found) {
  if (!found.is_ok()) return found.status();
  return *found == nullptr ? std::string() : std::string((*found)->name);
}

Result<std::string> cifar_directly_in(const Listing& directory) {
  return name_of_cifar(cifar_in(directory.path));
}
Result<std::string> cifar_unpacked_in(const Listing& directory) {
  return name_of_cifar(cifar_below(directory.path));
}

// kBadData if a file is empty, ends inside a record, or has a label that is no class. The classes
// are the format's, even if some never occur. REQUIRES: paths is not empty.
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

Result<std::unique_ptr<Dataset>> open_cifar(const StoredRequest& request) {
  LOCKSTEP_ASSIGN_OR_RETURN(const CifarFormat cifar, with_label(*cifar_format(request.format),
                                                                request.columns, request.path));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto paths, find_cifar_files(request.path, cifar, request.split));
  return open_cifar_dataset(paths, cifar, request.cache_dir, request.progress);
}

bool cifar10_has_eval(const std::string& path) {
  return find_cifar_files(path, *cifar_format("cifar10"), Split::kEval).is_ok();
}
bool cifar100_has_eval(const std::string& path) {
  return find_cifar_files(path, *cifar_format("cifar100"), Split::kEval).is_ok();
}
Result<bool> cifar_serves_both(const std::string&) {
  return false;
}

}  // namespace

// Its probes also find cifar100.
constinit const DataFormat kCifar10Format{
    .name = "cifar10",
    .in_directory = {{{DirectoryStep::kNames, cifar_directly_in},
                      {DirectoryStep::kLast, cifar_unpacked_in}}},
    .open = open_cifar,
    .has_eval = cifar10_has_eval,
    .serves_both = cifar_serves_both};

constinit const DataFormat kCifar100Format{.name = "cifar100",
                                           .open = open_cifar,
                                           .has_eval = cifar100_has_eval,
                                           .serves_both = cifar_serves_both};

}  // namespace lockstep::data
