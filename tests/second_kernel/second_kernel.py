# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""The bpf tier under a second kernel: Debian 12's 6.1 with cgroup v2, booted in QEMU without any acceleration.

    second_kernel.py FOLDER [PACKAGE]

FOLDER keeps the kernel's package between runs; PACKAGE is another kernel than linux-image-cloud-amd64 stands for.
"""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
SKIPPED = 77
BOOT_AND_TEST_SECONDS = 1100
# Of the bpf tier, what needs nothing but Python's standard library, the stub libraries and the commands below; and pressure stall
# information, which it is booted without. With each the sources that it is about, for verifying all programs takes each
# daemon half a minute here.
PASSES = {
    "process": ("bpf/bpf_test.py", ["process"]),
    "stdio": ("bpf/stdio_test.py Python Files.test_a_duplicate_is_heard Programs.test_a_child_without_exec_inherits",
              ["process", "stdio"]),
    "calls": ("bpf/calls_test.py Launches.test_each_is_counted_once_through_whatever_layers Calls.test_time_bytes_and_failures "
              "Collectives", ["process", "cuda", "nccl"]),
    "pressure": ("serve/pressure_test.py", []),
}
# All of them are loaded there once, by `rankscope check`.
KERNEL_SOURCES = ["process", "stdio", "wait", "network", "io", "cuda", "nccl"]
COMMANDS = ["sh", "bash", "python3.11", "sleep", "kill", "cat", "env", "setpriv", "mount", "umount", "unshare", "tee", "true", "false",
            "chmod", "chrt", "taskset", "mkdir", "rm", "grep", "cut", "tr", "head", "dd", "echo", "busybox"]
# What a virtual disk needs; a kernel may have some of them built in.
MODULES = ["virtio", "virtio_ring", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_blk"]


class Missing(Exception):
    """Why this cannot run here."""


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True, **options).stdout


def kernel_package():
    try:
        depends = run("apt-cache", "depends", "linux-image-cloud-amd64")
    except (OSError, subprocess.CalledProcessError) as error:
        raise Missing(f"no package list: {error}") from error
    found = re.search(r"Depends: (linux-image-\S+)", depends)
    if not found:
        raise Missing("the package lists have no linux-image-cloud-amd64")
    return found[1]


def unpacked_kernel(folder, package):
    kernel = folder / package
    if not (kernel / "done").exists():
        shutil.rmtree(kernel, ignore_errors=True)
        kernel.mkdir(parents=True)
        try:
            run("apt-get", "-qq", "-o", "Acquire::Retries=3", "download", package, cwd=kernel)
        except subprocess.CalledProcessError as error:
            raise Missing(f"{package} cannot be downloaded: {error.stderr.strip()}") from error
        run("dpkg", "-x", next(kernel.glob("*.deb")), kernel)
        (kernel / "done").touch()
    return kernel


def libraries(program):
    """Absolute paths of what the dynamic linker would load, itself included."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    return re.findall(r"(/\S+) \(0x", listed)


def copy(source, root):
    target = root / str(source).lstrip("/")
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)  # follows links


def make_root(root, binaries, stubs):
    for folder in ["proc", "sys", "dev", "tmp", "run", "root", "usr/bin", "usr/lib", "usr/lib64", "usr/sbin"]:
        (root / folder).mkdir(parents=True)
    for link in ["bin", "lib", "lib64", "sbin"]:
        (root / link).symlink_to(f"usr/{link}")
    ours = root / "rankscope"
    ours.mkdir()
    programs = []
    for name in COMMANDS:
        if not (path := shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/sbin")):
            raise Missing(f"no command {name}")
        copy(path, root)
        programs.append(path)
    (root / "usr/bin/python3").symlink_to("python3.11")
    shutil.copytree("/usr/lib/python3.11", root / "usr/lib/python3.11", symlinks=False, ignore_dangling_symlinks=True,
                    ignore=shutil.ignore_patterns("__pycache__", "test", "tests", "idlelib", "dist-packages", "config-3.11*"))
    programs += (root / "usr/lib/python3.11/lib-dynload").glob("*.so")
    for binary in binaries:
        shutil.copy2(binary, ours)
        programs.append(binary)
    for program in [*programs, *stubs.iterdir()]:
        for library in libraries(program):
            if library.startswith(("/lib", "/usr/lib")):
                copy(library, root)
    ignored = shutil.ignore_patterns("__pycache__")
    for folder in ["bpf", "serve", "support/stub_gpu"]:
        shutil.copytree(TESTS / folder, ours / "tests" / folder, ignore=ignored)
    for file in ["detectors/model/signals.inc"]:
        (ours / file).parent.mkdir(parents=True)
        shutil.copy2(TESTS.parent / file, ours / file)
    shutil.copytree(stubs, ours / "stubs", symlinks=True)
    lines = ["export PATH=/usr/bin:/usr/sbin PYTHONDONTWRITEBYTECODE=1 RANKSCOPE_BINARY=/rankscope/rankscope LC_ALL=C.UTF-8",
             # Every instruction is translated: ten times slower than the machine that runs it.
             "export RANKSCOPE_TEST_PATIENCE=300 STUB_GPU_FOLDER=/rankscope/stubs",
             "uname -r 2>/dev/null; /rankscope/rankscope check"]
    for name, (test, sources) in PASSES.items():
        others = ", ".join(f"{source}: {{enabled: false}}" for source in KERNEL_SOURCES if source not in sources)
        (ours / f"{name}.yaml").write_text(f"sources: {{{others}}}\n")
        lines += [f"RANKSCOPE_TEST_CONFIG=/rankscope/{name}.yaml python3 /rankscope/tests/{test} 2>&1; echo ENDED {name} $?"]
    (ours / "run").write_text("\n".join(lines) + "\n")


def make_initramfs(kernel, folder):
    root = folder / "initramfs"
    (root / "bin").mkdir(parents=True)
    (root / "modules").mkdir()
    shutil.copy2("/bin/busybox", root / "bin/busybox")
    shutil.copy2(HERE / "init", root / "init")
    for name in MODULES:
        if found := next(kernel.rglob(f"{name}.ko"), None):
            shutil.copy2(found, root / "modules")
    names = "\n".join(str(path.relative_to(root)) for path in sorted(root.rglob("*")))
    with open(folder / "initramfs.cpio", "wb") as archive:
        subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], input=names.encode(), stdout=archive, cwd=root, check=True)
    return folder / "initramfs.cpio"


def boot(kernel, folder):
    disk = folder / "disk.ext4"
    # Without a journal and by its own size: the disk is only read.
    size = int(run("du", "-sm", folder / "root").split()[0]) * 5 // 4 + 32
    run("mke2fs", "-q", "-F", "-t", "ext4", "-O", "^has_journal", "-d", folder / "root", disk, f"{size}M")
    initramfs = make_initramfs(kernel, folder)
    # One CPU: two crash some kernels under TCG.
    machine = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-m", "2048", "-smp", "1", "-nographic",
               "-no-reboot", "-nic", "none", "-kernel", next((kernel / "boot").glob("vmlinuz*")), "-initrd", initramfs,
               "-drive", f"file={disk},format=raw,if=virtio,readonly=on",
               "-append", "console=ttyS0 quiet panic=-1 psi=0 rdinit=/init"]
    with open(folder / "console.log", "wb") as console:
        subprocess.run([str(part) for part in machine], stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT,
                       timeout=BOOT_AND_TEST_SECONDS, check=False)
    return (folder / "console.log").read_text(errors="replace")


def main():
    folder = Path(sys.argv[1]).resolve()
    binary = Path(os.environ.get("RANKSCOPE_BINARY", "build/rankscope")).resolve()
    try:
        for name in ["qemu-system-x86_64", "busybox", "cpio", "mke2fs", "ldd"]:
            if not shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"):
                raise Missing(f"no {name}; see deploy/packages.sh test")
        kernel = unpacked_kernel(folder, sys.argv[2] if len(sys.argv) > 2 else kernel_package())
        for old in ["root", "initramfs"]:
            shutil.rmtree(folder / old, ignore_errors=True)
        make_root(folder / "root", [binary, binary.with_name("rankscope-serve")], Path(os.environ["STUB_GPU_FOLDER"]).resolve())
    except Missing as missing:
        print(f"skipped: {missing}")
        return SKIPPED
    console = boot(kernel, folder)
    print(console)
    results = dict(re.findall(r"^ENDED (\S+) (\d+)", console, re.M))
    failed = [name for name in PASSES if results.get(name) != "0"]
    for name in failed:
        print(f"{name}: exit {results.get(name, 'missing: the machine did not get there')}")
    refused = [source for source in KERNEL_SOURCES if not re.search(rf"(?m)^{source}\s+yes", console)]
    if refused:
        print(f"programs that this kernel does not take: {', '.join(refused)}")
    return 1 if failed or refused else 0


if __name__ == "__main__":
    sys.exit(main())
