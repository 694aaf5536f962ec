#include "comm/store/store_check.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "comm/base/hash.h"
#include "comm/base/text/number_text.h"
#include "comm/environment/blocked_signals.h"

namespace lockstep::store {
namespace {

using Grade = StoreFinding::Grade;
using SteadyClock = std::chrono::steady_clock;

constexpr uint64_t kSmallBytes = 1'024;  // more than any answer of this check
constexpr uint32_t kTimedCreations = 5;
constexpr uint64_t kChunkBytes = 1'048'576;  // of a read

double seconds_since(SteadyClock::time_point begin) {
  return std::chrono::duration<double>(SteadyClock::now() - begin).count();
}

// Not where the keys, the clock or the certificate are at fault.
bool is_denied(const Status& error) {
  return error.code() == Code::kRefused &&
         error.message().find("AccessDenied") != std::string::npos;
}

class Check {
 public:
  Check(BlobStore& store, const StoreCheckOptions& options,
        const std::function<void(const StoreFinding&)>& tell)
      : store_(store),
        options_(options),
        tell_(tell),
        folder_("lockstep-check/" +
                to_hex(std::span(reinterpret_cast<const uint8_t*>(random_bytes(8).data()), 8)) +
                "/") {}

  bool run() {
    if (create() && condition() && race() && read()) {
      list();
      if (upload()) abandon();
    }
    remove();
    return is_good_;
  }

 private:
  bool good(const char* subject, const std::string& text) {
    tell_({subject, Grade::kGood, text});
    return true;
  }

  void warn(const char* subject, const std::string& text) {
    tell_({subject, Grade::kWarning, text});
  }

  bool bad(const char* subject, const std::string& text) {
    is_good_ = false;
    tell_({subject, Grade::kBad, text});
    return false;
  }

  // `right`: what a role needs for this, by the names of S3's policies.
  bool bad(const char* subject, const Status& error, const char* right) {
    const std::string need =
        is_denied(error) ? std::string("; the role needs ") + right + " here" : "";
    return bad(subject, error.message() + need);
  }

  std::string key(const std::string& name) {
    keys_.push_back(folder_ + name);
    return keys_.back();
  }

  bool create() {
    std::vector<double> took;
    for (uint32_t i = 0; i < kTimedCreations; ++i) {
      const auto begin = SteadyClock::now();
      const auto created = store_.create(key("new-" + std::to_string(i)), "first");
      took.push_back(seconds_since(begin));
      // It may be there where no answer said so.
      has_written_ = has_written_ || created.status().code() != Code::kRefused;
      if (!created.is_ok()) return bad("create", created.status(), "s3:PutObject");
      if (*created == Creation::kDone) continue;
      // The answer to an attempt before may have been lost. Nobody else knows this folder.
      const auto bytes = store_.get(keys_.back(), kSmallBytes);
      if (!bytes.is_ok()) return bad("create", bytes.status(), "s3:GetObject");
      if (*bytes != "first")
        return bad("create", "a key that nobody has made, " + keys_.back() +
                                 ", is there; the store cannot be relied on");
    }
    std::ranges::sort(took);
    return good("create", "a small object is written in " +
                              rate_text(1'000 * took[took.size() / 2]) + " ms (median of " +
                              std::to_string(kTimedCreations) + ")");
  }

  // All safety rests on this promise.
  bool condition() {
    const auto again = store_.create(keys_.front(), "second");
    if (!again.is_ok()) return bad("condition", again.status(), "s3:PutObject");
    const auto bytes = store_.get(keys_.front(), kSmallBytes);
    if (!bytes.is_ok()) return bad("condition", bytes.status(), "s3:GetObject");
    if (*again == Creation::kDone || *bytes != "first")
      return bad("condition",
                 store_.place() +
                     " overwrites what it was asked only to create (If-None-Match): two "
                     "coordinators could not be told apart there; use another store, or a shared "
                     "directory");
    return good("condition", "a key that is there is not created again");
  }

  bool race() {
    const std::string name = key("race");
    std::vector<Result<Creation>> results(options_.racers, Creation::kWasThere);
    std::vector<std::thread> racers;
    {
      const BlockedSignals inherited;
      for (uint32_t i = 0; i < options_.racers; ++i)
        racers.emplace_back([&, i] { results[i] = store_.create(name, std::to_string(i)); });
    }
    for (std::thread& racer : racers) racer.join();
    uint32_t winner = 0;
    uint32_t winners = 0;
    for (uint32_t i = 0; i < options_.racers; ++i) {
      if (!results[i].is_ok()) return bad("race", results[i].status(), "s3:PutObject");
      if (*results[i] != Creation::kDone) continue;
      winner = i;
      ++winners;
    }
    const auto bytes = store_.get(name, kSmallBytes);
    if (!bytes.is_ok()) return bad("race", bytes.status(), "s3:GetObject");
    const std::string count = std::to_string(options_.racers);
    if (winners > 1)
      return bad("race", std::to_string(winners) + " of " + count +
                             " that created one key at once were told that they made it; two "
                             "coordinators could not be told apart there; use another store");
    if (!*bytes)
      return bad("race", "of " + count + " that created one key at once, " +
                             std::to_string(winners) +
                             " were told that they did, and it is not there; use another store");
    if (winners == 1 && *bytes != std::to_string(winner))
      return bad("race", "the key that one of " + count +
                             " created has the bytes of another; use another store");
    return good("race", "of " + count + " that create one key at once, one does");
  }

  bool read() {
    const auto none = store_.get(folder_ + "never", kSmallBytes);
    if (is_denied(none.status()))
      return bad("read", "an object that is not there looks forbidden: " + none.status().message() +
                             "; the role needs s3:ListBucket on the bucket, too");
    if (!none.is_ok()) return bad("read", none.status(), "s3:GetObject");
    if (*none) return bad("read", "an object that was never written has bytes; use another store");
    const std::string name = key("read");
    if (Status put = store_.put(name, "0123456789"); !put.is_ok())
      return bad("read", put, "s3:PutObject");
    if (Status put = store_.put(name, "abcdefghij"); !put.is_ok())
      return bad("read", put, "s3:PutObject");
    std::string part(4, '\0');
    const Status read =
        store_.read(name, 3, std::span(reinterpret_cast<uint8_t*>(part.data()), part.size()));
    if (!read.is_ok()) return bad("read", read, "s3:GetObject");
    if (part == "defg") return good("read", "what was written last is read at once, also in parts");
    if (part != "3456")
      return bad("read", "bytes that were read are not what was written; use another store");
    warn("read", "an object that was overwritten is still read as it was; a run allows for that");
    return true;
  }

  void list() {
    const auto listed = store_.list(folder_);
    if (!listed.is_ok()) {
      bad("list", listed.status(), "s3:ListBucket");
      return;
    }
    if (listed->size() < keys_.size()) {
      warn("list", "the list lacks " + std::to_string(keys_.size() - listed->size()) + " of " +
                       std::to_string(keys_.size()) +
                       " objects that are there; a run allows for that");
      return;
    }
    good("list", "the list has what was written");
  }

  bool upload() {
    const std::string name = key("upload");
    const auto id = store_.begin(name);
    if (!id.is_ok()) return bad("upload", id.status(), "s3:PutObject");
    uploads_.push_back({name, *id});
    std::string big(options_.part_bytes, '\0');
    std::iota(big.begin(), big.end(), '\0');
    const auto begin = SteadyClock::now();
    const auto first = store_.put_part(name, *id, 1, big);
    const double took = seconds_since(begin);
    if (!first.is_ok()) return bad("upload", first.status(), "s3:PutObject");
    const auto second = store_.put_part(name, *id, 2, "end");
    if (!second.is_ok()) return bad("upload", second.status(), "s3:PutObject");
    const auto parts = store_.parts(name, *id);
    if (!parts.is_ok()) return bad("upload", parts.status(), "s3:ListMultipartUploadParts");
    if (parts->size() != 2)
      return bad("upload", "the store names " + std::to_string(parts->size()) +
                               " parts of an upload that has 2; use another store");
    if (Status done = store_.complete(name, *id, {*first, *second}); !done.is_ok())
      return bad("upload", done, "s3:PutObject");
    uploads_.clear();
    const Status same = compare(name, big + "end");
    if (!same.is_ok()) return bad("upload", same, "s3:GetObject");
    return good("upload", "a part of " + rate_text(static_cast<double>(big.size()) / 1e6) +
                              " MB goes up at " +
                              rate_text(static_cast<double>(big.size()) / 1e6 / took) +
                              " MB/s by one connection");
  }

  Status compare(const std::string& name, const std::string& wanted) {
    std::vector<uint8_t> chunk;
    for (uint64_t at = 0; at < wanted.size(); at += chunk.size()) {
      chunk.resize(std::min<uint64_t>(kChunkBytes, wanted.size() - at));
      LOCKSTEP_RETURN_IF_ERROR(store_.read(name, at, chunk));
      if (std::equal(chunk.begin(), chunk.end(), wanted.begin() + static_cast<int64_t>(at),
                     [](uint8_t a, char b) { return a == static_cast<uint8_t>(b); }))
        continue;
      return {Code::kBadData, "bytes of an upload are not what was sent; use another store"};
    }
    return Status::ok();
  }

  void abandon() {
    const std::string name = key("abandoned");
    const auto id = store_.begin(name);
    if (!id.is_ok()) {
      bad("abandon", id.status(), "s3:PutObject");
      return;
    }
    uploads_.push_back({name, *id});
    const auto part = store_.put_part(name, *id, 1, "left");
    if (!part.is_ok()) {
      bad("abandon", part.status(), "s3:PutObject");
      return;
    }
    const auto open = store_.uploads(folder_);
    if (!open.is_ok()) {
      bad("abandon", open.status(), "s3:ListBucketMultipartUploads");
      return;
    }
    if (Status gone = store_.abandon(name, *id); !gone.is_ok()) {
      bad("abandon", gone, "s3:AbortMultipartUpload");
      return;
    }
    uploads_.clear();
    if (open->empty()) {
      warn("abandon",
           "the store does not list the uploads below a prefix, so a run could not find "
           "those of a killed host; give the bucket the lifecycle rule");
      return;
    }
    const auto left = store_.uploads(folder_);
    if (!left.is_ok()) {
      bad("abandon", left.status(), "s3:ListBucketMultipartUploads");
    } else if (left->empty()) {
      good("abandon", "an upload that is given up is gone");
    } else {
      warn("abandon",
           "an upload that was given up is still listed; give the bucket the lifecycle "
           "rule");
    }
  }

  void remove() {
    if (!has_written_) return;
    for (const auto& [name, id] : uploads_) (void)store_.abandon(name, id);
    // An upload whose beginning was answered to nobody is only here.
    if (const auto open = store_.uploads(folder_); open.is_ok())
      for (const Upload& upload : *open) (void)store_.abandon(upload.key, upload.id);
    for (const std::string& name : keys_) {
      const Status gone = store_.remove(name);
      if (gone.is_ok()) continue;
      if (is_good_) {
        bad("remove", gone, "s3:DeleteObject");
      } else {
        warn("remove",
             "remove what is left below " + store_.place() + "/" + folder_ + ": " + gone.message());
      }
      return;
    }
    if (!is_good_) return;
    const auto left = store_.get(keys_.front(), kSmallBytes);
    if (!left.is_ok()) {
      bad("remove", left.status(), "s3:GetObject");
    } else if (*left) {
      warn("remove", "an object that was removed is still read; a run allows for that");
    } else {
      good("remove", "what is removed is gone; the check leaves nothing");
    }
  }

  BlobStore& store_;
  const StoreCheckOptions options_;
  const std::function<void(const StoreFinding&)>& tell_;
  const std::string folder_;
  std::vector<std::string> keys_;  // that may be there
  std::vector<Upload> uploads_;    // that may be open
  bool has_written_ = false;
  bool is_good_ = true;
};

}  // namespace

const char* text_of(StoreFinding::Grade grade) {
  switch (grade) {
    case Grade::kGood:
      return "good";
    case Grade::kWarning:
      return "warning";
    case Grade::kBad:
      return "bad";
  }
  return "bad";
}

bool check_store(BlobStore& store, const StoreCheckOptions& options,
                 const std::function<void(const StoreFinding&)>& tell) {
  return Check(store, options, tell).run();
}

}  // namespace lockstep::store
