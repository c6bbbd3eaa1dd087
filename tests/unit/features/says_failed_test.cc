// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/features/says_failed.h"

#include <gtest/gtest.h>

#include "detectors/model/ascii.h"

namespace rankscope::features {
namespace {

class Failing : public ::testing::TestWithParam<const char*> {};
class Harmless : public ::testing::TestWithParam<const char*> {};

bool Says(std::string_view text) {
  const std::string lower = LowerAscii(text);
  return SaysFailed(text, lower) || EndsAbruptly(text, lower);
}

TEST_P(Failing, IsRead) {
  EXPECT_TRUE(Says(GetParam()));
}

TEST_P(Harmless, IsNot) {
  EXPECT_FALSE(Says(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(
    Lines, Failing,
    ::testing::Values(
        "srun: error: Unable to confirm allocation for job 77: Invalid job id",
        "User defined signal 1", "CPU time limit exceeded (core dumped)", "Alarm clock", "^C",
        "Aborted!", " 41%|####      | 41/100 [00:10<00:14]^C",
        "go.sh: Zeile 12: 4077 Abgebrochen             python fit.py",
        "/var/spool/slurm/job00077/slurm_script : ligne 3 :  4077 Processus tu\xc3\xa9"
        "      python fit.py",
        "go.sh: 3 \xe8\xa1\x8c: 4077 \xe5\xb7\xb2\xe6\x9d\x80\xe6\xad\xbb            "
        "    python fit.py",
        "fit-1 exited with code 137", "worker 3: exit status 9",
        "3.1s: job.exception type=timeout severity=0 resource allocation expired",
        "The InfiniBand retry count between two MPI processes has been exceeded.",
        "cluster 'c1' is preempted, relaunching", "fit.sh: error: no such option"));

INSTANTIATE_TEST_SUITE_P(
    Lines, Harmless,
    ::testing::Values("step 120: loss 0.41", "test error: 0.0413", "mean squared error: 12",
                      "epoch 3: validation error: nan", "Patience exceeded, early stopping",
                      "fit-1 exited with code 0", "Exit code: 0",
                      "error: connection lost, will retry in 5 s",
                      "2026-03-02 10:11:12: 44 samples read", "node n3: rank 4: 512 tokens",
                      "eval: step 12: 4077 tokens per second", "0 errors",
                      "timing: forward 3: 88 ms", "Saved to /scratch/run/final.pt"));

}  // namespace
}  // namespace rankscope::features
