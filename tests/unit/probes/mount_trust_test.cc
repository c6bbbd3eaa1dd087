// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

#include "exporter/probes/mount_trust.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "exporter/owned_fd.h"

namespace rankscope::probes {
namespace {

constexpr std::string_view kMounts =
    "21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard\n"
    "40 21 0:41 / /cvmfs/my\\040lab rw,nosuid - fuse cvmfs2 rw,user_id=0,group_id=0,allow_other\n"
    "41 21 0:42 / /home/eve/fs rw,nosuid shared:7 master:2 - fuse.sshfs eve:/ "
    "rw,user_id=1000,group_id=0\n"
    "42 21 0:43 / /fs rw - fuse.user_id=0 x rw,user_id=10,group_id=0\n"
    "43 21 0:44 / /merged rw - overlay overlay rw,lowerdir=/a,upperdir=/b\n"
    "broken\n";

bool RootsIs(int64_t id) {
  const auto mount = FindMount(kMounts, id);
  EXPECT_TRUE(mount) << id;
  return mount && IsRoots(*mount);
}

TEST(MountTrust, TheKernelSaysWhoServesAFileSystem) {
  EXPECT_TRUE(RootsIs(40));
  EXPECT_FALSE(RootsIs(41));
  EXPECT_FALSE(RootsIs(42));
  EXPECT_TRUE(RootsIs(43));
  EXPECT_EQ(FindMount(kMounts, 41)->device, "0:42");
  EXPECT_FALSE(FindMount(kMounts, 99));
}

TEST(MountTrust, BrokenLinesAreNoMounts) {
  for (const std::string_view line :
       {"", " ", "36", "36 35 0:4 / / rw - ", "x 35 0:4 / / rw - a b c",
        "36 35 0:4 / / rw shared:1 overlay overlay rw"}) {
    EXPECT_FALSE(ParseMountLine(line)) << line;
  }
}

TEST(MountTrust, AFileOfTheHostsOwnDiskMayBeProbed) {
  const OwnedFd self(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(MayProbe("/proc", getpid(), self.get()));
}

}  // namespace
}  // namespace rankscope::probes
