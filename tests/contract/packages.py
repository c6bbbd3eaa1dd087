# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What packages say of themselves: their fields, their units, their manuals. tests/package/ builds and installs them."""
import gzip
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from command_line import COMMANDS
from contract import BINARY, ROOT, Skip, main, output_of, read

FOLDER = "deploy/package"
UNITS = {"rankscope.service": 3.5, "rankscope-controller.service": 1.5}  # highest exposure
SYSTEM_SECTION = {"serve", "check"}


def generated():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, ROOT / FOLDER / "manuals.py", "--binary", BINARY, folder], check=True)
        files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}
    return {name.removesuffix(".gz"): (gzip.decompress(data) if name.endswith(".gz") else data).decode() for name, data in files.items()}


def plain(page):
    return re.sub(r"\\f[BIR]", "", page).replace("\\-", "-").replace("\\e", "\\").replace("\\&", "")


def options_of(command):
    """Read apart from manuals.py: every word of the help's left column that is an option."""
    left = re.findall(r"^  (-.*?)(?:  |$|(?<=,)\n)", output_of(command, "--help"), re.M)
    return {option for cell in left for option in re.findall(r"(?<![\w.])--?[a-z][\w.-]*", cell.split(" ")[0])}


def test_manuals_have_every_option():
    findings, pages = [], generated()
    for command in COMMANDS:
        section = 8 if command in SYSTEM_SECTION else 1
        page = plain(pages.get(f"man/man{section}/rankscope-{command}.{section}", ""))
        entries = {name for line in page.splitlines() for name in re.findall(r"(?<![\w.])--?[a-z][\w.-]*", line)}
        wanted = options_of(command)
        if not wanted:
            findings.append(f"{command}: no option was read from its help")
        findings += [f"rankscope-{command}({section}) has no {option}" for option in sorted(wanted - entries)]
        for shell in ("rankscope.bash", "_rankscope"):
            findings += [f"{shell} has no {option} of {command}" for option in sorted(wanted)
                         if option.startswith("--") and option not in pages[shell]]
        findings += [f"rankscope.fish has no {option} of {command}" for option in sorted(wanted) if option.startswith("--") and
                     not re.search(rf"from {command}' -l {re.escape(option[2:])}\b", pages["rankscope.fish"])]
    return findings


def test_the_manual_of_the_configuration_has_every_key():
    page = plain(generated()["man/man5/rankscope.yaml.5"])
    keys, folders = [], []
    for line in output_of("serve", "--print-config").splitlines():
        if found := re.match(r"( *)([\w.]+):( .+)?$", line):
            folders = folders[:len(found[1]) // 2] + [found[2]]
            keys += [".".join(folders)] if found[3] else []
    if len(keys) < 50:
        return [f"only {len(keys)} keys were read"]
    return [f"rankscope.yaml(5) has no {key}" for key in keys if f"\n{key}: " not in page]


def test_shells_read_the_completions():
    findings, files = [], generated()
    for shell, name in (("bash", "rankscope.bash"), ("zsh", "_rankscope"), ("fish", "rankscope.fish")):
        if shutil.which(shell):
            read_it = subprocess.run([shell, "-n"], input=files[name], capture_output=True, text=True, check=False)
            findings += [f"{name}: {read_it.stderr.strip()}"] if read_it.returncode else []
    ask = f"{files['rankscope.bash']}\nCOMP_WORDS=(rankscope list pro) COMP_CWORD=2 COMPREPLY=(); _rankscope; echo ${{COMPREPLY[@]}}"
    answer = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=False).stdout.strip()
    return findings + ([] if answer == "probes" else [f"bash completes 'rankscope list pro' with {answer!r}"])


def test_fields_of_packages():
    path = BINARY.parent / "CPackConfig.cmake"
    if not path.exists():
        raise Skip(f"no {path}")
    fields = dict(re.findall(r'^set\((CPACK_\w+) "((?:[^"\\]|\\.)*)"\)', path.read_text(encoding="utf-8"), re.M))
    version = output_of("--version").split()[-1]
    wanted = {"CPACK_PACKAGE_NAME": "rankscope", "CPACK_PACKAGE_VERSION": version, "CPACK_INSTALL_PREFIX": "/usr",
              "CPACK_DEBIAN_PACKAGE_SECTION": "net", "CPACK_DEBIAN_PACKAGE_SHLIBDEPS": "ON", "CPACK_STRIP_FILES": "ON",
              "CPACK_RPM_PACKAGE_LICENSE": "Apache-2.0 AND (GPL-2.0-only OR BSD-2-Clause)"}
    findings = [f"{name} is {fields.get(name)!r}, not {value!r}" for name, value in wanted.items() if fields.get(name) != value]
    if not re.fullmatch(r".+ <[^<>@ ]+@[^<>@ ]+>", fields.get("CPACK_PACKAGE_CONTACT", "")):
        findings.append("CPACK_PACKAGE_CONTACT is no name with an address")
    if len(fields.get("CPACK_PACKAGE_DESCRIPTION_SUMMARY", "x" * 99)) > 80:
        findings.append("the summary has more than 80 characters")
    installed = re.findall(r"DESTINATION /(etc\S*)", read(f"{FOLDER}/CMakeLists.txt"))
    listed = (BINARY.parent / FOLDER / "conffiles").read_text(encoding="utf-8").split()
    if {f"/{folder.rstrip(')')}" for folder in installed} != {str(Path(name).parent) for name in listed}:
        findings.append(f"the conffiles {listed} are not what is installed in {installed}")
    return findings


def analyze(*arguments):
    if not shutil.which("systemd-analyze"):
        raise Skip("no systemd-analyze (package systemd)")
    return subprocess.run(["systemd-analyze", "--no-pager", *arguments], capture_output=True, text=True, check=False)


def test_units_are_understood():
    findings = []
    with tempfile.TemporaryDirectory() as folder:
        for unit in UNITS:
            path = Path(folder) / unit
            path.write_text(read(f"{FOLDER}/{unit}").replace("/usr/bin/rankscope", str(BINARY)), encoding="utf-8")
            result = analyze("verify", "--man=no", path)
            findings += [f"{unit}: {line}" for line in (result.stdout + result.stderr).splitlines() if unit in line]
    return findings


def test_what_a_unit_leaves_open_has_its_reason():
    findings = []
    for unit, limit in UNITS.items():
        result = analyze("security", "--offline=true", ROOT / FOLDER / unit)
        found = re.search(r"exposure level for \S+: ([\d.]+)", result.stdout)
        if found is None:
            raise Skip(f"systemd-analyze security cannot work offline: {result.stderr.strip()}")
        if float(found[1]) > limit:
            findings.append(f"{unit}: exposure {found[1]}, more than {limit}")
        if unit != "rankscope.service":
            continue
        text = read(f"{FOLDER}/{unit}")
        open_settings = {name for row in re.findall(r"^✗ (\S+)", result.stdout, re.M) for name in [re.split(r"[=/]", row)[0]]}
        findings += [f"{unit} leaves {name} open and does not name it" for name in sorted(open_settings) if name not in text and name != "User"]
    return findings


def test_the_page_is_shell():
    """tests/package/page_test.py executes it at night; an error of its syntax shows at once."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", read("deploy/README.md"), re.M | re.S)
    findings = [] if len([block for block in blocks if not block.startswith("# by hand")]) >= 6 else [f"{len(blocks)} blocks were read"]
    for block in blocks:
        read_it = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True, check=False)
        findings += [f"deploy/README.md: {read_it.stderr.strip()}"] if read_it.returncode else []
    return findings


if __name__ == "__main__":
    main(globals())
