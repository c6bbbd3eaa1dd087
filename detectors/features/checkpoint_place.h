// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// Whether two paths of checkpoints, as two runs tell them, lie in one folder. Pure; any text.
#pragma once

#include <string_view>

namespace rankscope::features {

// As far as the words go: "./out/latest", "out//global_step9/x.pt" and "/scratch/run7/out/" may all
// mean one folder, for what one run names from where it was started another may name from the root,
// and a mount puts something in front. Files, folders of single checkpoints and what a path was cut
// by do not count. True where a path says no folder. A link of quite another name is not seen.
bool MayBeOneFolder(std::string_view a, std::string_view b);

}  // namespace rankscope::features
