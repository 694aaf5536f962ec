#include "data/dataset/dataset.h"

#include <charconv>
#include <utility>

#include "comm/base/check.h"
#include "comm/wire/data_formats.h"
#include "data/dataset/framed_dataset.h"
#include "data/formats/arrays/cifar_dataset.h"
#include "data/formats/arrays/cifar_files.h"
#include "data/formats/arrays/idx_dataset.h"
#include "data/formats/arrays/idx_pair.h"
#include "data/formats/arrays/npy_dataset.h"
#include "data/formats/arrays/npy_pair.h"
#include "data/formats/arrays/npz_pair.h"
#include "data/formats/arrays/safetensors_files.h"
#include "data/formats/arrow/arrow_file.h"
#include "data/formats/images/encoded_dataset.h"
#include "data/formats/tables/csv_dataset.h"
#include "data/formats/tokens/token_dataset.h"
#include "data/formats/tokens/token_files.h"
#include "data/formats/tokens/tokenized_text.h"
#include "data/open/detect_format.h"
#include "data/transform/transform_list.h"

namespace lockstep::data {
Status Dataset::read_encoded(uint64_t, std::vector<uint8_t>&) const {
  return {Code::kInternal, "samples of format " + format() + " are not encoded"};
}

int64_t Dataset::make_sequence(uint64_t, int64_t*, int64_t*) const {
  LOCKSTEP_CHECK(false, "sequences that lie in files are not made");
  return 0;
}

std::unique_ptr<Dataset> Dataset::of_documents(const std::vector<bool>&, std::string) const {
  LOCKSTEP_CHECK(false, "documents are not kept apart");
  return nullptr;
}

uint64_t Dataset::counted_labels(uint64_t) const {
  return shape().labels();
}

uint64_t epoch_units(const Dataset& train) {
  return train.parts().empty() ? train.samples() : units_of(train.parts());
}

std::string Dataset::name_of(uint64_t i) const {
  return "sample " + std::to_string(i) + " of " + (files().empty() ? "the data" : files().front());
}

std::string cache_directory(const wire::DataSpec& data, const std::string& run_dir) {
  return data.cache_dir().empty() ? run_dir + "/cache" : data.cache_dir();
}

namespace {

// 0 and empty: of a run that was begun before the keys were there.
source::CacheOptions cache_options(const wire::CacheSpec& spec) {
  source::CacheOptions options;
  options.covers_paths = spec.tier() == "all";
  if (spec.policy() == "lru") options.policy = source::CachePolicy::kLru;
  if (spec.policy() == "fifo") options.policy = source::CachePolicy::kFifo;
  options.limit_bytes = static_cast<uint64_t>(spec.limit_gb() * 1e9);
  if (spec.chunk_kb() == 0) return options;
  options.memory_bytes = uint64_t{spec.memory_mb()} << 20;
  options.chunk_bytes = uint64_t{spec.chunk_kb()} << 10;
  options.requests = spec.requests();
  options.stall_s = spec.stall_s();
  options.attempts = spec.attempts();
  return options;
}

Documents documents_of(const wire::DataSpec& spec) {
  if (spec.documents() == "pad") return Documents::kPad;
  return spec.documents() == "pack" ? Documents::kPack : Documents::kStream;
}

// What is no number was refused when the job was read.
std::optional<uint64_t> document_end_of(const wire::DataSpec& spec) {
  uint64_t token = 0;
  const std::string& text = spec.document_end();
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), token);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return token;
}

}  // namespace

SampleCut sample_cut(const wire::JobSpec& job) {
  const auto& words = job.data().transforms();
  // What cannot be parsed is told where it is used (sample_reader.h).
  const auto transforms = parse_transforms({words.begin(), words.end()});
  return {job.model().block(),
          job.model().vocab(),
          transforms.is_ok() ? transforms->frame : ImageFrame(),
          cache_options(job.data().cache()),
          job.data().tokenizer(),
          job.data().tokenizer_sha256(),
          documents_of(job.data()),
          document_end_of(job.data()),
          job.data().length_classes() > 0 || job.data().shuffle() == "length",
          nullptr};
}

namespace {

// Of images that are stored as pixels, and of tables.
Result<std::unique_ptr<Dataset>> open_stored(const wire::DatasetSpec& spec,
                                             const std::string& format, Split split,
                                             const std::string& cache_dir,
                                             const ProgressFn& progress) {
  if (format == "csv") return open_csv_dataset(spec.path(), split, progress);
  if (format == "arrow") {
    LOCKSTEP_ASSIGN_OR_RETURN(const Shards shards, find_arrow_shards(spec.path(), split));
    return open_arrow_pixels(shards, cache_dir, progress);
  }
  if (const CifarFormat* cifar = cifar_format(format)) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto paths, find_cifar_files(spec.path(), *cifar, split));
    return open_cifar_dataset(paths, *cifar, cache_dir, progress);
  }
  if (format == "npz" || (format.starts_with("npy") && is_npz(spec.path()))) {
    LOCKSTEP_ASSIGN_OR_RETURN(const NpzPair pair, find_npz_pair(spec.path(), split));
    return open_npz_dataset(pair, format, cache_dir, progress);
  }
  if (format == "safetensors" || (format.starts_with("npy") && has_safetensors(spec.path()))) {
    LOCKSTEP_ASSIGN_OR_RETURN(const TensorPair pair, find_tensor_pair(spec.path(), split));
    return open_tensor_dataset(pair, format, cache_dir, progress);
  }
  if (format.starts_with("npy")) {
    LOCKSTEP_ASSIGN_OR_RETURN(const NpyPair pair, find_npy_pair(spec.path(), split));
    return open_npy_dataset(pair, format, cache_dir, progress);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const IdxPair pair, find_idx_pair(spec.path(), split));
  return open_idx_dataset(pair, cache_dir, progress);
}

}  // namespace

Result<DataPlace> find_place(const wire::DatasetSpec& spec, const std::string& cache_dir,
                             const ProgressFn& progress, const SampleCut& cut) {
  DataPlace place{spec, cut};
  const bool is_found = cut.far != nullptr && spec.path() == cut.far->path();
  if (is_found || !source::is_far(spec.path(), cut.cache)) return place;
  LOCKSTEP_ASSIGN_OR_RETURN(place.cut.far,
                            source::RemoteFiles::open(spec.path(), cache_dir, cut.cache, progress));
  place.spec.set_path(place.cut.far->path());
  return place;
}

Result<std::unique_ptr<Dataset>> open_dataset(const wire::DatasetSpec& wanted, Split split,
                                              const std::string& cache_dir,
                                              const ProgressFn& progress,
                                              const SampleCut& wanted_cut) {
  if (wanted.path().empty())
    return Status(Code::kUsage, "no data path; set data.train.path to the directory of the files");
  LOCKSTEP_ASSIGN_OR_RETURN(const DataPlace place,
                            find_place(wanted, cache_dir, progress, wanted_cut));
  const wire::DatasetSpec& spec = place.spec;
  const SampleCut& cut = place.cut;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string format, resolve_format(spec.path(), spec.format()));
  if (!is_data_format(format))
    return Status(Code::kUsage,
                  "unknown data format \"" + format + "\"; known are " + known_data_formats());
  LOCKSTEP_RETURN_IF_ERROR(check_is_text(cut, spec.path(), format));
  if (is_token_format(format)) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto paths, find_token_files(spec.path(), format, split));
    return open_token_dataset(paths, format, cut, cache_dir, progress);
  }
  if (is_encoded_format(format)) {
    LOCKSTEP_ASSIGN_OR_RETURN(EncodedSource found,
                              find_encoded_source(spec.path(), format, split, progress, cut.far));
    LOCKSTEP_ASSIGN_OR_RETURN(const EncodedSource source, inflated(std::move(found), cache_dir));
    return open_encoded_dataset(source, cut.frame, cache_dir, progress);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(auto stored, open_stored(spec, format, split, cache_dir, progress));
  return make_framed_dataset(std::move(stored), cut.frame);
}

}  // namespace lockstep::data
