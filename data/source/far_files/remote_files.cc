#include "data/source/far_files/remote_files.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "comm/base/hash.h"
#include "data/source/base/object_names.h"
#include "data/source/cache/fetch_queue.h"
#include "data/source/far_files/download.h"
#include "data/source/stores/http_store.h"
#include "data/source/stores/mount_store.h"
#include "data/source/stores/s3_store.h"
#include "data/source/url.h"

namespace lockstep::source {
namespace {

Result<std::unique_ptr<ObjectStore>> make_store(const std::string& place,
                                                const CacheOptions& options,
                                                const std::atomic<bool>& stop) {
  if (!is_url(place)) return make_mount_store(place);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string url, checked_url(place));
  if (url.starts_with("s3://")) return make_s3_store(url, options, stop);
  return make_http_store(url, options, stop);
}

// A name for people, and one that no other source has.
std::string view_name(const std::string& place) {
  constexpr size_t kShown = 40;
  std::string name = place.substr(place.rfind('/') + 1).substr(0, kShown);
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name + "-" + xxh3_hex(place.data(), place.size()).substr(0, 16);
}

}  // namespace

bool is_far(const std::string& path, const CacheOptions& options) {
  return is_url(path) || (options.covers_paths && !path.empty());
}

struct RemoteFiles::Impl {
  Impl(const std::string& cache_dir, const CacheOptions& wanted)
      : options(wanted), disk(cache_dir + "/objects", wanted) {}
  ~Impl() { stop.store(true); }  // before the members below, which wait for requests

  const ObjectInfo* find(const std::string& file) const {
    if (file.size() <= directory.size() || !file.starts_with(directory)) return nullptr;
    const auto found = by_name.find(file.substr(directory.size() + 1));
    return found == by_name.end() ? nullptr : &objects[found->second];
  }

  const CacheOptions options;
  std::string directory;  // of the view
  std::string path;
  std::vector<ObjectInfo> objects;
  std::vector<Fetching> fetching;
  std::unordered_map<std::string, size_t> by_name;
  std::atomic<uint64_t> copies{0};
  std::atomic<bool> stop{false};
  DiskCache disk;
  std::unique_ptr<ObjectStore> store;
  std::unique_ptr<ObjectCache> cache;
  std::unique_ptr<FetchQueue> queue;
};

Result<std::shared_ptr<RemoteFiles>> RemoteFiles::open(const std::string& place,
                                                       const std::string& cache_dir,
                                                       const CacheOptions& options,
                                                       const SourceProgressFn& progress) {
  if (cache_dir.empty())
    return Status(Code::kUsage,
                  "the data are remote, and data.cache_dir is not set; set it to a directory on a "
                  "local disk, the same on every machine");
  auto impl = std::make_unique<Impl>(cache_dir, options);
  LOCKSTEP_ASSIGN_OR_RETURN(impl->store, make_store(place, options, impl->stop));
  impl->cache = std::make_unique<ObjectCache>(*impl->store, impl->disk, options, impl->stop);
  LOCKSTEP_ASSIGN_OR_RETURN(impl->objects, impl->store->list());
  const std::string& address = impl->store->place();
  if (const Status names = check_names(impl->objects); !names.is_ok())
    return Status(names.code(), address + ": " + names.message());
  impl->fetching = fetching_of(impl->objects);
  for (size_t i = 0; i < impl->objects.size(); ++i) impl->by_name[impl->objects[i].name] = i;
  impl->directory = cache_dir + "/remote/" + view_name(address);
  LOCKSTEP_RETURN_IF_ERROR(update_view(impl->directory, impl->objects, impl->fetching, *impl->cache,
                                       options.requests, progress));
  impl->path = impl->directory;
  if (impl->store->is_one_object()) impl->path += "/" + impl->objects[0].name;
  impl->queue = std::make_unique<FetchQueue>(*impl->cache, options.requests);
  return std::shared_ptr<RemoteFiles>(new RemoteFiles(std::move(impl)));
}

RemoteFiles::RemoteFiles(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RemoteFiles::~RemoteFiles() = default;

const std::string& RemoteFiles::path() const {
  return impl_->path;
}

std::string RemoteFiles::why_disk_keeps_nothing() const {
  return impl_->disk.why_disk_keeps_nothing();
}

const std::string& RemoteFiles::place() const {
  return impl_->store->place();
}

bool RemoteFiles::has_only_place(const std::string& path) const {
  const ObjectInfo* object = impl_->find(path);
  if (object == nullptr) return false;
  const Fetching fetching = impl_->fetching[static_cast<size_t>(object - impl_->objects.data())];
  return fetching == Fetching::kRanges || fetching == Fetching::kHeadFirst;
}

Status RemoteFiles::read(const std::string& path, const FileStamp& then, uint64_t offset,
                         uint64_t bytes, uint8_t* out) {
  const ObjectInfo* object = impl_->find(path);
  const bool is_it = object != nullptr && object->bytes == then.bytes &&
                     time_of_version(object->version) == then.modified_ns;
  if (!is_it || offset > object->bytes || bytes > object->bytes - offset)
    return {Code::kBadData, path + " is not the file that " + place() +
                                " had when the data set was indexed. Put that file back and "
                                "resume the run, or begin a new run in another run directory"};
  return impl_->cache->read(*object, offset, bytes, out);
}

Result<std::string> RemoteFiles::copy_of(const std::string& path) {
  const ObjectInfo* object = impl_->find(path);
  if (object == nullptr) return Status(Code::kNoInput, place() + " does not list " + path);
  const std::string what = object->name + "\n" + object->version;
  const std::string copy = impl_->directory + ".part/copy-" + xxh3_hex(what.data(), what.size()) +
                           "-" + std::to_string(impl_->copies++);
  // Through the cache: what is looked at now is read soon.
  const auto read = [&](uint64_t offset, uint64_t bytes, uint8_t* out) {
    return impl_->cache->read(*object, offset, bytes, out);
  };
  LOCKSTEP_RETURN_IF_ERROR(download(*object, read, impl_->options.requests, copy, [](uint64_t) {}));
  return copy;
}

void RemoteFiles::announce(const std::string& path, uint64_t offset, uint64_t bytes) {
  const ObjectInfo* object = impl_->find(path);
  if (object == nullptr || offset > object->bytes || bytes > object->bytes - offset) return;
  impl_->queue->announce(*object, offset, bytes);
}

uint64_t RemoteFiles::ahead_bytes() const {
  return impl_->options.memory_bytes / 2;
}

SourceCounts RemoteFiles::counts() const {
  return impl_->cache->counts();
}

}  // namespace lockstep::source
