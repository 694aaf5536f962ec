// Tests machines that share a name and processes that share a pid.
#include <gmock/gmock.h>

#include "tests/unit/coordinator/world.h"

namespace lockstep::coordinator {
namespace {

constexpr ConnectionId kAgents[] = {50, 51};

// Worker 0 of its machine, whose processes have the same pids as the other machine's.
wire::Register worker_on(const std::string& machine, uint64_t process) {
  wire::Register m = World::registration(0);
  m.set_machine(machine);
  m.set_process(process);
  return m;
}

Reason hello_of(World& w, ConnectionId agent, const std::string& machine, uint64_t process) {
  wire::Envelope e;
  wire::AgentHello& hello = *e.mutable_agent_hello();
  hello.set_node("n");
  hello.set_machine(machine);
  hello.set_workers(1);
  hello.add_living(1000);
  hello.add_living_process(process);
  return w.say(agent, e);
}

// Two containers with one host name, one worker each, up to the start.
World two_containers() {
  World w(small_options(2, 100));
  hello_of(w, kAgents[0], "boot/1", 7);
  hello_of(w, kAgents[1], "boot/2", 8);
  w.join(1, worker_on("boot/1", 7));
  w.join(2, worker_on("boot/2", 8));
  EXPECT_EQ(w.promise(1), Reason::kPromised);
  EXPECT_EQ(w.promise(2), Reason::kStarted);
  return w;
}

TEST(SameName, TheWorkersOfTwoContainersAreTwoMembersAndSomebodyIsTold) {
  World w = two_containers();
  ASSERT_EQ(w.state.members.size(), 2u);
  EXPECT_EQ(w.state.members.at(1).node, "n");
  EXPECT_EQ(w.state.members.at(2).node, "n~2");
  EXPECT_TRUE(w.is_durable("same_node_name"));
}

TEST(SameName, ADeathInOneContainerIsNotOneInTheOther) {
  World w = two_containers();
  wire::Envelope e;
  e.mutable_worker_exit()->set_pid(1000);
  e.mutable_worker_exit()->set_process(8);
  e.mutable_worker_exit()->set_exit_code(-1);
  e.mutable_worker_exit()->set_signal(9);
  w.say(kAgents[1], e);
  EXPECT_NE(w.state.members.at(1).state, MemberState::kDead);
  EXPECT_EQ(w.state.members.at(2).state, MemberState::kDead);
}

TEST(SameName, WhoComesBackHasItsNameAgainWhateverTheOrder) {
  World w = two_containers();
  for (const ConnectionId agent : kAgents) w.happen(ConnectionClosed{agent, "reset"});
  w.now_ms += w.options.lease_ms + 1;
  hello_of(w, kAgents[1], "boot/2", 8);
  hello_of(w, kAgents[0], "boot/1", 7);
  EXPECT_EQ(w.state.agents.at(kAgents[0]).node, "n");
  EXPECT_EQ(w.state.agents.at(kAgents[1]).node, "n~2");
  for (const MemberId id : {1, 2})
    EXPECT_EQ(w.state.members.at(id).state, MemberState::kTraining) << id;
}

TEST(SameName, AnotherCoordinatorKeepsTheNames) {
  World w = two_containers();
  Beginning next = first_term();
  for (const JournalEntry& entry : {JournalEntry(SettingEntry{"node n", "boot/1"}),
                                    JournalEntry(SettingEntry{"node n~2", "boot/2"})}) {
    const auto& setting = std::get<SettingEntry>(entry);
    const auto contents = w.journal.load();
    ASSERT_TRUE(contents.is_ok());
    EXPECT_EQ(contents->settings.at(setting.key), setting.value);
    next.settings[setting.key] = setting.value;
  }
  World again(small_options(2, 100), next);
  hello_of(again, kAgents[1], "boot/2", 8);
  EXPECT_EQ(again.state.agents.at(kAgents[1]).node, "n~2");
}

TEST(SameName, AContainerThatWasMadeAgainHasTheNameOfTheOneThatIsGone) {
  World w = two_containers();
  w.now_ms += w.options.lease_ms + 1;
  w.happen(ConnectionClosed{kAgents[0], "reset"});
  w.happen(ConnectionClosed{1, "reset"});
  hello_of(w, kAgents[0], "boot/3", 9);
  EXPECT_EQ(w.state.agents.at(kAgents[0]).node, "n");
  EXPECT_EQ(w.state.members.at(1).state, MemberState::kDead) << "another process has its pid";
}

TEST(SamePid, ANewProcessDoesNotTakeThePlaceOfTheOldOne) {
  World w = two_containers();
  w.happen(ConnectionClosed{1, "reset"});
  w.join(3, worker_on("boot/1", 99));
  EXPECT_EQ(w.state.members.at(1).state, MemberState::kDead);
  ASSERT_EQ(w.state.by_connection.count(3), 1u);
  EXPECT_EQ(w.state.by_connection.at(3), 3u) << "a member of its own";
}

TEST(SamePid, AnExitThatIsToldLateIsNotThatOfTheNewProcess) {
  World w = two_containers();
  w.happen(ConnectionClosed{1, "reset"});
  w.join(3, worker_on("boot/1", 99));
  wire::Envelope e;
  e.mutable_worker_exit()->set_pid(1000);
  e.mutable_worker_exit()->set_process(7);
  e.mutable_worker_exit()->set_exit_code(-1);
  e.mutable_worker_exit()->set_signal(9);
  w.say(kAgents[0], e);
  EXPECT_TRUE(w.state.members.at(1).has_exited);
  EXPECT_NE(w.state.members.at(3).state, MemberState::kDead);
}

}  // namespace
}  // namespace lockstep::coordinator
