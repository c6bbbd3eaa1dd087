# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What /metrics says of real GPUs, field by field, beside `nvidia-smi -q -x`, which reads the same library by another way.

Numbers that stand still must be the same. Those that move (power, clocks, memory in use) must lie between what nvidia-smi said
before and after, with some room; those that count may only have risen. A field that nvidia-smi calls N/A must be absent.
"""
import math
import re
import shutil
import subprocess
import sys
import time
import unittest
import xml.etree.ElementTree as ElementTree
from collections import namedtuple
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "serve"))

from serve_test import BINARY, ServeTest, wait_for  # noqa: E402

MIB = 2 ** 20
# Below the card's element of the XML; the series without gpu and gpu_uuid; the unit; how far a moving value may be off, of it
# and at least. 0, 0: it stands still.
Field = namedtuple("Field", "path series factor relative least")
FIELDS = [
    Field("fb_memory_usage/total", "rankscope_gpu_memory_total_bytes", MIB, 0, MIB),
    Field("fb_memory_usage/reserved", "rankscope_gpu_memory_reserved_bytes", MIB, 0.05, 32 * MIB),
    Field("fb_memory_usage/used", "rankscope_gpu_memory_used_bytes", MIB, 0.05, 64 * MIB),
    Field("fb_memory_usage/free", "rankscope_gpu_memory_free_bytes", MIB, 0.05, 64 * MIB),
    Field("bar1_memory_usage/used", "rankscope_gpu_bar1_used_bytes", MIB, 0.5, 32 * MIB),
    Field("utilization/gpu_util", "rankscope_gpu_engine_active_ratio", 0.01, 0.2, 0.3),
    Field("utilization/memory_util", "rankscope_gpu_memory_busy_ratio", 0.01, 0.2, 0.3),
    Field("utilization/encoder_util", "rankscope_gpu_encoder_active_ratio", 0.01, 0.2, 0.3),
    Field("utilization/decoder_util", "rankscope_gpu_decoder_active_ratio", 0.01, 0.2, 0.3),
    Field("temperature/gpu_temp", 'rankscope_gpu_temperature_celsius{sensor="core"}', 1, 0, 5),
    Field("temperature/memory_temp", 'rankscope_gpu_temperature_celsius{sensor="memory"}', 1, 0, 5),
    Field("fan_speed", "rankscope_gpu_fan_speed_ratio", 0.01, 0, 0.1),
    Field("gpu_power_readings/average_power_draw|gpu_power_readings/power_draw|power_readings/power_draw",
          "rankscope_gpu_power_watts", 1, 0.3, 20),
    Field("gpu_power_readings/current_power_limit|power_readings/enforced_power_limit",
          'rankscope_gpu_power_limit_watts{kind="enforced"}', 1, 0, 0.01),
    Field("gpu_power_readings/default_power_limit|power_readings/default_power_limit",
          'rankscope_gpu_power_limit_watts{kind="default"}', 1, 0, 0.01),
    Field("gpu_power_readings/max_power_limit|power_readings/max_power_limit", 'rankscope_gpu_power_limit_watts{kind="max"}', 1, 0,
          0.01),
    Field("clocks/graphics_clock", 'rankscope_gpu_clock_hertz{domain="graphics"}', 1e6, 0.5, 300e6),
    Field("clocks/sm_clock", 'rankscope_gpu_clock_hertz{domain="sm"}', 1e6, 0.5, 300e6),
    Field("clocks/mem_clock", 'rankscope_gpu_clock_hertz{domain="mem"}', 1e6, 0.5, 300e6),
    Field("clocks/video_clock", 'rankscope_gpu_clock_hertz{domain="video"}', 1e6, 0.5, 300e6),
    Field("max_clocks/graphics_clock", 'rankscope_gpu_clock_max_hertz{domain="graphics"}', 1e6, 0, 0),
    Field("max_clocks/sm_clock", 'rankscope_gpu_clock_max_hertz{domain="sm"}', 1e6, 0, 0),
    Field("max_clocks/mem_clock", 'rankscope_gpu_clock_max_hertz{domain="mem"}', 1e6, 0, 0),
    Field("pci/pci_gpu_link_info/pcie_gen/max_link_gen", "rankscope_gpu_pcie_link_generation_max", 1, 0, 0),
    Field("pci/pci_gpu_link_info/pcie_gen/current_link_gen", "rankscope_gpu_pcie_link_generation", 1, 0, 4),
    Field("pci/pci_gpu_link_info/link_widths/max_link_width", "rankscope_gpu_pcie_link_width_max", 1, 0, 0),
    Field("pci/pci_gpu_link_info/link_widths/current_link_width", "rankscope_gpu_pcie_link_width", 1, 0, 0),
    Field("remapped_rows/remapped_row_corr", 'rankscope_gpu_row_remaps{cause="correctable"}', 1, 0, 0),
    Field("remapped_rows/remapped_row_unc", 'rankscope_gpu_row_remaps{cause="uncorrectable"}', 1, 0, 0),
    Field("remapped_rows/remapped_row_pending", "rankscope_gpu_row_remap_pending", 1, 0, 0),
    Field("remapped_rows/remapped_row_failure", "rankscope_gpu_row_remap_failed", 1, 0, 0),
    *(Field(f"remapped_rows/row_remapper_histogram/row_remapper_histogram_{level}",
            f'rankscope_gpu_row_remap_available_banks{{level="{level}"}}', 1, 0, 0) for level in ("max", "high", "partial", "low", "none")),
]
# nvidia-smi's names of the same reasons have changed with its releases.
REASONS = {"gpu_idle": "gpu_idle", "applications_clocks_setting": "app_clocks", "sw_power_cap": "sw_power_cap",
           "hw_slowdown": "hw_slowdown", "sync_boost": "sync_boost", "sw_thermal_slowdown": "sw_thermal",
           "hw_thermal_slowdown": "hw_thermal", "hw_power_brake_slowdown": "hw_power_brake"}


def missing():
    """Why nothing can be tested here; empty: it can."""
    if shutil.which("nvidia-smi") is None:
        return "no nvidia-smi: no NVIDIA driver on this machine"
    said = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True)
    return "" if said.returncode == 0 and "GPU 0" in said.stdout else f"no NVIDIA GPU: {said.stdout or said.stderr}".strip()


class GpuTest(ServeTest):
    def setUp(self):
        if reason := missing():
            print(f"skipped: {reason}", file=sys.stderr)
            self.skipTest(reason)
        super().setUp()

    def smi(self):
        """UUID -> element of the card."""
        text = subprocess.run(["nvidia-smi", "-q", "-x"], capture_output=True, text=True, check=True).stdout
        return {card.findtext("uuid"): card for card in ElementTree.fromstring(text).findall("gpu")}

    def cards(self, *flags):
        config = Path(self.folder) / "cards.yaml"
        config.write_text("metrics: {profile: full, max_series: 16000}\n")  # the profile has no flag
        daemon = self.daemon("--config", str(config), *flags)
        wait_for(f"the GPUs; {daemon.text()}", lambda: daemon.metric('rankscope_source_up{source="nvml"}') == 1)
        return daemon


def number(card, path):
    """None: N/A, or not there at all."""
    for one in path.split("|"):
        said = card.findtext(one)
        if said is None or "N/A" in said or "Not Supported" in said:
            continue
        if said.strip() in ("Yes", "No"):
            return float(said.strip() == "Yes")
        if found := re.match(r"\s*(-?[\d.]+)", said):
            return float(found[1])
    return None


def series(page, uuid):
    """Name with labels, but for gpu and gpu_uuid, -> value, of one card."""
    found = {}
    for name, labels, value in re.findall(r"^(rankscope_gpu_\w+)\{([^}]*)\} (\S+)$", page, re.M):
        pairs = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if pairs.pop("gpu_uuid", None) != uuid:
            continue
        pairs.pop("gpu", None)
        own = ",".join(f'{key}="{word}"' for key, word in pairs.items())
        found[name + (f"{{{own}}}" if own else "")] = float(value)
    return found


class EveryField(GpuTest):
    def test_each_is_what_nvidia_smi_says(self):
        daemon = self.cards()
        time.sleep(3)  # rates need two looks
        before = self.smi()
        time.sleep(1.5)
        page = daemon.get("/metrics")[1]
        after = self.smi()
        self.assertEqual(sorted(before), sorted(set(re.findall(r'^rankscope_gpu_up\{.*gpu_uuid="([^"]+)"\} 1$', page, re.M))))
        wrong, compared, absent = [], 0, 0
        for uuid, card in before.items():
            said = series(page, uuid)
            for field in FIELDS:
                low, high = (number(each[uuid], field.path) for each in (before, after))
                own = said.get(field.series)
                if low is None or high is None:
                    absent += 1
                    # Another release may not print what this one reads: told, and not a mistake.
                    print(f"{uuid}: {field.series}: nvidia-smi does not tell; here {own}", file=sys.stderr)
                    continue
                low, high = sorted((low * field.factor, high * field.factor))
                room = max(field.least, field.relative * high)
                compared += 1
                if own is None or not low - room <= own <= high + room + 1e-9:
                    wrong.append(f"{uuid}: {field.series} = {own}, nvidia-smi: {low} to {high}")
            wrong += self.reasons(card, after[uuid], said, uuid) + self.errors(after[uuid], said, uuid)
        print(f"{compared} values compared, {absent} not told by nvidia-smi", file=sys.stderr)
        self.assertGreater(compared, 10 * len(before))
        self.assertEqual(wrong, [])

    def reasons(self, before, after, said, uuid):
        wrong = []
        for word, own in REASONS.items():
            paths = [f"clocks_{kind}_reasons/clocks_{kind}_reason_{word}" for kind in ("event", "throttle")]
            words = [next((text for path in paths if (text := each.findtext(path))), None) for each in (before, after)]
            value = said.get(f'rankscope_gpu_throttle_active{{reason="{own}"}}')
            # One that changes between the two looks may be either.
            if None in words or words[0] != words[1] or value is None:
                continue
            if (value == 1) != (words[0] == "Active"):
                wrong.append(f"{uuid}: throttle reason {own} = {value}, nvidia-smi: {words[0]}")
        return wrong

    def errors(self, card, said, uuid):
        """All uncorrected errors since the card was made, by whichever names this release has for them."""
        told = [value for path in ("dram_uncorrectable", "sram_uncorrectable", "sram_uncorrectable_parity",
                                   "sram_uncorrectable_secded") if (value := number(card, f"ecc_errors/aggregate/{path}")) is not None]
        own = [value for name, value in said.items()
               if name.startswith("rankscope_gpu_ecc_errors_total{") and 'kind="uncorrected"' in name and 'scope="aggregate"' in name]
        if not told or not own:
            return []
        return [] if math.isclose(sum(told), sum(own)) else [f"{uuid}: uncorrected errors {sum(own)}, nvidia-smi: {sum(told)}"]


class Identity(GpuTest):
    def test_model_place_and_driver(self):
        page = self.cards().get("/metrics")[1]
        driver = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "-i", "0"],
                                capture_output=True, text=True, check=True).stdout.strip()
        for uuid, card in self.smi().items():
            found = re.search(rf'^rankscope_gpu_info\{{.*gpu_uuid="{uuid}".*\}} 1$', page, re.M)
            self.assertIsNotNone(found, uuid)
            self.assertIn(f'model="{card.findtext("product_name")}"', found[0])
            self.assertIn(f'driver_version="{driver}"', found[0])
            self.assertIn(card.get("id").lower()[-10:-2], found[0].lower())

    def test_check_says_that_there_are_gpus(self):
        result = subprocess.run([BINARY, "check", "--state.dir", self.folder], capture_output=True, text=True, check=True)
        self.assertRegex(result.stdout, r"(?m)^gpu\s+yes\s+\S")


def main():
    outcome = unittest.main(module="__main__", exit=False, verbosity=2).result
    if not outcome.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if outcome.skipped and len(outcome.skipped) == outcome.testsRun else 0)


if __name__ == "__main__":
    main()
