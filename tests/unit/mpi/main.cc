// Runs all tests in all ranks at once; of the ranks after the first only failures are printed.
#include <gtest/gtest.h>

#include "comm/collectives/mpi/mpi_world.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  int threads = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &threads);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0) GTEST_FLAG_SET(brief, true);
  const int result = RUN_ALL_TESTS();
  MPI_Finalize();
  return result;
}
