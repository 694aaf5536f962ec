// The table of metrics/METRICS.md is what the three exporters export.
//
//   LOCKSTEP_WRITE_PAGES=1 build/release/tests/test_metrics --gtest_filter='MetricsMd.*'   writes
//   it
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/unit/metrics/exporters.h"
#include "tests/unit/metrics/exposition.h"
#include "tests/unit/metrics/fake_gpus.h"

namespace lockstep::test {
namespace {

constexpr char kBegin[] = "<!-- metrics -->\n";
constexpr char kEnd[] = "<!-- /metrics -->\n";

struct Row {
  std::string type, labels, on, meaning;
};

// METRICS.md before its table, the table, and what follows it.
struct Page {
  std::string before, table, after;
};

Page page() {
  std::ifstream in(METRICS_MD);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const size_t begin = text.find(kBegin);
  const size_t end = text.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos)
    throw std::runtime_error(std::string("no marker of the table in ") + METRICS_MD);
  const size_t table = begin + sizeof(kBegin) - 1;
  return {text.substr(0, table), text.substr(table, end - table), text.substr(end)};
}

std::string join(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "–" : text;
}

// The labels that not every series of the exporter carries.
std::string own_labels(const ExposedFamily& family, const std::set<std::string>& constant) {
  std::set<std::string> own;
  for (const std::string& label : family.labels) {
    if (!constant.contains(label)) own.insert(label);
  }
  return join(own);
}

// The GPUs are there as soon as NVML has started; a busy machine may take longer than a scrape
// waits.
std::string expose_with_gpus(AgentMetrics& agent) {
  std::string text;
  for (int i = 0; i < 100 && text.find("lockstep_gpu_lost") == std::string::npos; ++i)
    text = agent.expose_text();
  return text;
}

std::map<std::string, Row> exported() {
  BusyWorker worker;
  everything_happens(worker);
  HandClock clock;
  CoordinatorMetrics coordinator("r1", build_info());
  everything_happens(coordinator);

  FakeGpus gpus;
  gpus.say(kBusyGpus);
  AgentMetrics agent({.run = "r1", .node = "n1", .run_dir = "/", .nvml_library = FAKE_NVML_LIBRARY},
                     build_info());
  agent.workers(2, 1);
  agent.verdicts({{"GPU-0", Fitness::kOk}});
  agent.tls().expires_in(3'600);

  std::map<std::string, Row> rows;
  const auto add = [&rows](const std::string& text, const std::set<std::string>& constant,
                           const std::string& on) {
    for (const auto& [name, family] : parse_exposition(text)) {
      Row row = {family.type, own_labels(family, constant), on, family.help};
      if (rows.contains(name)) {
        EXPECT_EQ(rows[name].meaning, row.meaning) << name << " means two things";
        row.on = "all";
      }
      rows[name] = row;
    }
  };
  add(worker.metrics.expose_text(), {"run", "node", "local_rank"}, "worker");
  add(coordinator.expose_text(), {"run"}, "coordinator");
  add(expose_with_gpus(agent), {"run", "node"}, "agent");
  return rows;
}

// By exporter, then by name.
std::string table_of(const std::map<std::string, Row>& rows) {
  std::string text = "| family | type | labels | on | meaning |\n|---|---|---|---|---|\n";
  for (const char* on : {"worker", "coordinator", "agent", "all"})
    for (const auto& [name, row] : rows)
      if (row.on == on)
        text += "| `" + name + "` | " + row.type + " | " + row.labels + " | " + row.on + " | " +
                row.meaning + " |\n";
  return text;
}

TEST(MetricsMd, ListsExactlyWhatIsExported) {
  const std::map<std::string, Row> rows = exported();
  ASSERT_GT(rows.size(), 100u);
  const std::string table = table_of(rows);
  const Page now = page();
  if (std::getenv("LOCKSTEP_WRITE_PAGES") != nullptr)
    std::ofstream(METRICS_MD) << now.before << table << now.after;
  EXPECT_EQ(page().table, table) << "the head of this file says how to write the table";
}

TEST(MetricsMd, NamesOfCountersSayWhatTheyAre) {
  for (const auto& [name, row] : exported()) {
    EXPECT_EQ(name.ends_with("_total"), row.type == "counter") << name;
    EXPECT_EQ(row.meaning.find('|'), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace lockstep::test
