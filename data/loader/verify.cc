#include "data/loader/verify.h"

#include <iterator>
#include <map>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "comm/base/clock.h"
#include "comm/run/job/data_formats.h"
#include "data/base/thread_team.h"
#include "data/formats/images/encoded_dataset.h"
#include "data/formats/images/encoded_files.h"
#include "data/formats/images/indexed_masks.h"
#include "data/formats/images/look_at_image.h"
#include "data/formats/tokens/tokenized_text.h"
#include "data/image/decode.h"
#include "data/image/image_decoder.h"
#include "data/loader/checksums.h"
#include "data/loader/sample_reader.h"
#include "data/open/detect_format.h"
#include "data/open/find_place.h"
#include "data/open/formats.h"
#include "data/open/inspect.h"
#include "data/open/open_dataset.h"

namespace lockstep::data {
namespace {

// Faults that several threads find, in any order. The first fault found in a sample counts.
class Faults {
 public:
  void add(uint64_t sample, const Status& status) {
    if (!status.is_ok()) add(sample, status.message());
  }
  void add(uint64_t sample, const std::string& message) {
    const std::lock_guard lock(mutex_);
    if (!damaged_.insert(sample).second) return;
    told_.emplace(sample, message);
    if (told_.size() > kMostFaults) told_.erase(std::prev(told_.end()));
  }

  void tell(Verification& out) {
    out.damaged = damaged_.size();
    for (auto& [sample, message] : told_) out.faults.push_back(std::move(message));
  }

 private:
  std::mutex mutex_;
  std::unordered_set<uint64_t> damaged_;
  std::map<uint64_t, std::string> told_;  // the first of these
};

// Arguments that all checks share.
struct Work {
  std::vector<std::string>& taken;  // files of all splits
  const std::string& cache_dir;
  ThreadTeam& team;
  const ProgressFn& progress;
  VerifyDepth depth;
};

Status decode_whole(const EncodedFiles& files, const ExtentIndex& index, uint64_t i) {
  thread_local std::vector<uint8_t> encoded;
  thread_local DecodedPart decoded;
  LOCKSTEP_RETURN_IF_ERROR(files.read(i, encoded));
  const auto info = read_image_info(encoded);
  const std::string name = files.name_of(index.extent(i)) + " ";
  if (!info.is_ok()) return {info.status().code(), name + info.status().message()};
  const Status status =
      decode(encoded, {*info, {0, 0, info->width, info->height}, 1, info->channels}, decoded);
  return status.is_ok() ? status : Status(status.code(), name + status.message());
}

Status decode_whole(const IndexedMasks& masks, uint64_t i) {
  thread_local std::vector<uint8_t> encoded;
  thread_local std::vector<uint8_t> values;
  thread_local ImageDecoder decoder;
  LOCKSTEP_RETURN_IF_ERROR(masks.read(i, encoded));
  const WantedImage whole{{}, masks.extent(i).width, masks.extent(i).height, 1};
  values.resize(uint64_t{whole.width} * whole.height);
  const Status status = decoder.decode_mask(encoded, whole, {}, values.data());
  return status.is_ok() ? status : Status(status.code(), masks.name_of(i) + " " + status.message());
}

Status verify_images(const EncodedSource& source, const Work& work, Verification& out) {
  DamagedFiles damaged;
  LOCKSTEP_ASSIGN_OR_RETURN(const ExtentIndex index,
                            open_sound_index(source, work.cache_dir, work.progress, damaged));
  const EncodedFiles files(index, source.directory, source.far, source.copied);
  out.left_out = index.notes().left_out;
  std::vector<std::shared_ptr<const IndexedMasks>> masks;
  for (size_t i = 0; i < source.masks.size(); ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(auto opened,
                              IndexedMasks::open(source, i, index, work.cache_dir, work.progress));
    if (source.joins_by_stem) out.left_out.add(opened->notes().left_out);
    masks.push_back(std::move(opened));
  }
  Faults faults;
  if (work.depth == VerifyDepth::kFull) {
    LOCKSTEP_ASSIGN_OR_RETURN(const ChecksumReport sums,
                              check_record_sums(index, source, work.team, work.progress));
    for (const auto& [sample, message] : sums.samples) faults.add(sample, message);
    out.bytes += sums.bytes;
  }
  ProgressOfMany shown("decoding the images of " + source.shown_directory, index.samples(),
                       work.progress);
  LOCKSTEP_RETURN_IF_ERROR(work.team.run(index.samples(), [&](uint32_t thread, uint64_t i) {
    faults.add(i, decode_whole(files, index, i));
    for (const auto& of_field : masks) faults.add(i, decode_whole(*of_field, i));
    shown.one_done(thread);
    return Status::ok();
  }));
  for (const auto& [i, message] : damaged.messages()) faults.add(i, message);
  out.samples = index.samples() + damaged.messages().size();
  for (uint64_t i = 0; i < index.samples(); ++i) {
    out.bytes += index.extent(i).bytes;
    for (const auto& of_field : masks) out.bytes += of_field->extent(i).bytes;
  }
  faults.tell(out);
  return Status::ok();
}

Status verify_stored(const wire::DatasetSpec& spec, Split split, const SampleCut& cut,
                     const Work& work, Verification& out) {
  if (work.depth == VerifyDepth::kFull) {
    LOCKSTEP_ASSIGN_OR_RETURN(ChecksumReport sums, check_file_sums(spec.path(), out.format, split,
                                                                   work.team, work.progress));
    out.damaged_files = std::move(sums.files);
    out.bytes += sums.bytes;
    if (!out.damaged_files.empty()) return Status::ok();  // their samples cannot be trusted
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const auto dataset,
                            open_dataset(spec, split, work.cache_dir, work.progress, cut));
  LOCKSTEP_ASSIGN_OR_RETURN(const SampleReader reader,
                            SampleReader::create(*dataset, {}, dataset->statistics()));
  work.taken.insert(work.taken.end(), dataset->files().begin(), dataset->files().end());
  struct Room {
    std::vector<std::byte> input;
    std::vector<int64_t> labels;
    SampleHand hand;
  };
  std::vector<Room> rooms(work.team.threads());
  for (Room& room : rooms) {
    room.input.resize(reader.input_bytes());
    room.labels.resize(dataset->shape().label_words());
  }
  Faults faults;
  ProgressOfMany shown("reading " + spec.path(), dataset->samples(), work.progress);
  LOCKSTEP_RETURN_IF_ERROR(work.team.run(dataset->samples(), [&](uint32_t thread, uint64_t i) {
    Room& room = rooms[thread];
    Status status = reader.read(i, room.input.data(), room.labels.data(), &room.hand, {}, {},
                                records_of(dataset->shape(), room.labels.data(), 1));
    if (status.is_ok()) status = reader.unchanged(std::span(&i, 1));
    faults.add(i, status);
    shown.one_done(thread);
    return Status::ok();
  }));
  out.samples = dataset->samples();
  out.bytes += dataset->samples() * dataset->shape().stored_bytes();
  faults.tell(out);
  return Status::ok();
}

}  // namespace

Result<std::vector<Verification>> verify_data(const wire::DatasetSpec& wanted,
                                              const std::string& cache_dir, uint32_t threads,
                                              const ProgressFn& progress,
                                              const SampleCut& wanted_cut, VerifyDepth depth) {
  LOCKSTEP_ASSIGN_OR_RETURN(const DataPlace place,
                            find_place(wanted, cache_dir, progress, wanted_cut));
  const wire::DatasetSpec& spec = place.spec;
  const SampleCut& cut = place.cut;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string format,
                            resolve_format(spec.path(), spec.format(), cut.columns));
  LOCKSTEP_RETURN_IF_ERROR(check_is_text(cut, spec.path(), format));
  LOCKSTEP_RETURN_IF_ERROR(check_columns(cut.columns, spec.path(), format));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto team, ThreadTeam::start(threads, "verify"));
  const bool is_encoded = is_encoded_format(format);
  std::vector<std::string> taken;
  const Work work{taken, cache_dir, *team, progress, depth};
  std::vector<Verification> all;
  const auto finish = [&] {
    all.back().left_out = left_out_of(spec.path(), format, taken, all.back().left_out);
    return std::move(all);
  };
  for (const Split split : {Split::kTrain, Split::kEval}) {
    Verification& out = all.emplace_back();
    out.split = split == Split::kTrain ? "train" : "eval";
    out.format = format;
    Status status;
    const int64_t begin_ns = SystemClock().monotonic_ns();
    if (is_encoded) {
      auto source =
          format_at(spec.path(), format).find({spec.path(), split, progress, cut.far, cut.columns});
      if (source.is_ok()) taken.insert(taken.end(), source->files.begin(), source->files.end());
      if (source.is_ok()) source = inflated(std::move(*source), cache_dir);
      status = source.is_ok() ? verify_images(*source, work, out) : source.status();
    } else {
      status = verify_stored(spec, split, cut, work, out);
    }
    out.seconds = static_cast<double>(SystemClock().monotonic_ns() - begin_ns) / 1e9;
    if (split == Split::kTrain) {
      LOCKSTEP_RETURN_IF_ERROR(status);
      LOCKSTEP_ASSIGN_OR_RETURN(const bool is_both, serves_both(spec.path(), format, cut.columns));
      if (!is_both) continue;
      out.split = "data";
      return finish();
    }
    if (status.code() == Code::kNoInput) {
      all.pop_back();  // training data only
      return finish();
    }
    LOCKSTEP_RETURN_IF_ERROR(status);
  }
  return finish();
}

}  // namespace lockstep::data
