// Returns an engine's boundary state. Fails the test, and returns nothing, if the engine gives
// none.
#pragma once

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "worker/engine/engine.h"

namespace lockstep::testing {

inline std::vector<StateTensor> state_of(Engine& engine) {
  auto state = engine.state();
  EXPECT_TRUE(state.is_ok()) << state.status().message();
  return state.is_ok() ? std::move(*state) : std::vector<StateTensor>();
}

}  // namespace lockstep::testing
