// metrics/METRICS.md against what the three exporters export, in both directions.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <vector>

#include "tests/unit/metrics/exporters.h"
#include "tests/unit/metrics/exposition.h"
#include "tests/unit/metrics/fake_gpus.h"

namespace lockstep::test {
namespace {

struct Row {
  std::string type, unit, labels, on, meaning;
};

std::string trim(const std::string& text) {
  const size_t begin = text.find_first_not_of(" `");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" `") - begin + 1);
}

// Rows "| `lockstep_x` | type | unit | labels | on | meaning |".
std::map<std::string, Row> documented() {
  std::ifstream in(METRICS_MD);
  std::map<std::string, Row> rows;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("| `lockstep_", 0) != 0) continue;
    std::vector<std::string> cells;
    std::istringstream rest(line.substr(1));
    for (std::string cell; std::getline(rest, cell, '|');) cells.push_back(trim(cell));
    if (cells.size() != 6) throw std::runtime_error("not six cells: " + line);
    rows[cells[0]] = {cells[1], cells[2], cells[3], cells[4], cells[5]};
  }
  return rows;
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

std::string unit_of(const std::string& name) {
  for (const char* unit : {"seconds", "bytes", "ratio", "watts", "celsius", "hertz"}) {
    for (const char* end : {"", "_total"}) {
      if (name.ends_with(std::string("_") + unit + end)) return unit;
    }
  }
  return "";
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
  agent.tls().expires_in(3'600);

  std::map<std::string, Row> rows;
  const auto add = [&rows](const std::string& text, const std::set<std::string>& constant,
                           const std::string& on) {
    for (const auto& [name, family] : parse_exposition(text)) {
      Row row = {family.type, "", own_labels(family, constant), on, family.help};
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

TEST(MetricsMd, ListsExactlyWhatIsExported) {
  const std::map<std::string, Row> rows = documented();
  const std::map<std::string, Row> families = exported();
  EXPECT_FALSE(rows.empty()) << METRICS_MD;
  for (const auto& [name, row] : rows) {
    EXPECT_TRUE(families.contains(name)) << name << " is documented, but nobody exports it";
  }
  for (const auto& [name, family] : families) {
    if (!rows.contains(name)) {
      ADD_FAILURE() << name << " is exported, but not documented. A row for it:\n| `" << name
                    << "` | " << family.type << " | " << unit_of(name) << " | " << family.labels
                    << " | " << family.on << " | " << family.meaning << " |";
      continue;
    }
    const Row& row = rows.at(name);
    EXPECT_EQ(row.type, family.type) << name;
    EXPECT_EQ(row.labels, family.labels) << name;
    EXPECT_EQ(row.on, family.on) << name;
    EXPECT_EQ(row.meaning, family.meaning) << name;
  }
}

TEST(MetricsMd, NamesCarryTheirUnits) {
  for (const auto& [name, row] : documented()) {
    EXPECT_FALSE(row.unit.empty()) << name;
    EXPECT_TRUE(unit_of(name).empty() || row.unit == unit_of(name)) << name;
    EXPECT_EQ(name.ends_with("_total"), row.type == "counter") << name;
  }
}

}  // namespace
}  // namespace lockstep::test
