// SPDX-FileCopyrightText: The rankscope authors
// SPDX-License-Identifier: Apache-2.0

// The subcommands. Each parses its own arguments (argv[0] is the subcommand's name) and returns the
// exit status.
#pragma once

namespace rankscope::cli {

int RunCommand(int argc, char** argv);
int ServeCommand(int argc, char** argv);
int ReplayCommand(int argc, char** argv);
int ClassifyCommand(int argc, char** argv);
int ProgressCommand(int argc, char** argv);
int VerdictCommand(int argc, char** argv);
int CheckCommand(int argc, char** argv);
int ListCommand(int argc, char** argv);
int DeliverCommand(int argc, char** argv);
int ExplainCommand(int argc, char** argv);
int WatchCommand(int argc, char** argv);

}  // namespace rankscope::cli
