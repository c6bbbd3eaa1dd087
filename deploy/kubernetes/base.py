# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Writes a kustomize base for a DaemonSet on every GPU node.

    base.py --binary build/rankscope --image registry.example/rankscope FOLDER
    base.py ... --set runbook_url='https://wiki.example.org/rankscope/{alert}' FOLDER     settings of alerts/mixin.py, for the rules

Rules, dashboards and configuration are those of the tree: kustomize reads no file outside its folder, so they are put into it.
"""
import argparse
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "alerts"))

import mixin  # noqa: E402

KUSTOMIZATION = """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: rankscope
resources: [namespace.yaml, daemonset.yaml, podmonitor.yaml, prometheusrule.yaml]
images: [{{name: rankscope, newName: {image}, newTag: "{version}"}}]
configMapGenerator:
  - name: rankscope-config
    files: [config.yaml]
{dashboards}"""
# One for each: kubectl apply puts what it applied into an annotation of at most 256 KiB. The label is what Grafana's sidecar looks for.
DASHBOARD = """\
  - name: rankscope-dashboard-{name}
    files: [{file}]
    options: {{disableNameSuffixHash: true, labels: {{grafana_dashboard: "1"}}}}
"""
NAMESPACE = """\
apiVersion: v1
kind: Namespace
metadata:
  name: rankscope
  labels: {pod-security.kubernetes.io/enforce: privileged}  # hostPID, hostPath
"""
RULE = """\
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: rankscope
  labels: {app.kubernetes.io/name: rankscope}
spec:
"""


DASHBOARDS = sorted((ROOT / "dashboards").glob("*.json"))


def without_comments(text):
    return "".join(line + "\n" for line in text.splitlines() if not line.startswith("#"))


def rules_with(words):
    """The rules as a part of an object, with these settings."""
    groups = "".join(without_comments(text).removeprefix("groups:\n") for text in mixin.files(mixin.settings_from(words)).values())
    return "".join(f"  {line}\n" for line in ("groups:\n" + groups).splitlines())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--image", default="rankscope")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", dest="words", help="a setting of alerts/mixin.py; repeatable")
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    version = subprocess.run([arguments.binary, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    config = (ROOT / "deploy/config.yaml").read_text(encoding="utf-8")
    changed = config.replace('listen: ["127.0.0.1:10177"]', 'listen: ["0.0.0.0:10177"]').replace(
        'mapping_dir: ""', "mapping_dir: /run/rankscope/job-mapping")
    arguments.folder.mkdir(parents=True, exist_ok=True)
    dashboards = "".join(DASHBOARD.format(name=path.stem.removeprefix("rankscope_"), file=path.name) for path in DASHBOARDS)
    kustomization = KUSTOMIZATION.format(image=arguments.image, version=version, dashboards=dashboards)
    for name, text in (("kustomization.yaml", kustomization), ("namespace.yaml", NAMESPACE),
                       ("config.yaml", changed), ("prometheusrule.yaml", RULE + rules_with(arguments.words))):
        (arguments.folder / name).write_text(text, encoding="utf-8")
    for path in (HERE / "daemonset.yaml", HERE / "podmonitor.yaml", *DASHBOARDS):
        shutil.copy(path, arguments.folder)


if __name__ == "__main__":
    main()
