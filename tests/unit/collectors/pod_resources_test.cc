// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Answers of the kubelet's pod-resources service: which pod has which GPU, and bytes that are none.
#include "exporter/gpu/pod_resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace rankscope::collectors {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// One field of a message.
std::string Field(int number, const std::string& content) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(content.size()) +
         content;
}
std::string Device(const std::string& resource, const std::string& id) {
  return Field(2, Field(1, resource) + Field(2, id));
}
std::string Pod(const std::string& name, const std::string& devices) {
  return Field(1, Field(1, name) + Field(2, "ml") + Field(3, Field(1, "main") + devices));
}
std::string Framed(const std::string& message) {
  return std::string(3, '\0') + static_cast<char>(message.size() >> 8) +
         static_cast<char>(message.size() & 0xff) + message;
}

TEST(PodResources, ReadsWhatAServerOfGrpcAnswered) {
  // As grpc 1.51 sent it.
  constexpr char kAnswer[] =
      "\0\0\0\0\x30\n.\n\atrain-0\x12\x02ml\x1a\x1f\n\x04main\x12\x17\n\x0envidia.com/gpu\x12\x05"
      "GPU-7";
  const auto found = ReadPodResources({kAnswer, sizeof kAnswer - 1});
  ASSERT_TRUE(found);
  ASSERT_THAT(*found, SizeIs(1));
  EXPECT_EQ(found->front().uuid, "GPU-7");
  EXPECT_THAT(found->front().pods, ElementsAre(GpuPod{"train-0", "ml", "main"}));
}

TEST(PodResources, TakesGpusOnlyAndEachOnce) {
  const auto found = ReadPodResources(
      Framed(Pod("a", Device("nvidia.com/gpu", "GPU-7::0") + Device("nvidia.com/gpu", "GPU-7::1")) +
             Pod("b", Device("nvidia.com/gpu", "GPU-7::2") + Device("rdma/hca", "GPU-8") +
                          Device("nvidia.com/mig-1g.10gb", "MIG-3")) +
             Pod("c", "") + Pod("d", Device("nvidia.com/gpu", "nvidia0"))));
  ASSERT_TRUE(found);
  ASSERT_THAT(*found, SizeIs(3));
  EXPECT_EQ((*found)[0].uuid, "GPU-7");
  EXPECT_THAT((*found)[0].pods, ElementsAre(GpuPod{"a", "ml", "main"}, GpuPod{"b", "ml", "main"}));
  EXPECT_EQ((*found)[1].uuid, "MIG-3");
  EXPECT_EQ((*found)[2].uuid, "nvidia0");
}

TEST(PodResources, OfNoPodsThereIsNothing) {
  EXPECT_THAT(*ReadPodResources(Framed("")), IsEmpty());
  EXPECT_EQ(PodResourcesRequest(), std::string(5, '\0'));
}

TEST(PodResources, FieldsOfLaterVersionsArePassedOver) {
  const std::string later = std::string("\x28\x96\x01", 3) +                // a number
                            std::string("\x31", 1) + std::string(8, 'x') +  // eight bytes
                            std::string("\x3d", 1) + std::string(4, 'x') + Field(9, "new");
  const auto found = ReadPodResources(Framed(later + Pod("a", Device("nvidia.com/gpu", "GPU-7"))));
  ASSERT_TRUE(found);
  EXPECT_THAT(*found, SizeIs(1));
}

TEST(PodResources, WhatIsCutOrNoMessageIsNothing) {
  const std::string whole = Framed(Pod("a", Device("nvidia.com/gpu", "GPU-7")));
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(ReadPodResources(whole.substr(0, size))) << size;
  std::string compressed = whole;
  compressed[0] = 1;
  EXPECT_FALSE(ReadPodResources(compressed));
  EXPECT_FALSE(ReadPodResources(Framed("<html>")));
  EXPECT_FALSE(
      ReadPodResources(Framed(std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"))));
}

}  // namespace
}  // namespace rankscope::collectors
