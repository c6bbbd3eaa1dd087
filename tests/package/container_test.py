# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""The image of the package, and the kustomize base for Kubernetes against the schemas of its objects."""
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

from package_test import BINARY, MEGABYTE, Missing, Packages, main, need, package, run

ROOT = Path(__file__).resolve().parents[2]
MODELS = ("kubernetes-models@5.1.0", "@kubernetes-models/prometheus-operator@6.0.0", "js-yaml@4.1.0")
LARGEST = 200 * MEGABYTE  # of the image; measured: 147


class Image(Packages):
    def test_what_is_in_the_image(self):
        need("buildah", "mmdebstrap", "cpack")
        if os.geteuid() != 0:
            raise Missing("needs root, for a fresh root")
        out = self.folder / "image.tar"
        built = subprocess.run([ROOT / "deploy/package/image", package("DEB", self.folder / "new"), out], capture_output=True, text=True, check=False)
        if "E: " in built.stderr and not out.exists():
            raise Missing(f"mmdebstrap: {built.stderr.strip().splitlines()[-1]}")
        self.assertEqual(built.returncode, 0, built.stderr[-3000:])
        print(built.stdout.strip().splitlines()[-1])
        self.assertLess(out.stat().st_size, LARGEST)
        with tarfile.open(out) as archive:
            def blob(descriptor):
                return archive.extractfile(f"blobs/{descriptor['digest'].replace(':', '/')}")
            manifest = json.load(blob(json.load(archive.extractfile("index.json"))["manifests"][0]))
            settings = json.load(blob(manifest["config"]))["config"]
            self.assertEqual(settings["Entrypoint"], ["/usr/bin/rankscope"])
            self.assertEqual(settings["Cmd"], ["serve", "--config", "/etc/rankscope/config.yaml"])
            self.assertEqual(settings["Labels"]["org.opencontainers.image.title"], "rankscope")
            with tarfile.open(fileobj=blob(manifest["layers"][-1])) as layer:
                root = self.folder / "root"
                root.mkdir()
                layer.extractall(root, [member for member in layer if member.isfile() or member.isdir() or member.issym() or member.islnk()])
        command = [*settings["Entrypoint"], "check", "--config", "/etc/rankscope/config.yaml", "--state.dir", "/tmp"]
        said = run("unshare", "--mount", "--pid", "--fork", "sh", "-c", 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"', root, *command)
        self.assertIn("configuration: ok", said)


class Kubernetes(Packages):
    def test_objects_are_valid(self):
        need("kubectl", "npm", "node")
        base = self.folder / "base"
        run(sys.executable, ROOT / "deploy/kubernetes/base.py", "--binary", BINARY, "--image", "registry.example/rankscope", base)
        objects = run("kubectl", "kustomize", base)
        installed = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--prefix", self.folder, *MODELS], capture_output=True, text=True,
                                   check=False)
        if installed.returncode != 0:
            raise Missing(f"npm: {installed.stderr.strip().splitlines()[-1]}")
        validate = ["node", Path(__file__).with_name("validate.mjs"), self.folder / "node_modules"]
        said = run(*validate, input=objects)
        print(said)
        for kind in ("DaemonSet rankscope", "PodMonitor rankscope", "PrometheusRule rankscope", "ConfigMap rankscope-dashboard-job"):
            self.assertIn(f"{kind}: valid", said)
        self.assertIn("image: registry.example/rankscope:", objects)
        wrong = subprocess.run(validate, input=objects.replace("hostPID: true", "hostPID: perhaps"), capture_output=True, text=True, check=False)
        self.assertEqual(wrong.returncode, 1, "the schemas refuse what is wrong")
        # The configuration that is put into it is understood.
        run(BINARY, "check", "--config", base / "config.yaml", "--state.dir", self.folder)


if __name__ == "__main__":
    main()
