# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""GPUs under dcgm-exporter's names as `rankscope serve` shows them: where there is no dcgm-exporter, and with the labels that its users
look for."""
import re
import subprocess
import sys
import unittest
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent / "support")]

from gpu_test import DcgmExporter, GpuTest, uuid  # noqa: E402
from pod_resources_service import PodResources  # noqa: E402
from serve_test import BINARY, ServeTest, wait_for  # noqa: E402


class DcgmNames(ServeTest, GpuTest):
    """GPUs under dcgm-exporter's names where there is none, with what its users look for: rates, jobs, MIG instances, Xids' words."""

    def names(self, daemon):
        """{name: [(labels, value)]} of the page."""
        found = {}
        for metric, labels, value in re.findall(r"^(DCGM_\w+)\{(.*)\} (\S+)$", daemon.get("/metrics")[1], re.M):
            found.setdefault(metric, []).append((dict(re.findall(r'(\w+)="([^"]*)"', labels)), float(value)))
        return found

    def check(self, config):
        printed = subprocess.run([BINARY, "check", "--config", str(config)], capture_output=True, text=True, check=True).stdout
        return re.search(r"(?m)^dcgm_names\s+(\S+)\s+(.*)$", printed).groups()

    def test(self):
        mapping = Path(self.folder) / "mapping"
        mapping.mkdir()
        (mapping / "0").write_text("7788\n7789\n")
        exporter = DcgmExporter()
        url = exporter.url
        exporter.close()
        config = Path(self.folder) / "auto.yaml"
        config.write_text(f'gpu: {{dcgm_url: "{url}"}}\nmetrics: {{profile: full}}\nslurm: {{mapping_dir: "{mapping}"}}\n'
                          "sources: {dcgm: {interval: 200ms}, job_mapping: {interval: 200ms}}\n")
        state, why = self.check(config)
        self.assertEqual((state, why), ("yes", f"GPU metrics also as DCGM_FI_*: no dcgm-exporter answers at {url}"))
        daemon = self.start("gpus 2 hopper\ngpu 0 field_138 0 +2097152\ngpu 0 field_139 0 +1048576\ngpu 0 gpm_20 5\n"
                            "gpu 0 violation_0 2500000000\ngpu 1 mig MIG-a 1073741824 10737418240 1g.10gb 9 gpm_1 75\n",
                            flags=("--config", str(config)))
        self.wait_up(daemon, [0, 1])
        self.assertIn("GPU metrics have dcgm-exporter's names as well", daemon.text())

        def of(metric, **labels):
            return [(own, value) for own, value in self.names(daemon).get(metric, []) if labels.items() <= own.items()]
        wait_for("the jobs of the prolog's files", lambda: sorted(
            own.get("hpc_job", "") for own, _ in of("DCGM_FI_DEV_GPU_TEMP", gpu="0")) == ["7788", "7789"])
        wait_for("rates", lambda: of("DCGM_FI_PROF_NVLINK_TX_BYTES", gpu="0") and of("DCGM_FI_PROF_PCIE_TX_BYTES", gpu="0"))
        sent = of("DCGM_FI_PROF_NVLINK_TX_BYTES", gpu="0")[0][1]
        self.assertLess(abs(sent / 2 ** 31 - 1), 0.5, "2 GiB in a second, by looks that are not exactly a second apart")
        self.assertEqual(of("DCGM_FI_PROF_PCIE_TX_BYTES", gpu="0")[0][1], 5 * 2 ** 20)
        self.assertLess(abs(of("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", gpu="0")[0][1] / 3072 - 1), 0.5)
        self.assertEqual(of("DCGM_FI_DEV_POWER_VIOLATION", gpu="0")[0][1], 2500000000)
        self.assertEqual(of("DCGM_FI_DEV_VGPU_LICENSE_STATUS"), [], "no vGPU: absent, not 0")
        part = {"GPU_I_PROFILE": "1g.10gb", "GPU_I_ID": "9"}
        self.assertEqual([value for _, value in of("DCGM_FI_DEV_FB_USED", gpu="1", **part)], [1024])
        self.assertEqual(len(of("DCGM_FI_DEV_FB_USED", gpu="1")), 1)
        wait_for("an instance's activity", lambda: [v for _, v in of("DCGM_FI_PROF_GR_ENGINE_ACTIVE", **part)] == [0.75])
        for own, value in of("DCGM_FI_DEV_XID_ERRORS"):
            self.assertEqual(own["err_code"], str(int(value)))
            self.assertTrue(own["err_msg"])

        # A dcgm-exporter that starts later has them, and the next start knows.
        exporter = DcgmExporter(int(url.rsplit(":", 1)[1].split("/")[0]))
        self.addCleanup(exporter.close)
        exporter.say(c0={"DEV_POWER_USAGE": 300.5, "PROF_SM_ACTIVE": 0.25})
        wait_for("its names to be its own", lambda: not self.names(daemon))
        self.assertEqual(self.check(config), ("off", f"dcgm-exporter answers at {url} and has them"))
        self.assertEqual(daemon.stop(), 0)
        daemon = self.start("gpus 2 hopper\n", flags=("--config", str(config)))
        self.wait_up(daemon, [0, 1])
        self.assertEqual(self.names(daemon), {})


class PodsOfAKubelet(ServeTest, GpuTest):
    """On a node of Kubernetes: whose pod has which GPU, under dcgm-exporter's names; and a kubelet that is not there, refuses or is no such."""

    def test(self):
        kubelet = PodResources(self.folder + "/kubelet.sock")
        self.addCleanup(kubelet.close)
        kubelet.say(("ml", "train-0", "main", "nvidia.com/gpu", [uuid(0), uuid(1)]), ("kube-system", "dns", "dns", "cpu", ["0"]),
                    ("ml", "serve-0", "web", "nvidia.com/mig-1g.10gb", ["MIG-a"]))
        config = Path(self.folder) / "kubelet.yaml"
        config.write_text(f'gpu: {{pod_resources: "{kubelet.path}", dcgm_url: ""}}\nmetrics: {{dcgm_names: true}}\n'
                          "sources: {kubelet: {interval: 200ms}}\n")
        printed = subprocess.run([BINARY, "check", "--config", str(config)], capture_output=True, text=True, check=True).stdout
        self.assertRegex(printed, rf"(?m)^kubelet\s+yes\s+pods of 3 GPUs from the kubelet at {kubelet.path}$")
        daemon = self.start("gpus 4 hopper\ngpu 3 mig MIG-a 1 2\n", flags=("--config", str(config)))
        self.wait_up(daemon, [0, 1, 2, 3])

        def pods(metric="DCGM_FI_DEV_FB_USED"):
            page = daemon.get("/metrics")[1]
            return {gpu: re.findall(r'(container|namespace|pod)="([^"]*)"', rest)
                    for gpu, rest in re.findall(rf'^{metric}\{{gpu="(\d)"(.*)\}} \S+$', page, re.M)}
        train = [("container", "main"), ("namespace", "ml"), ("pod", "train-0")]
        wait_for("the pods", lambda: pods() == {
            "0": train, "1": train, "2": [], "3": [("container", "web"), ("namespace", "ml"), ("pod", "serve-0")]})
        self.assertEqual(pods("DCGM_FI_DEV_GPU_TEMP")["3"], [], "a part's pod does not have the whole card")
        self.assertEqual(daemon.metric('rankscope_source_up{source="kubelet"}'), 1)
        self.assertNotIn("pod=", re.sub(r"(?m)^DCGM_.*$", "", daemon.get("/metrics")[1]))
        self.assertEqual(set(kubelet.requests), {bytes(5)})

        # It refuses, answers nonsense, is gone: nobody is said to have a GPU.
        kubelet.status = b"13"
        wait_for("the reason", lambda: "answers with gRPC status 13" in daemon.text())
        wait_for("no pods", lambda: not any(pods().values()))
        kubelet.status, kubelet.body = b"0", b"<html>"
        wait_for("the reason", lambda: "answers with what is no list of pods" in daemon.text())
        kubelet.close()
        wait_for("the reason", lambda: "no kubelet on this node" in daemon.text())
        self.assertEqual(daemon.metric('rankscope_source_up{source="kubelet"}'), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
