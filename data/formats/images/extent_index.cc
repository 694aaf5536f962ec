#include "data/formats/images/extent_index.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "comm/base/check.h"
#include "comm/base/file.h"
#include "comm/base/hash.h"
#include "comm/base/limits.h"
#include "data/base/file_errors.h"
#include "data/base/modified_ns.h"

namespace lockstep::data {
namespace {

constexpr size_t kIndexHashBytes = 32;

struct Header {
  char magic[8];
  uint64_t samples;
  uint64_t files;
  uint64_t sources;
  uint64_t classes;
  uint64_t notes;
  uint64_t names_bytes;
  char fingerprint[kIndexHashBytes];
};
static_assert(sizeof(Header) == 88);

constexpr char kIndexMagic[8] = {'L', 'K', 'S', 'I', 'D', 'X', '0', '2'};

uint64_t bytes_of(const Header& header) {
  return sizeof(Header) + header.samples * sizeof(Extent) +
         (header.files + header.sources + header.classes + header.notes) * sizeof(IndexedPath) +
         header.names_bytes + kIndexHashBytes;
}

bool is_sane(const Header& header, uint64_t bytes) {
  constexpr uint64_t kMost = limits::kIndexedSamples;
  const bool is_small = header.samples <= kMost && header.files <= kMost &&
                        header.sources <= kMost && header.classes <= kMost &&
                        header.notes <= kMost && header.names_bytes <= bytes;
  return std::memcmp(header.magic, kIndexMagic, sizeof kIndexMagic) == 0 && is_small &&
         bytes_of(header) == bytes && header.samples > 0 && header.classes > 0;
}

// A note is a line of its sort, and what it says.
constexpr char kInputNote[] = "input\n";
constexpr char kLabelNote[] = "label\n";
constexpr char kLeftNote[] = "left\n";      // then the kind, a new line, an example
constexpr char kMissedNote[] = "missed\n";  // the same, of what may be data

std::vector<IndexContent::Path> lines_of(const SourceNotes& notes) {
  std::vector<IndexContent::Path> lines;
  lines.push_back({kInputNote + notes.columns.input});
  lines.push_back({kLabelNote + notes.columns.label});
  for (const auto& [kind, of] : notes.left_out.kinds)
    lines.push_back(
        {(of.may_be_data ? kMissedNote : kLeftNote) + kind + "\n" + of.example, of.files});
  return lines;
}

void add_line(std::string_view line, uint64_t files, SourceNotes& notes) {
  const auto is = [&](std::string_view sort) { return line.starts_with(sort); };
  if (is(kInputNote)) notes.columns.input = line.substr(sizeof kInputNote - 1);
  if (is(kLabelNote)) notes.columns.label = line.substr(sizeof kLabelNote - 1);
  if (!is(kLeftNote) && !is(kMissedNote)) return;
  const std::string_view rest = line.substr(line.find('\n') + 1);
  const size_t end = std::min(rest.find('\n'), rest.size());
  notes.left_out.add(std::string(rest.substr(0, end)),
                     std::string(rest.substr(std::min(end + 1, rest.size()))), is(kMissedNote),
                     files);
}

template <typename T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

Result<ExtentIndex> ExtentIndex::open(const std::string& path, const std::string& directory) {
  LOCKSTEP_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  ExtentIndex index(std::move(file));
  LOCKSTEP_RETURN_IF_ERROR(index.parse());
  LOCKSTEP_RETURN_IF_ERROR(index.check_extents());
  LOCKSTEP_RETURN_IF_ERROR(index.check_sources(directory));
  return index;
}

Status ExtentIndex::parse() {
  const uint8_t* bytes = mapped_.bytes().data();
  const size_t size = mapped_.bytes().size();
  Header header{};
  if (size < sizeof header) return bad("is not an index: it is too short");
  std::memcpy(&header, bytes, sizeof header);
  if (!is_sane(header, size)) return bad("is not an index, or has another version");
  const std::string hash = xxh3_hex(bytes, size - kIndexHashBytes);
  if (std::memcmp(bytes + size - kIndexHashBytes, hash.data(), kIndexHashBytes) != 0)
    return bad("is a damaged index");
  samples_ = header.samples;
  files_ = header.files;
  sources_ = header.sources;
  classes_ = header.classes;
  notes_ = header.notes;
  const auto* text = reinterpret_cast<const char*>(bytes);
  fingerprint_ = {text + offsetof(Header, fingerprint), kIndexHashBytes};
  extents_ = reinterpret_cast<const Extent*>(bytes + sizeof header);
  paths_ = reinterpret_cast<const IndexedPath*>(extents_ + samples_);
  names_ = {reinterpret_cast<const char*>(paths_ + files_ + sources_ + classes_ + notes_),
            header.names_bytes};
  uint64_t end = 0;
  for (uint64_t i = 0; i < files_ + sources_ + classes_ + notes_; ++i) {
    if (paths_[i].name_end < end || paths_[i].name_end > names_.size())
      return bad("is a damaged index");
    end = paths_[i].name_end;
  }
  return Status::ok();
}

Status ExtentIndex::check_extents() const {
  for (uint64_t i = 0; i < samples_; ++i) {
    const Extent& e = extents_[i];
    const bool is_within = e.file < files_ && e.offset <= paths_[e.file].bytes &&
                           e.bytes <= paths_[e.file].bytes - e.offset;
    if (!is_within || e.label >= classes_ || e.width == 0 || e.height == 0 ||
        e.bytes > limits::kEncodedBytes || (e.channels != 1 && e.channels != 3))
      return bad("is a damaged index");
  }
  return Status::ok();
}

Status ExtentIndex::check_sources(const std::string& directory) const {
  for (uint64_t i = files_; i < files_ + sources_; ++i) {
    const auto now = stamp_of(directory, std::string(name(i)));
    if (!now.is_ok() || now->bytes != paths_[i].bytes || now->modified_ns != paths_[i].modified_ns)
      return bad("is out of date: " + directory + " changed since");
  }
  return Status::ok();
}

std::string_view ExtentIndex::name(uint64_t path) const {
  const uint64_t begin = path == 0 ? 0 : paths_[path - 1].name_end;
  return names_.substr(begin, paths_[path].name_end - begin);
}

SourceNotes ExtentIndex::notes() const {
  SourceNotes notes;
  const uint64_t first = files_ + sources_ + classes_;
  for (uint64_t i = first; i < first + notes_; ++i) add_line(name(i), paths_[i].bytes, notes);
  return notes;
}

Status write_extent_index(const std::string& path, const IndexContent& content) {
  LOCKSTEP_CHECK(content.fingerprint.size() == kIndexHashBytes, "an index without a fingerprint");
  std::string names;
  std::string paths;
  const auto add = [&](const IndexContent::Path& p) {
    names += p.name;
    append(paths, IndexedPath{p.bytes, p.modified_ns, names.size()});
  };
  for (const auto& file : content.files) add(file);
  for (const auto& source : content.sources) add(source);
  for (const std::string& name : content.classes) add({name, 0, 0});
  const auto lines = lines_of(content.notes);
  for (const auto& line : lines) add(line);
  Header header{};
  std::memcpy(header.magic, kIndexMagic, sizeof kIndexMagic);
  header.samples = content.extents.size();
  header.files = content.files.size();
  header.sources = content.sources.size();
  header.classes = content.classes.size();
  header.notes = lines.size();
  header.names_bytes = names.size();
  std::memcpy(header.fingerprint, content.fingerprint.data(), kIndexHashBytes);
  std::string text;
  text.reserve(bytes_of(header));
  append(text, header);
  text.append(reinterpret_cast<const char*>(content.extents.data()),
              content.extents.size() * sizeof(Extent));
  text += paths;
  text += names;
  text += xxh3_hex(text.data(), text.size());
  std::error_code error;
  const std::string directory = std::filesystem::path(path).parent_path().string();
  std::filesystem::create_directories(directory, error);
  if (const Status status = replace_file(path, text); !status.is_ok())
    return {status.code(),
            status.message() + "; make room there, or set data.cache_dir to another place"};
  return Status::ok();
}

Status leave_out_damaged(const DamagedFiles& found, DamagedFiles& damaged, IndexContent& content) {
  if (found.empty()) return Status::ok();
  if (found.messages().size() == content.files.size()) return found.status();
  std::vector<uint32_t> numbers(content.files.size());  // by the old ones
  size_t kept = 0;
  for (size_t i = 0; i < content.files.size(); ++i) {
    numbers[i] = static_cast<uint32_t>(kept);
    if (found.has(i)) continue;
    if (kept != i) content.files[kept] = std::move(content.files[i]);
    ++kept;
  }
  content.files.resize(kept);
  std::erase_if(content.extents, [&](const Extent& e) { return found.has(e.file); });
  for (Extent& extent : content.extents) extent.file = numbers[extent.file];
  for (const auto& [i, message] : found.messages())
    LOCKSTEP_RETURN_IF_ERROR(damaged.take(i, {Code::kBadData, message}));
  return Status::ok();
}

Result<IndexContent::Path> stamp_of(const std::string& directory, const std::string& name) {
  const std::string path = name.empty() ? directory : directory + "/" + name;
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0)
    return Status(Code::kNoInput, "cannot read " + path + ": " + errno_text(errno));
  const bool is_directory = S_ISDIR(found.st_mode);
  return IndexContent::Path{name, is_directory ? 0 : static_cast<uint64_t>(found.st_size),
                            modified_ns(found)};
}

}  // namespace lockstep::data
