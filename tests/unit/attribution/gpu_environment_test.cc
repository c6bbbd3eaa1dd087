// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/attribution/gpu_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "detectors/attribution/environment_keys.h"

namespace rankscope::attribution {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

using Environment = std::vector<KeyValue>;

constexpr char kFirst[] = "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6";
constexpr char kSecond[] = "GPU-1f22a253-c329-dfb7-0db4-e005efb6a4c7";

std::vector<std::string> Names(const std::vector<GpuName>& cards) {
  std::vector<std::string> names;
  for (const GpuName& card : cards)
    names.push_back(card.uuid.empty() ? std::to_string(card.index) : card.uuid);
  return names;
}

std::vector<std::string> Given(const Environment& environment, bool contained = false) {
  return Names(ReadGpuEnvironment(environment, contained).given);
}

std::vector<std::string> Own(const Environment& environment, bool contained = false) {
  return Names(ReadGpuEnvironment(environment, contained).own);
}

TEST(GpuEnvironment, OrdinalsAreTheNodesWhereNobodyCountsAnew) {
  EXPECT_THAT(Own({{"CUDA_VISIBLE_DEVICES", "2,3"}}), ElementsAre("2", "3"));
  EXPECT_THAT(Own({{"CUDA_VISIBLE_DEVICES", "2, 3"}, {"LOCAL_RANK", "1"}}), ElementsAre("3"));
  EXPECT_THAT(Own({{"CUDA_VISIBLE_DEVICES", "5"}, {"LOCAL_RANK", "3"}}), ElementsAre("5"))
      << "each rank sees its own only";
  EXPECT_THAT(Own({{"CUDA_VISIBLE_DEVICES", "0,1"}, {"LOCAL_RANK", "2"}}), IsEmpty());
  EXPECT_THAT(Given({{"CUDA_VISIBLE_DEVICES", "2,3"}}), IsEmpty()) << "to see is not to have";
  EXPECT_EQ(ReadGpuEnvironment({{"CUDA_VISIBLE_DEVICES", "2"}}, false).own_by, GpuWord::kOrdinal);

  EXPECT_THAT(Own({{"CUDA_VISIBLE_DEVICES", "2"}}, true), IsEmpty()) << "a container's";
  EXPECT_THAT(Own({{"CUDA_VISIBLE_DEVICES", "0"}, {"NVIDIA_VISIBLE_DEVICES", "3"}}), IsEmpty());
  EXPECT_THAT(Own({{"CUDA_VISIBLE_DEVICES", "1"}, {"NVIDIA_VISIBLE_DEVICES", "all"}}),
              ElementsAre("1"));
}

// Two tasks with a card each, under ConstrainDevices: both see 0.
TEST(GpuEnvironment, SlurmsCgroupCountsAnew) {
  const Environment task = {
      {"SLURM_JOB_ID", "8841"},   {"SLURM_JOB_NUM_NODES", "1"},  {"SLURM_JOB_GPUS", "2,3"},
      {"SLURM_STEP_GPUS", "2,3"}, {"CUDA_VISIBLE_DEVICES", "0"}, {"GPU_DEVICE_ORDINAL", "0"},
      {"LOCAL_RANK", "1"}};
  EXPECT_THAT(Given(task), ElementsAre("2", "3"));
  EXPECT_THAT(Own(task), IsEmpty());
  EXPECT_EQ(ReadGpuEnvironment(task, false).given_by, GpuWord::kSlurm);

  // Without it Slurm writes the same numbers everywhere.
  const Environment whole = {{"SLURM_JOB_ID", "8841"},        {"SLURM_NNODES", "1"},
                             {"SLURM_JOB_GPUS", "2,3"},       {"GPU_DEVICE_ORDINAL", "2,3"},
                             {"CUDA_VISIBLE_DEVICES", "2,3"}, {"LOCAL_RANK", "1"}};
  EXPECT_THAT(Own(whole), ElementsAre("3"));
  // And where those are 0 and 1 as well, nobody can tell.
  EXPECT_THAT(Own({{"SLURM_JOB_ID", "8841"},
                   {"SLURM_NNODES", "1"},
                   {"SLURM_JOB_GPUS", "0,1"},
                   {"GPU_DEVICE_ORDINAL", "0,1"},
                   {"CUDA_VISIBLE_DEVICES", "1"}}),
              IsEmpty());
}

TEST(GpuEnvironment, AJobsListIsOfTheNodeThatRunsItsScript) {
  Environment task = {{"SLURM_JOB_ID", "8841"},
                      {"SLURM_JOB_NUM_NODES", "2"},
                      {"SLURM_JOB_GPUS", "0-3"},
                      {"SLURM_NODEID", "0"}};
  EXPECT_THAT(Given(task), ElementsAre("0", "1", "2", "3"));
  task.back().value = "1";
  EXPECT_THAT(Given(task), IsEmpty()) << "srun brought it here";
  task.push_back({"SLURM_STEP_GPUS", "4,5"});
  EXPECT_THAT(Given(task), ElementsAre("4", "5")) << "a step's is each node's own";
  task = {{"SLURM_JOB_ID", "8841"},         {"SLURM_JOB_NUM_NODES", "3"},
          {"SLURM_JOB_GPUS", "0"},          {"SLURM_NODEID", "0"},
          {"SLURM_JOB_NODELIST", "n[1-3]"}, {"SLURM_STEP_NODELIST", "n[2-3]"}};
  EXPECT_THAT(Given(task), IsEmpty()) << "the first node of the step is not the job's";
}

TEST(GpuEnvironment, UuidsAreBelievedEverywhere) {
  const Environment constrained = {{"SLURM_JOB_ID", "8841"},
                                   {"CUDA_VISIBLE_DEVICES", std::string(kFirst) + "," + kSecond},
                                   {"LOCAL_RANK", "1"}};
  EXPECT_THAT(Own(constrained, true), ElementsAre(kSecond));
  EXPECT_EQ(ReadGpuEnvironment(constrained, true).own_by, GpuWord::kUuid);
  EXPECT_THAT(Own({{"CUDA_VISIBLE_DEVICES", "GPU-8932f937"}}), ElementsAre("GPU-8932f937"));
  EXPECT_THAT(Own({{"CUDA_VISIBLE_DEVICES", "GPU-89"}}), IsEmpty()) << "of several cards";
  const Environment pod = {{"NVIDIA_VISIBLE_DEVICES", kFirst}};
  EXPECT_THAT(Given(pod, true), ElementsAre(kFirst));
  EXPECT_EQ(ReadGpuEnvironment(pod, true).given_by, GpuWord::kContainer);
  for (const char* word : {"all", "none", "void", "", "/var/run/nvidia-container-devices"})
    EXPECT_THAT(Given({{"NVIDIA_VISIBLE_DEVICES", word}}), IsEmpty()) << word;

  EXPECT_TRUE(IsNamed({"GPU-8932f937", -1, -1}, kFirst, 5, 2));
  EXPECT_FALSE(IsNamed({"GPU-8932f937", -1, -1}, kSecond, 5, 2));
  EXPECT_TRUE(IsNamed({"", 5, -1}, kSecond, 5, 2));
  EXPECT_FALSE(IsNamed({"", -1, -1}, kSecond, -1, -1));
  EXPECT_TRUE(IsNamed({"", -1, 2}, kSecond, 5, 2));
  EXPECT_FALSE(IsNamed({"", -1, 2}, kSecond, 2, -1));
}

std::vector<int32_t> Minors(const std::vector<GpuName>& cards) {
  std::vector<int32_t> minors;
  for (const GpuName& card : cards) minors.push_back(card.minor);
  return minors;
}

// What may be opened tells of which cards the ordinals are counted.
TEST(GpuEnvironment, TheDeviceCgroupSaysWhatOrdinalsMean) {
  const auto read = [](const Environment& environment, const std::vector<int32_t>& allowed) {
    return ReadGpuEnvironment(environment, true, allowed);
  };
  const GpuEnvironment task = read({{"SLURM_JOB_ID", "8841"}, {"CUDA_VISIBLE_DEVICES", "0"}}, {6});
  EXPECT_THAT(Minors(task.given), ElementsAre(6));
  EXPECT_EQ(task.given_by, GpuWord::kDevices);
  EXPECT_THAT(Minors(task.own), ElementsAre(6));
  EXPECT_EQ(task.own_by, GpuWord::kDevices);
  // A launcher's four cards, and its third rank.
  EXPECT_THAT(
      Minors(read({{"CUDA_VISIBLE_DEVICES", "0,1,2,3"}, {"LOCAL_RANK", "2"}}, {2, 3, 6, 7}).own),
      ElementsAre(6));
  EXPECT_THAT(
      Minors(read({{"CUDA_VISIBLE_DEVICES", "3,0"}, {"LOCAL_RANK", "0"}}, {2, 3, 6, 7}).own),
      ElementsAre(7));
  EXPECT_THAT(Minors(read({{"LOCAL_RANK", "1"}}, {2, 3}).own), ElementsAre(3))
      << "sees all of them";
  EXPECT_THAT(read({{"CUDA_VISIBLE_DEVICES", "2"}}, {2, 3}).own, IsEmpty()) << "there is no third";
  EXPECT_TRUE(read({{"CUDA_VISIBLE_DEVICES", ""}}, {2, 3}).none);
  // A uuid is one card everywhere; Slurm's list gives way to what is enforced.
  const GpuEnvironment named =
      read({{"CUDA_VISIBLE_DEVICES", kFirst}, {"SLURM_STEP_GPUS", "0,1"}}, {4});
  EXPECT_THAT(Names(named.own), ElementsAre(kFirst));
  EXPECT_THAT(Minors(named.given), ElementsAre(4));
  EXPECT_THAT(read({}, {}).given, IsEmpty());
}

TEST(GpuEnvironment, NoneAndInstances) {
  for (const char* word : {"", "-1", "NoDevFiles", "-1,0"}) {
    const GpuEnvironment told = ReadGpuEnvironment({{"CUDA_VISIBLE_DEVICES", word}}, false);
    EXPECT_TRUE(told.none) << word;
    EXPECT_THAT(told.own, IsEmpty()) << word;
  }
  EXPECT_FALSE(ReadGpuEnvironment({{"LOCAL_RANK", "0"}}, false).none) << "nobody tells";
  EXPECT_THAT(Own({{"CUDA_VISIBLE_DEVICES", "0,1,-1,2"}}), ElementsAre("0", "1"))
      << "CUDA reads no further";

  const GpuEnvironment now = ReadGpuEnvironment(
      {{"CUDA_VISIBLE_DEVICES", "MIG-5c6e1e30-1f2c-5a3e-8d6e-1c2b3a4d5e6f"}}, false);
  EXPECT_TRUE(now.mig);
  EXPECT_FALSE(now.none);
  EXPECT_THAT(now.own, IsEmpty());
  const GpuEnvironment old = ReadGpuEnvironment(
      {{"NVIDIA_VISIBLE_DEVICES", std::string("MIG-") + kFirst + "/1/0"}}, false);
  EXPECT_TRUE(old.mig);
  EXPECT_THAT(Names(old.given), ElementsAre(kFirst));
}

TEST(GpuEnvironment, HostileValues) {
  std::string many;
  for (int i = 0; i < 900; ++i) many += std::to_string(i) + ",";
  EXPECT_THAT(Own({{"CUDA_VISIBLE_DEVICES", many}}), SizeIs(kMaxGpusNamed));
  EXPECT_THAT(Own({{"CUDA_VISIBLE_DEVICES", std::string(kGpuListCap + 1, '1')}}), IsEmpty());
  EXPECT_THAT(Own({{"CUDA_VISIBLE_DEVICES", "0-2000000000"}}), IsEmpty());
  EXPECT_THAT(Own({{"CUDA_VISIBLE_DEVICES", "0-1000"}}), SizeIs(kMaxGpusNamed));
  EXPECT_THAT(Own({{"CUDA_VISIBLE_DEVICES", "1,1,1"}}), ElementsAre("1"));
  for (const char* text : {",", ",,", "-", "--1", "1-", "3-1", "99999999999", "GPU-", "MIG", "1e3",
                           "GPU-../../etc/passwd"}) {
    EXPECT_THAT(Own({{"CUDA_VISIBLE_DEVICES", text}}), IsEmpty()) << text;
    EXPECT_THAT(Given({{"SLURM_JOB_GPUS", text}, {"SLURM_NNODES", "1"}}), IsEmpty()) << text;
  }
  EXPECT_THAT(Given({{"SLURM_JOB_GPUS", "0,1,x"}, {"SLURM_NNODES", "1"}}), IsEmpty())
      << "half of a list is not the list";
}

TEST(GpuEnvironment, ItsKeysLeaveAProcess) {
  for (const char* key :
       {"SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "SLURM_JOB_NUM_NODES", "SLURM_NNODES", "SLURM_NODEID",
        "SLURM_JOB_NODELIST", "SLURM_STEP_NODELIST", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
        "NVIDIA_VISIBLE_DEVICES", "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_JOB_ID"})
    EXPECT_TRUE(IsAllowedEnvironmentKey(key)) << key;
}

}  // namespace
}  // namespace rankscope::attribution
