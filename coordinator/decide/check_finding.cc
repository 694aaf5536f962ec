#include "coordinator/decide/check_finding.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

namespace lockstep::coordinator {
namespace {

using Values = std::map<MemberId, uint64_t>;
using Votes = std::map<uint64_t, size_t>;

constexpr std::array kSubjects = {CheckSubject::kWeights, CheckSubject::kGradient,
                                  CheckSubject::kSum};

Values values_of(const PendingCheck& check, CheckSubject subject) {
  Values values;
  for (const auto& [member, report] : check.reports) {
    switch (subject) {
      case CheckSubject::kWeights:
        values[member] = report.weights_hash();
        break;
      case CheckSubject::kGradient:
        if (report.has_gradient()) values[member] = report.gradient_hash();
        break;
      case CheckSubject::kSum:
        if (report.has_sum()) values[member] = report.sum_hash();
        break;
    }
  }
  return values;
}

std::string difference(const PendingCheck& check, CheckSubject subject, Step step) {
  const std::string at = std::to_string(step);
  for (const auto& [member, report] : check.reports) {
    if (subject == CheckSubject::kGradient && report.has_gradient()) {
      return "computed another gradient of slot " + std::to_string(report.slot()) + " in step " +
             at;
    }
    if (subject == CheckSubject::kSum && report.has_sum()) {
      return "added up another sum, of the slice of rank " + std::to_string(report.sum_rank()) +
             " in step " + at + ",";
    }
  }
  return "holds other weights after step " + at;
}

// The value that was said most; nothing on a tie.
std::optional<uint64_t> most_said(const Votes& votes) {
  const auto fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto most = std::max_element(votes.begin(), votes.end(), fewer);
  if (most == votes.end()) return std::nullopt;
  const bool is_tie = std::count_if(votes.begin(), votes.end(), [&](const auto& vote) {
                        return vote.second == most->second;
                      }) > 1;
  return is_tie ? std::nullopt : std::optional(most->first);
}

Votes count(const Values& values) {
  Votes votes;
  for (const auto& [member, value] : values) ++votes[value];
  return votes;
}

std::vector<WitnessEntry> of(const std::vector<WitnessEntry>& witnesses, Step step,
                             CheckSubject subject) {
  std::vector<WitnessEntry> found;
  for (const WitnessEntry& witness : witnesses) {
    if (witness.step == step && witness.subject == subject) found.push_back(witness);
  }
  return found;
}

// The witnesses with another value than `right`, if one of them has `right`.
std::vector<WitnessEntry> contradicting(std::vector<WitnessEntry> witnesses, uint64_t right) {
  const bool is_known = std::any_of(witnesses.begin(), witnesses.end(),
                                    [right](const auto& w) { return w.hash == right; });
  if (!is_known) return {};
  std::erase_if(witnesses, [right](const auto& w) { return w.hash == right; });
  return witnesses;
}

}  // namespace

std::vector<MemberId> CheckFinding::odd() const {
  std::vector<MemberId> members;
  for (const auto& [member, value] : values) {
    if (value != right && !(right && copies.contains(member))) members.push_back(member);
  }
  return members;
}

std::map<MemberId, uint64_t> CheckFinding::voices() const {
  Values voices = values;
  std::erase_if(voices, [this](const auto& e) { return copies.contains(e.first); });
  return voices;
}

bool CheckFinding::has_wrong_copy() const {
  return std::any_of(copies.begin(), copies.end(), [&](MemberId id) {
    const auto value = values.find(id);
    return value != values.end() && value->second != right;
  });
}

CheckFinding examine(const PendingCheck& check, Step step) {
  CheckFinding finding;
  for (const auto& [member, report] : check.reports) {
    if (!report.has_again() || report.again_hash() == report.gradient_hash()) continue;
    finding.is_alone = true;
    finding.subject = CheckSubject::kGradient;
    finding.values[member] = report.gradient_hash();
    finding.what = "computed slot " + std::to_string(report.slot()) + " of step " +
                   std::to_string(step) + " twice and got two gradients";
    return finding;
  }
  for (const CheckSubject subject : kSubjects) {
    Values values = values_of(check, subject);
    if (count(values).size() <= 1) continue;
    finding.subject = subject;
    finding.what = difference(check, subject, step);
    if (subject == CheckSubject::kWeights) finding.copies = check.copies;
    finding.values = std::move(values);
    const Values voices = finding.voices();
    const Votes votes = count(voices);
    const auto most = most_said(votes);
    if (most && votes.at(*most) > 1 && votes.at(*most) * 2 > voices.size()) {
      finding.right = most;
      finding.votes = votes.at(*most);
    }
    break;
  }
  return finding;
}

void ask_witnesses(const std::vector<WitnessEntry>& witnesses, Step step,
                   const std::map<MemberId, Place>& places, CheckFinding* finding) {
  const std::vector<WitnessEntry> then = of(witnesses, step, finding->subject);
  if (then.empty()) return;
  if (!finding->right) {
    // A place has one voice in each attempt.
    std::set<std::tuple<Generation, Place>> heard;
    Votes votes;
    for (const WitnessEntry& w : then) {
      if (heard.insert({w.generation, place_of(w)}).second) ++votes[w.hash];
    }
    for (const auto& [member, value] : finding->voices()) {
      if (heard.insert({Generation{0}, places.at(member)}).second) ++votes[value];
    }
    const auto most = most_said(votes);
    if (!most) return;  // each value once, or two as often
    finding->right = most;
    finding->votes = votes.at(*most);
    finding->by_witness = true;
  }
  finding->wrong_then = contradicting(then, *finding->right);
}

std::vector<WitnessEntry> refuted(const std::vector<WitnessEntry>& witnesses, Step step,
                                  const PendingCheck& check) {
  std::vector<WitnessEntry> found;
  for (const CheckSubject subject : kSubjects) {
    const Values now = values_of(check, subject);
    if (now.empty()) continue;
    const auto wrong = contradicting(of(witnesses, step, subject), now.begin()->second);
    found.insert(found.end(), wrong.begin(), wrong.end());
  }
  return found;
}

const char* other_result(CheckSubject subject) {
  switch (subject) {
    case CheckSubject::kWeights:
      return "other weights";
    case CheckSubject::kGradient:
      return "another gradient";
    case CheckSubject::kSum:
      return "another sum";
  }
  return "another result";
}

}  // namespace lockstep::coordinator
