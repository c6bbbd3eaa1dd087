# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What is counted of calls into the real driver, runtime and NCCL, where the number of calls is known (calls.py)."""
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from card_test import main  # noqa: E402
from runs_test import CALLS, PYTHON, TorchTest  # noqa: E402
from serve_test import BINARY, wait_for  # noqa: E402

LAUNCHES, GRAPHS, COPIES, BLOCKS, COLLECTIVES = 20_000, 1_000, 200, 50, 300  # those of calls.py, which needs PyTorch to be read
MIB = 1 << 20
COUNTED = ("cuda_kernel_launches", "cuda_graph_launches", "cuda_memcpy_calls", "cuda_alloc_bytes", "cuda_sync_calls",
           "nccl_collectives_enqueued", "nccl_bytes", "rank_collectives_completed")


class ProbesTest(TorchTest):
    def setUp(self):
        super().setUp()
        if os.geteuid() != 0:
            self.skipTest("programs in the kernel need root")
        checked = subprocess.run([BINARY, "check", "--state.dir", self.folder], capture_output=True, text=True).stdout
        said = [line for line in checked.splitlines() if line.startswith(("cuda ", "nccl "))]
        if not all(" yes " in line for line in said):
            print("skipped:", *said, file=sys.stderr)
            self.skipTest("no probes here")

    def counts(self):
        return {name: self.watcher.metric(f'rankscope_{name}_total{{job_id="{self.how}",rank="0"}}') or 0 for name in COUNTED}

    def settled(self):
        """Counts that two looks, two seconds apart, agree on: samples are taken each second."""
        last = {}

        def same():
            nonlocal last
            before, last = last, self.counts()
            time.sleep(2)
            return before == last
        wait_for("counts that stand still", same)
        return last

    def calls(self, how):
        """Name of a counter -> what the known calls added to it."""
        self.how = how
        folder = Path(self.folder)
        self.watcher = self.cards()
        wrapper = self.run_wrapped(self.watcher, how, PYTHON, CALLS, how, self.folder)
        self.until("the first calls", (folder / "ready").exists)
        before = self.settled()
        (folder / "go").touch()
        self.until("all calls", (folder / "done").exists)
        after = self.settled()
        (folder / "end").touch()
        self.assertEqual(wrapper.wait(60), 0)
        added = {name: after[name] - before[name] for name in COUNTED}
        share = self.watcher.metric(f'rankscope_cuda_counted_ratio{{job_id="{how}",rank="0"}}')
        print(f"{how}: {added}, counted share {share}, took {(folder / 'done').read_text().strip()} s", file=sys.stderr)
        return added


class RealDriver(ProbesTest):
    def test_launches_graphs_copies_and_allocations_are_as_many_as_were_made(self):
        added = self.calls("launches")
        self.assertEqual(added["cuda_kernel_launches"], LAUNCHES)
        self.assertEqual(added["cuda_graph_launches"], GRAPHS)
        self.assertEqual(added["cuda_memcpy_calls"], COPIES)
        self.assertEqual(added["cuda_alloc_bytes"], BLOCKS * 64 * MIB)
        self.assertGreaterEqual(added["cuda_sync_calls"], LAUNCHES // 500 + 1)


class RealNccl(ProbesTest):
    def test_collectives_are_counted_with_their_bytes_and_completed(self):
        added = self.calls("collectives")
        self.assertEqual(added["nccl_collectives_enqueued"], COLLECTIVES)
        self.assertEqual(added["nccl_bytes"], COLLECTIVES * 4 * MIB)
        self.assertEqual(added["rank_collectives_completed"], COLLECTIVES)


if __name__ == "__main__":
    main()
