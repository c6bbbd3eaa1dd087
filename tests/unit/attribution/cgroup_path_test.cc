// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "detectors/attribution/cgroup_path.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rankscope::attribution {
namespace {

const std::string kDigits = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const std::string kOther(64, 'b');
constexpr std::string_view kPod = "8f3d2c1b-0a9e-4d7c-b6a5-1234567890ab";

// kubelet with systemd's driver, which writes the dashes of a uid as underscores.
std::string PodSlice() {
  return "/kubepods.slice/kubepods-burstable.slice/"
         "kubepods-burstable-pod8f3d2c1b_0a9e_4d7c_b6a5_1234567890ab.slice";
}

struct Row {
  std::string text;
  std::string job, step;
  int32_t task = -1;
  int64_t uid = -1;
  std::string node = {}, container = {}, pod = {};
  CgroupLayout layout = CgroupLayout::kNone;
  bool slurm_process = false;
};

void Check(const Row& row) {
  const CgroupFacts facts = ReadCgroup(row.text);
  const std::string at = row.text.substr(0, 200);
  EXPECT_EQ(facts.job_id, row.job) << at;
  EXPECT_EQ(facts.step_id, row.step) << at;
  EXPECT_EQ(facts.task, row.task) << at;
  EXPECT_EQ(facts.uid, row.uid) << at;
  EXPECT_EQ(facts.node_name, row.node) << at;
  EXPECT_EQ(facts.container_id, row.container) << at;
  EXPECT_EQ(facts.pod_uid, row.pod) << at;
  EXPECT_EQ(NameOf(facts.layout), NameOf(row.layout)) << at;
  EXPECT_EQ(facts.slurm_process, row.slurm_process) << at;
}

constexpr CgroupLayout kV1 = CgroupLayout::kV1, kV2 = CgroupLayout::kV2;

TEST(CgroupPath, TheLayoutsOfSlurm) {
  const std::string scope = "0::/system.slice/slurmstepd.scope";
  const std::vector<Row> rows = {
      {scope + "/job_8841/step_0/user/task_3", "8841", "0", 3, -1, "", "", "", kV2},
      {scope + "/job_8841/step_batch/user/task_0", "8841", "batch", 0, -1, "", "", "", kV2},
      {scope + "/job_8841/step_interactive/user/task_0", "8841", "interactive", 0, -1, "", "", "",
       kV2},
      {scope + "/job_8841/step_extern/user/task_special", "8841", "extern", -1, -1, "", "", "",
       kV2},
      {scope + "/job_8841/step_0/slurm", "8841", "0", -1, -1, "", "", "", kV2, true},
      {scope + "/job_8841/step_1+2/user/task_1", "8841", "1+2", 1, -1, "", "", "", kV2},
      {scope + "/job_8841", "8841", "", -1, -1, "", "", "", kV2},
      {"0::/system.slice/n-1.a_slurmstepd.scope/job_5/step_0/user/task_1", "5", "0", 1, -1, "n-1.a",
       "", "", kV2},
      {"0::/slurmstepd.scope/job_5/step_0/user/task_1", "5", "0", 1, -1, "", "", "", kV2},
      {scope + "/system", "", ""},
      {scope + "/job_7312@s0A1B2C3D4E5FG/step_0/user/task_3", "7312", "0", 3, -1, "", "", "", kV2},
      {scope + "/job_7312@x/step_0/user/task_3", "", ""},
      {scope + "/s0A1B2C3D4E5FG/step_0/user/task_3", "", ""},
      {"9:memory:/slurm/uid_1000/job_211/step_4/task_7", "211", "4", 7, 1000, "", "", "", kV1},
      {"9:memory:/slurm_n2/uid_0/job_211/step_batch/task_0", "211", "batch", 0, 0, "n2", "", "",
       kV1},
      {"/slurm/uid_1000/job_211/step_4/task_7", "211", "4", 7, 1000, "", "", "", kV1},
      {"/slurm/uid_1000/job_4294967295/step_0", "4294967295", "0", -1, 1000, "", "", "", kV1},
      // A reader in a cgroup namespace of its own.
      {"0::/../../system.slice/slurmstepd.scope/job_6/step_0/user/task_0", "6", "0", 0, -1, "", "",
       "", kV2},
      // The event of an exec leaves out what stands above.
      {"/.../slurmstepd.scope/job_6/step_0/user/task_0", "6", "0", 0, -1, "", "", "", kV2},
  };
  for (const Row& row : rows) Check(row);
}

TEST(CgroupPath, HierarchiesThatStopAtDifferentDepths) {
  const std::string v1 =
      "12:pids:/user.slice\n"
      "9:freezer:/slurm/uid_7/job_12/step_0\n"
      "8:cpu,cpuacct:/slurm/uid_7/job_12/step_0/task_2\n"
      "1:name=systemd:/system.slice/slurmd.service\n";
  Check({v1, "12", "0", 2, 7, "", "", "", kV1});
  Check({v1 + "0::/system.slice/slurmd.service\n", "12", "0", 2, 7, "", "", "",
         CgroupLayout::kHybrid});
  Check({"5:misc:/\n0::/system.slice/slurmstepd.scope/job_3/step_0/user/task_0\n", "3", "0", 0, -1,
         "", "", "", CgroupLayout::kHybrid});
  Check({"3:cpu:/slurm/uid_7/job_12\n2:memory:/slurm/uid_7/job_13/step_0/task_1", "12", "", -1, 7,
         "", "", "", kV1});
}

TEST(CgroupPath, SlurmInAPodAndContainersInAJob) {
  const std::string nested = PodSlice() + "/cri-containerd-" + kDigits + ".scope";
  const std::string job = "/system.slice/slurmstepd.scope/job_77/step_0/user/task_5";
  const std::string pod(kPod);
  Check({"0::" + nested + job, "77", "0", 5, -1, "", kDigits, pod, kV2});
  Check({"0::" + nested + "/slurmstepd.scope/job_77/step_0/user/task_5", "77", "0", 5, -1, "",
         kDigits, pod, kV2});
  Check({"4:memory:/kubepods/burstable/pod" + pod + "/" + kDigits + "/slurm_w0/uid_0/job_9/step_1",
         "9", "1", -1, 0, "w0", kDigits, pod, kV1});
  Check({"0::" + nested + job + "/libpod-" + kOther + ".scope", "77", "0", 5, -1, "", kOther, pod,
         kV2});
  Check({"0::" + job + "/docker-" + kOther + ".scope", "77", "0", 5, -1, "", kOther, "", kV2});
  Check({"0::" + job + PodSlice() + "/crio-" + kOther + ".scope", "77", "0", 5, -1, "", kOther, pod,
         kV2});
  // Of two hierarchies one names the job, the other the container.
  Check({"9:memory:/slurm/uid_1/job_4/step_0/task_0\n1:name=systemd:/machine.slice/libpod-" +
             kOther + ".scope\n",
         "4", "0", 0, 1, "", kOther, "", kV1});
}

TEST(CgroupPath, ContainersByTheirRuntime) {
  const std::string d = kDigits;
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"/docker/" + d, d},
      {"/system.slice/docker-" + d + ".scope", d},
      {"/system.slice/nerdctl-" + d + ".scope", d},
      {"/machine.slice/libpod-" + d + ".scope/container", d},
      {"/libpod_parent/libpod-" + d, d},
      {"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + d + ".scope", d},
      {"/system.slice:containerd.service:cri-containerd:" + d, d},
      {"/lxc/trainer-1", "trainer-1"},
      {"/lxc.payload.trainer_1/system.slice", "trainer_1"},
      {"/lxc.payload/trainer.1/init.scope", "trainer.1"},
      // None: a monitor, too short, too long, no hexadecimal digits, capitals.
      {"/machine.slice/libpod-conmon-" + d + ".scope", ""},
      {"/docker/" + d.substr(1), ""},
      {"/docker/" + d + "0", ""},
      {"/docker/" + std::string(64, 'g'), ""},
      {"/docker/" + std::string(64, 'A'), ""},
      {"/system.slice/docker.service", ""},
      {"/lxc/" + std::string(200, 'a'), ""},
      {"/lxc/\xff\xfe", ""},
  };
  for (const auto& [path, id] : rows) EXPECT_EQ(ReadCgroup(path).container_id, id) << path;
  EXPECT_EQ(ReadCgroup("/kubepods/pod0123456789abcdef0123456789abcdef/" + d).pod_uid,
            "0123456789abcdef0123456789abcdef")
      << "a static pod";
  EXPECT_EQ(ReadCgroup("/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" +
                       std::string(kPod) + ".slice")
                .pod_uid,
            kPod);
  EXPECT_EQ(ReadCgroup("/user.slice/pod" + std::string(kPod)).pod_uid, "") << "no kubelet's";
  EXPECT_EQ(ReadCgroup("/kubepods/podium").pod_uid, "");
  EXPECT_EQ(ReadCgroup("/kubepods/pod8f3d2c1b-0a9e-4d7c-b6a5-1234567890aX").pod_uid, "");
}

TEST(CgroupPath, WhatOnlyLooksLikeAJob) {
  const std::string user = "/user.slice/user-1000.slice";
  for (const std::string& path : std::vector<std::string>{
           user + "/session-3.scope/job_12/step_0/task_0",
           user + "/user@1000.service/slurmstepd.scope/job_12/step_0/user/task_0",
           user + "/user@1000.service/app.slice/slurm/uid_0/job_12/step_0/task_0",
           "/job_12",
           "/slurm/job_12/step_0",
           "/slurm/uid_x/job_12",
           "/slurm/uid_1/job_",
           "/slurm/uid_1/job_-12",
           "/slurm/uid_1/job_12x",
           "/slurm/uid_1/job_0",
           "/slurm/uid_1/job_012",
           "/slurm/uid_1/job_4294967296",
           "/slurm/uid_1/job_99999999999999999999999999",
           "/slurm/uid_1/job_12/../job_13",
           "/slurm/uid_1/../uid_1/job_12/step_0",
           "/slurm/./uid_1/job_12",
           "/slurm//uid_1/job_12",
           "/myslurm/uid_1/job_12",
           "/slurmx/uid_1/job_12",
           "/xslurmstepd.scope/job_12",
           "/slurmstepd.scope2/job_12",
           "/slurmstepd.scope/job_12\n/x",
           "slurm/uid_1/job_12",
           std::string("/slurm/uid_1\0/job_12", 20),
           "/slurm_\xff/uid_1/job_12",
           "/" + std::string(1 << 20, 'a') + "/slurm/uid_1/job_12",
           "",
           "::::",
           "memory:/slurm/uid_1/job_12",
       }) {
    const bool second_line = path.find("\n/x") != path.npos;
    EXPECT_EQ(ReadCgroup(path).job_id, second_line ? "12" : "") << path.substr(0, 120);
  }
  const CgroupFacts odd = ReadCgroup("/slurm/uid_1/job_12/step_x/task_1");
  EXPECT_EQ(odd.job_id, "12");
  EXPECT_EQ(odd.step_id, "");
  EXPECT_EQ(odd.task, -1) << "of which step is not known";
  EXPECT_EQ(ReadCgroup("/slurm/uid_1/job_12/step_0/task_99999999999").task, -1);
  EXPECT_EQ(ReadCgroup("/slurm/uid_1/job_12/step_4294967296").step_id, "");
}

TEST(CgroupPath, BelowAJobTheOutermostIsBelieved) {
  const CgroupFacts facts = ReadCgroup(
      "0::/system.slice/slurmstepd.scope/job_5/step_0/user/task_0/slurmstepd.scope/job_6/step_1");
  EXPECT_EQ(facts.job_id, "5");
  EXPECT_EQ(facts.step_id, "0");
}

TEST(CgroupPath, WhatIsCarriedSaysTheSame) {
  const std::string rest =
      "12:pids:/user.slice\n9:freezer:/slurm/uid_7/job_12/step_0\n"
      "8:memory:/slurm/uid_7/job_12/step_0/task_2\n5:cpu:/slurm/uid_7/job_12/step_0/task_2\n"
      "1:name=systemd:/machine.slice/libpod-" +
      kDigits + ".scope\n";
  for (const std::string& text :
       std::vector<std::string>{rest, rest + "0::/init.scope\n",
                                "0::/system.slice/slurmstepd.scope/job_3/step_0/user/task_0\n",
                                "3:memory:/docker/" + kDigits + "\n2:cpu:/docker/" + kDigits +
                                    "\n0::/docker/" + kDigits + "\n"}) {
    const std::string carried = CarriedCgroup(text);
    EXPECT_EQ(ReadCgroup(carried), ReadCgroup(text)) << carried;
    EXPECT_LE(carried.size(), kCarriedCgroupCap);
    EXPECT_EQ(CarriedCgroup(carried), carried);
  }
  EXPECT_EQ(CarriedCgroup("4:cpu:/\n3:memory:/user.slice\n0::/\n"), "/user.slice");
  EXPECT_EQ(CarriedCgroup("0::/system.slice/slurmstepd.scope/job_3/step_0/user/task_0\n"),
            "/system.slice/slurmstepd.scope/job_3/step_0/user/task_0");
  EXPECT_EQ(CarriedCgroup(""), "");
}

TEST(CgroupPath, ManyLinesAndLongOnesAreBounded) {
  std::string text;
  for (int i = 0; i < 100'000; ++i)
    text += std::to_string(i) + ":c" + std::to_string(i) + ":/slurm/uid_1/job_" +
            std::to_string(i + 1) + "/" + std::string(300, 'x') + "\n";
  EXPECT_EQ(ReadCgroup(text).job_id, "1");
  EXPECT_LE(CarriedCgroup(text).size(), kCarriedCgroupCap);
  EXPECT_LE(CarriedCgroup(std::string(1 << 20, '/')).size(), kCarriedCgroupCap);
  EXPECT_LE(CarriedCgroup("/" + std::string(1 << 20, 'a')).size(), kCarriedCgroupCap);
}

}  // namespace
}  // namespace rankscope::attribution
