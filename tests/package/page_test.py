# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""The commands of deploy/README.md, executed in their order in a fresh root: one machine that is node, controller and monitoring."""
import re
import shutil
import subprocess
from pathlib import Path

from package_test import InFreshRoot, main, package

ROOT = Path(__file__).resolve().parents[2]
WITH = ("curl", "iproute2", "mount", "passwd", "prometheus", "prometheus-alertmanager", "slurm-client")
LIMIT = 600  # seconds


def blocks():
    found = re.findall(r"^```sh\n(.*?)^```$", (ROOT / "deploy/README.md").read_text(encoding="utf-8"), re.M | re.S)
    return [block for block in found if not block.startswith("# by hand")]


class Page(InFreshRoot):
    def test_the_page_works(self):
        self.make_root(*WITH)
        new = package("DEB", self.folder / "new")
        self.get_dependencies(new)
        # A network of its own has no mirror: what the page installs is there already.
        shutil.copy(new, self.root / "tmp")
        shutil.copy(Path(__file__).with_name("systemctl"), self.root / "usr/local/bin/systemctl")
        (self.root / "etc/slurm").mkdir(exist_ok=True)
        (self.root / "etc/slurm/slurm.conf").write_text("ClusterName=c\nSlurmctldHost=localhost\nNodeName=localhost\n")
        (self.root / "dev/shm").mkdir(exist_ok=True)
        steps = []
        for number, block in enumerate(blocks(), 1):
            steps += [f"echo '== block {number}'", block]
        script = self.root / "tmp/page.sh"
        # sysusers would have made it; this root has no systemd.
        script.write_text("set -eux\nip link set lo up\nmount -t proc proc /proc\nuseradd --system rankscope\n" + "\n".join(steps) + "\necho '== done'\n")
        # Processes end with the namespace.
        result = subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "chroot", self.root, "bash", "/tmp/page.sh"],
                                capture_output=True, text=True, timeout=LIMIT, check=False, errors="replace", stdin=subprocess.DEVNULL,
                                env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                                     "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"})
        logs = "".join(f"\n== {log.name}\n{log.read_text(errors='replace')[-1500:]}" for log in (self.root / "var/log").glob("*.log")
                       if log.stem.startswith(("rankscope", "prometheus")))
        said = result.stdout + result.stderr[-4000:]
        self.assertEqual(result.returncode, 0, f"{said}{logs}")
        for expected in ("== done", "configuration: ok", "A2 signal_kill (sigsegv)", "RankscopeVerdictCritical"):
            self.assertIn(expected, said)
        modes = {name: f"{(self.root / name).stat().st_mode & 0o7777:o}" for name in ("run/rankscope", "run/rankscope/job-mapping", "var/lib/rankscope",
                                                                                      "run/rankscope/run.sock")}
        self.assertEqual(modes, {"run/rankscope": "755", "run/rankscope/job-mapping": "755", "var/lib/rankscope": "700", "run/rankscope/run.sock": "666"})


if __name__ == "__main__":
    main()
