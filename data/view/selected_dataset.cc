#include "data/view/selected_dataset.h"

#include <charconv>
#include <utility>

#include "comm/base/check.h"
#include "comm/base/hash.h"
#include "comm/run/plan/epoch_order.h"
#include "data/dataset/content_hash.h"
#include "data/dataset/facts.h"
#include "data/view/selection.h"

namespace lockstep::data {
namespace {

// In the shortest form that reads back the same.
std::string text_of(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

// A split has a seed of its own, so that runs with other seeds compare on the same samples.
uint64_t key_of(const Dataset& whole, uint64_t seed) {
  const std::string& content =
      whole.documents() != nullptr ? whole.documents()->content() : whole.fingerprint();
  return name_key("selection of " + content + " by " + std::to_string(seed)).low;
}

std::string fingerprint_of(const Dataset& whole, const SelectionSpec& spec, SelectionPart part) {
  const bool is_kept = part == SelectionPart::kKept;
  const std::string text = "selection " + std::to_string(kSelectionVersion) +
                           (whole.documents() != nullptr ? " of documents" : "") +
                           (is_kept ? " kept " : " held out ") + whole.fingerprint() + " " +
                           text_of(spec.held_out) + (is_kept ? " " + text_of(spec.kept) : "") +
                           " seed " + std::to_string(spec.seed);
  return xxh3_hex(text.data(), text.size());
}

Status nothing_left(const Dataset& whole, const SelectionSpec& spec, SelectionPart part) {
  const WholeDocuments* documents = whole.documents();
  const std::string of =
      " of the " +
      (documents == nullptr ? std::to_string(whole.samples()) + " samples"
                            : std::to_string(documents->counts().documents) + " documents") +
      " of " + first_file(whole);
  // Documents may be few, and then only this helps.
  const std::string instead =
      documents == nullptr
          ? ""
          : " (a share takes whole documents; with data.documents: stream it takes parts)";
  if (part == SelectionPart::kHeldOut)
    return {Code::kUsage, "a share of " + text_of(spec.held_out) + of +
                              " is less than one: none would be held out; take a larger "
                              "data.holdout" +
                              instead};
  if (spec.kept == 1)
    return {Code::kUsage, "holding out a share of " + text_of(spec.held_out) + of +
                              " leaves none to train on; take a smaller data.holdout" + instead};
  return {Code::kUsage, "a share of " + text_of(spec.kept) + of +
                            (spec.held_out > 0 ? ", without the held-out ones," : "") +
                            " is less than one; take a larger fraction" + instead};
}

Result<std::unique_ptr<Dataset>> select(const Dataset& whole, const SelectionSpec& spec,
                                        SelectionPart part) {
  const WholeDocuments* documents = whole.documents();
  const uint64_t all = documents == nullptr ? whole.samples() : documents->counts().documents;
  const Selection selection(all, spec.held_out, spec.kept, key_of(whole, spec.seed));
  const uint64_t size = selection.size(part);
  if (size == 0) return nothing_left(whole, spec, part);
  std::string fingerprint = fingerprint_of(whole, spec, part);
  if (documents != nullptr) {
    std::vector<bool> chosen(all);
    for (uint64_t i = 0; i < size; ++i) chosen[selection.at(part, i)] = true;
    return documents->part(chosen, std::move(fingerprint));
  }
  LOCKSTEP_CHECK(!whole.is<Sequences>(), "a sample lies in a file or is of documents");
  DatasetFacts facts = whole.facts();
  facts.samples = size;
  facts.fingerprint = std::move(fingerprint);
  return whole.view(std::move(facts),
                    [selection, part](uint64_t i) { return selection.at(part, i); });
}

}  // namespace

Result<std::unique_ptr<Dataset>> select_kept(std::unique_ptr<Dataset> whole,
                                             const SelectionSpec& spec) {
  if (spec.takes_all()) return whole;
  return select(*whole, spec, SelectionPart::kKept);
}

Result<TwoParts> split(std::unique_ptr<Dataset> whole, const SelectionSpec& spec) {
  TwoParts parts;
  LOCKSTEP_ASSIGN_OR_RETURN(parts.held_out, select(*whole, spec, SelectionPart::kHeldOut));
  LOCKSTEP_ASSIGN_OR_RETURN(parts.kept, select(*whole, spec, SelectionPart::kKept));
  return parts;
}

}  // namespace lockstep::data
