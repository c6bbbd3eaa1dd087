# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""The packages: built from the build folder, judged by lintian, installed in a fresh root, upgraded, removed and purged."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BINARY = Path(os.environ.get("RANKSCOPE_BINARY", "build/rankscope")).resolve()
BUILD = BINARY.parent
PARTS = ["rankscope", "rankscope_serve", "manuals", "package_documents"]
OLD, NEW = "0.0.9", None  # None: the version of the tree
MEGABYTE = 1 << 20
LARGEST = 12 * MEGABYTE  # of a package; measured: 8.8
MUST_HAVE = ["usr/bin/rankscope", "usr/lib/rankscope/rankscope-serve", "etc/rankscope/config.yaml", "etc/rankscope/controller.yaml",
             "etc/default/rankscope", "usr/lib/systemd/system/rankscope.service", "usr/lib/sysusers.d/rankscope.conf",
             "usr/lib/tmpfiles.d/rankscope.conf", "usr/share/rankscope/slurm/prolog", "usr/share/rankscope/alerts/rankscope_alerts.yaml",
             "usr/share/rankscope/alerts/mixin.py", "usr/share/doc/rankscope/runbooks/RankscopeGpuXid.md",
             "usr/share/rankscope/dashboards/rankscope_job.json", "usr/share/man/man1/rankscope-run.1.gz",
             "usr/share/man/man5/rankscope.yaml.5.gz", "usr/share/man/man8/rankscope-serve.8.gz",
             "usr/share/bash-completion/completions/rankscope", "usr/share/doc/rankscope/copyright"]


class Missing(Exception):
    """The test cannot run here; the text says why."""


def need(*programs):
    absent = [program for program in programs if not shutil.which(program)]
    if absent:
        raise Missing(f"not installed: {' '.join(absent)}; run 'deploy/packages.sh nightly'")


def run(*command, **options):
    result = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace", **options)
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: exit {result.returncode}\n{result.stdout[-4000:]}{result.stderr[-4000:]}")
    return result.stdout


def package(generator, folder, version=NEW):
    """Builds one package in `folder` and returns its path."""
    run("cmake", "--build", BUILD, "--target", *PARTS)
    flags = ["-D", f"CPACK_PACKAGE_VERSION={version}"] if version else []
    run("cpack", "-G", generator, "--config", BUILD / "CPackConfig.cmake", "-B", folder, *flags, cwd=BUILD)
    found = [path for path in Path(folder).iterdir() if path.is_file()]
    assert len(found) == 1, found
    return found[0]


class Packages(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="rankscope-package-"))
        self.addCleanup(subprocess.run, ["rm", "-rf", "--one-file-system", self.folder], check=False)


def glibc_needed(program):
    """The newest version of each of glibc's symbols that a program asks for."""
    found = re.findall(r"GLIBC_([\d.]+)", run("objdump", "-T", program))
    return max((tuple(map(int, version.split("."))) for version in found), default=())


class Deb(Packages):
    def test_lintian_has_nothing_to_say(self):
        need("lintian", "cpack", "dpkg-deb")
        path = package("DEB", self.folder)
        size = path.stat().st_size
        print(f"{path.name}: {size / MEGABYTE:.1f} MiB")
        self.assertLess(size, LARGEST)
        fields = run("dpkg-deb", "-f", path)
        for name, pattern in (("Package", "rankscope"), ("Section", "net"), ("Maintainer", r".+ <\S+@\S+>"), ("Depends", r".*libc6 \(>= [\d.]+\).*"),
                              ("Description", ".{10,80}")):
            self.assertRegex(fields, rf"(?m)^{name}: {pattern}$")
        said = run("lintian", "--allow-root", "--fail-on", "error,warning", path)
        self.assertEqual(said.strip(), "")
        run("dpkg-deb", "-x", path, self.folder / "root")
        for name in MUST_HAVE:
            self.assertTrue((self.folder / "root" / name).exists(), name)
        for name in ("usr/bin/rankscope", "usr/lib/rankscope/rankscope-serve"):
            program = self.folder / "root" / name
            self.assertNotIn(".debug_info", run("readelf", "-SW", program), f"{name} is not stripped")
            print(f"{name}: {program.stat().st_size / MEGABYTE:.1f} MiB, glibc {'.'.join(map(str, glibc_needed(program))) or 'inside'}")


class Tarball(Packages):
    def test_it_works_where_it_is_unpacked(self):
        need("cpack", "tar")
        path = package("TGZ", self.folder)
        run("tar", "-xzf", path, "-C", self.folder, "--strip-components=1")
        said = run(self.folder / "usr/bin/rankscope", "check", "--config", self.folder / "etc/rankscope/config.yaml", "--state.dir", self.folder)
        self.assertIn("configuration: ok", said)


class Bundle(Packages):
    # glibc of the oldest system that each may need: of ours RHEL 9's; gcc's own runtime, which comes along, wants Debian 12's.
    OURS, ALL = (2, 34), (2, 36)

    def test_it_brings_its_libraries_along(self):
        need("patchelf", "objdump", "ldd")
        run("cmake", "--build", BUILD, "--target", *PARTS)
        script = Path(__file__).resolve().parents[2] / "deploy/package/bundle"
        print(run(script, BUILD, self.folder / "rankscope.tar.gz"), flush=True)
        run("tar", "-xzf", self.folder / "rankscope.tar.gz", "-C", self.folder, "--strip-components=1")
        libraries = self.folder / "lib/rankscope"
        self.assertEqual(glibc_needed(self.folder / "bin/rankscope"), ())
        self.assertLessEqual(glibc_needed(libraries / "rankscope-serve"), self.OURS)
        for path in libraries.iterdir():
            self.assertLessEqual(glibc_needed(path), self.ALL, path.name)
        for name, place in re.findall(r"(\S+) => (\S+) ", run("ldd", libraries / "rankscope-serve")):
            self.assertTrue(place.startswith(str(libraries)) or re.match(r"lib[cm]\.so\.6$", name), f"{name} is {place}")
        said = run(self.folder / "bin/rankscope", "check", "--state.dir", self.folder)
        self.assertIn("configuration: ok", said)


class Rpm(Packages):
    def test_install_and_erase_leave_nothing(self):
        need("rpm", "rpmbuild", "cpack")
        path = package("RPM", self.folder / "packages")
        print(f"{path.name}: {path.stat().st_size / MEGABYTE:.1f} MiB")
        self.assertLess(path.stat().st_size, LARGEST)
        root = self.folder / "root"
        root.mkdir()
        at = ["--root", str(root)]
        # The libraries are Debian's: only files and scripts are tried here.
        run("rpm", *at, "--initdb")
        run("rpm", *at, "-i", "--nodeps", "--noscripts", path)
        for name in MUST_HAVE:
            self.assertTrue((root / name).exists(), name)
        self.assertEqual(set(run("rpm", *at, "-qc", "rankscope").split()),
                         {"/etc/default/rankscope", "/etc/rankscope/config.yaml", "/etc/rankscope/controller.yaml"})
        for script in re.findall(r"scriptlet \(using /bin/sh\):\n(.*?)(?=\n\w+ scriptlet|\Z)", run("rpm", "-qp", "--scripts", path), re.S):
            run("sh", "-n", input=script)
        run("rpm", *at, "-e", "--nodeps", "--noscripts", "rankscope")
        left = [found for found in root.rglob("*rankscope*") if "/lib/sysimage/" not in str(found) and "/lib/rpm/" not in str(found)]
        self.assertEqual(left, [])


class InFreshRoot(unittest.TestCase):
    """A new Debian 12 without anything that it does not need."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="rankscope-package-"))
        self.addCleanup(subprocess.run, ["rm", "-rf", "--one-file-system", self.folder], check=False)

    def in_root(self, *command):
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
        return run("chroot", self.root, *command, env=environment)

    def make_root(self, *packages):
        need("mmdebstrap", "cpack", "chroot")
        if os.geteuid() != 0:
            raise Missing("needs root, for a fresh root")
        self.root = self.folder / "root"
        made = subprocess.run(["mmdebstrap", "--variant=apt", f"--include={','.join(('init-system-helpers', *packages))}", "--mode=root",
                               "bookworm", self.root], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise Missing(f"mmdebstrap: {made.stderr.strip().splitlines()[-1]}")
        mounted = self.root / "proc"
        run("mount", "-t", "proc", "proc", mounted)
        self.addCleanup(run, "umount", mounted)
        (self.root / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
        (self.root / "usr/sbin/policy-rc.d").chmod(0o755)

    def get_dependencies(self, path):
        """What a package depends on, so that what remains in the end is its own."""
        dependencies = re.search(r"^Depends: (.*)$", run("dpkg-deb", "-f", path), re.M)[1]
        self.in_root("apt-get", "-qq", "update")
        self.in_root("apt-get", "-qq", "-y", "install", "--no-install-recommends", *re.findall(r"([\w.+-]+)(?: \([^)]*\))?(?:, |$)", dependencies))


class FreshRoot(InFreshRoot):
    def files(self):
        """What the package could have left: /etc, /usr and state, without the packages' own records."""
        skipped = re.compile(r"^(proc|sys|dev|tmp|var/(lib/(dpkg|apt)|cache|log))$")
        found = set()
        for folder, names, files in os.walk(self.root):
            at = os.path.relpath(folder, self.root)
            names[:] = [name for name in names if not skipped.match(os.path.normpath(f"{at}/{name}"))]
            found.update(os.path.normpath(f"{at}/{name}") for name in names + files)
        return found

    def install(self, path):
        shutil.copy(path, self.root / "tmp")
        self.in_root("apt-get", "-qq", "-y", "-o", "Acquire::Retries=3", "-o", "Dpkg::Use-Pty=0", "install", "--no-install-recommends",
                     "-o", "Dpkg::Options::=--force-confold", f"/tmp/{path.name}")

    def test_install_check_upgrade_remove_purge(self):
        self.make_root()
        old, new = package("DEB", self.folder / "old", OLD), package("DEB", self.folder / "new")
        self.get_dependencies(new)
        before = self.files()

        self.install(old)
        self.assertIn(OLD, self.in_root("dpkg-query", "-W", "rankscope"))
        config = self.root / "etc/rankscope/config.yaml"
        config.write_text(config.read_text().replace("max_requests: 40", "max_requests: 41"))
        self.install(new)
        self.assertIn("max_requests: 41", config.read_text(), "an upgrade keeps what an administrator wrote")
        said = self.in_root("rankscope", "check", "--config", "/etc/rankscope/config.yaml")
        self.assertIn("configuration: ok", said)
        self.assertIn("configuration: ok", self.in_root("rankscope", "check", "--config", "/etc/rankscope/controller.yaml"))
        self.assertEqual(self.in_root("rankscope", "--version"), f"rankscope, version {run(BINARY, '--version').split()[-1]}\n")
        wanted = self.root / "etc/systemd/system/multi-user.target.wants/rankscope.service"
        self.assertTrue(wanted.is_symlink(), "the service starts with the machine")
        self.assertFalse(wanted.with_name("rankscope-controller.service").is_symlink(), "the controller's does not")

        state = self.root / "var/lib/rankscope/verdicts"
        state.mkdir(parents=True)
        self.in_root("apt-get", "-qq", "-y", "remove", "rankscope")
        self.assertTrue(state.is_dir() and config.exists(), "removal keeps configuration and state")
        self.assertFalse((self.root / "usr/bin/rankscope").exists())
        self.in_root("apt-get", "-qq", "-y", "purge", "rankscope")
        self.assertEqual(sorted(self.files() - before), [])
        self.assertEqual(sorted(before - self.files()), [])


def main():
    program = unittest.main(module="__main__", exit=False, verbosity=2)
    reasons = [text.strip().splitlines()[-1] for _, text in program.result.errors if "Missing: " in text]
    if reasons and len(reasons) == len(program.result.errors) and not program.result.failures:
        print(f"SKIP: {reasons[0]}")
        sys.exit(77)
    sys.exit(0 if program.result.wasSuccessful() else 1)


if __name__ == "__main__":
    main()
