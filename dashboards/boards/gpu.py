# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
from .panels import GPU, GREEN_OR_RED, HOST, Board, lines, row, stat, strip, switch_mapping, table

NO_GPU = "No GPU: the source nvml is not up on the chosen nodes"
NO_ECC = "The GPUs have no ECC memory, or do not count its errors"
NO_XID = "No Xid error has been seen since the exporter started"
NO_NVLINK = "The GPUs have no NVLink"
BAD = {"colors": ((None, "green"), (1, "red")), "mappings": [switch_mapping(("no", "green"), ("yes", "red"))]}


def by_gpu(metric, more=""):
    return f"max by (instance, gpu{more}) ({metric})"


BOARD = Board(
    "gpu", "GPU health", "Which GPU is ill, and what must be done with it?",
    row("Now",
        stat("GPUs", "GPUs that NVML lists on the chosen nodes.", "none", NO_GPU, "count(max by (instance, gpu_uuid) (rankscope_gpu_up{@node}))"),
        stat("Do not answer", "GPUs that did not answer the last poll in time.", "none", NO_GPU, "sum(rankscope_gpu_up{@node} == bool 0)", colors=GREEN_OR_RED),
        stat("Not healthy", "GPUs that report anything but full health.", "none", NO_GPU, 'sum(rankscope_gpu_health{@node,state="healthy"} == bool 0)',
             colors=GREEN_OR_RED),
        stat("Need a reset", "GPUs whose Xid errors require a reset, a reboot or an inspection that has not been seen to happen.", "none",
             "No source reports Xid errors: neither the kernel log nor NVML's events can be read",
             'sum(rankscope_gpu_xid_pending_action{@node,action="none"} == bool 0)', colors=GREEN_OR_RED),
        stat("Need replacement", "GPUs with a defective memory row that could not be remapped.", "none", NO_ECC, "sum(rankscope_gpu_row_remap_failed{@node})",
             colors=GREEN_OR_RED),
        stat("Throttled by hardware", "GPUs whose clocks are limited by heat, power or a brake now.", "none", NO_GPU,
             'sum(max by (instance, gpu_uuid) (rankscope_gpu_throttle_active{@node,reason=~"hw_.*|sw_thermal"}))', colors=GREEN_OR_RED),
        strip("Health", "Whether the GPU reports any loss of health: a summary of the panels below that no verdict relies on.", "none", NO_GPU, GPU,
              "1 - " + by_gpu('rankscope_gpu_health{@node,state="healthy"}'), size=(12, 8), colors=GREEN_OR_RED,
              mappings=[switch_mapping(("healthy", "green"), ("not healthy", "red"))]),
        table("What to do", "Actions that the Xid errors of a GPU require and that have not been seen to happen.", "none",
              "No source reports Xid errors: neither the kernel log nor NVML's events can be read",
              "topk(50, " + by_gpu('rankscope_gpu_xid_pending_action{@node,action!="none"}', ", action") + ")", ("instance", "gpu", "action"), size=(12, 8), value="needed", largest_first=True)),
    row("Errors",
        lines("Xid errors", "Xid errors of each GPU since the exporter started, by code; the line steps up at an error.", "none", NO_XID,
              (GPU + " Xid {{xid}}", by_gpu("rankscope_gpu_xid_errors_total{@node}", ", xid"))),
        table("Last Xid errors", "When each GPU last had an Xid error of each code, also before the exporter started.", "dateTimeAsIso", NO_XID,
              "topk(50, 1000 * " + by_gpu("rankscope_gpu_last_xid_timestamp_seconds{@node}", ", xid") + ")", ("instance", "gpu", "xid"), size=(12, 8), value="last", largest_first=True),
        lines("NVSwitch errors", "SXid errors of the node's NVSwitches since the exporter started, by code.", "none",
              "No SXid error has been seen since the exporter started, or the node has no NVSwitch",
              (HOST + " SXid {{sxid}} fatal {{fatal}}", "max by (instance, sxid, fatal) (rankscope_nvswitch_sxid_errors_total{@node})")),
        lines("Memory errors that were not corrected", "Uncorrected ECC errors since the driver was loaded.", "none", NO_ECC,
              (GPU, 'sum by (instance, gpu) (rankscope_gpu_ecc_errors_total{@node,kind="uncorrected",scope="volatile"})')),
        lines("Memory errors that were corrected", "Corrected ECC errors since the driver was loaded.", "none", NO_ECC,
              (GPU, 'sum by (instance, gpu) (rankscope_gpu_ecc_errors_total{@node,kind="corrected",scope="volatile"})')),
        lines("Remapped memory rows", "Rows remapped over the GPU's lifetime, by cause.", "none", NO_ECC,
              (GPU + " {{cause}}", by_gpu("rankscope_gpu_row_remaps{@node}", ", cause"))),
        strip("Remapping waits for a reset", "Whether a defective memory row waits for a reset of the GPU to be remapped.", "none", NO_ECC, GPU,
              by_gpu("rankscope_gpu_row_remap_pending{@node}"), size=(12, 8), **BAD),
        lines("PCIe packets sent again", "Packets per second that the GPU or its link partner had to send again: a bad slot or riser.", "cps",
              "The GPUs do not count this", (GPU, "sum by (instance, gpu) (rate(rankscope_gpu_pcie_replays_total{@node}[$__rate_interval]))"))),
    row("Heat, power and clocks",
        lines("Temperature", "Temperature of the GPU's die (core) and of its memory.", "celsius", NO_GPU,
              (GPU + " {{sensor}}", by_gpu("rankscope_gpu_temperature_celsius{@node}", ", sensor"))),
        lines("Margin to slowdown", "Degrees by which the GPU is below its nearest slowdown temperature.", "celsius", "The GPUs do not report this",
              (GPU, by_gpu("rankscope_gpu_temperature_margin_celsius{@node}"))),
        lines("Share of the power limit", "Power draw as a share of the enforced limit.", "percentunit", NO_GPU,
              (GPU, by_gpu("rankscope_gpu_power_watts{@node}") + " / on (instance, gpu) " + by_gpu('rankscope_gpu_power_limit_watts{@node,kind="enforced"}')),
              max=1.1),
        lines("Share of the maximum clock", "Clock of the multiprocessors as a share of its maximum.", "percentunit", NO_GPU,
              (GPU, by_gpu('rankscope_gpu_clock_hertz{@node,domain="sm"}') + " / on (instance, gpu) " + by_gpu('rankscope_gpu_clock_max_hertz{@node,domain="sm"}')),
              max=1),
        lines("Time throttled", "Share of the time in which a reason limited the GPU's clocks; idleness is left out.", "percentunit", NO_GPU,
              (GPU + " {{reason}}", 'sum by (instance, gpu, reason) (rate(rankscope_gpu_throttled_seconds_total{@node,reason!="gpu_idle"}[$__rate_interval]))'),
              size=(24, 8), max=1)),
    row("Links",
        lines("PCIe link against its maximum", "Lanes times generation that the link uses, as a share of what GPU and slot support. A lower generation is "
              "normal while the GPU idles; fewer lanes never are.", "percentunit", "The GPUs do not report their link",
              (GPU, "(" + by_gpu("rankscope_gpu_pcie_link_width{@node}") + " * on (instance, gpu) " + by_gpu("rankscope_gpu_pcie_link_generation{@node}")
               + ") / on (instance, gpu) (" + by_gpu("rankscope_gpu_pcie_link_width_max{@node}") + " * on (instance, gpu) "
               + by_gpu("rankscope_gpu_pcie_link_generation_max{@node}") + ")"), max=1),
        lines("NVLink links up", "Number of the GPU's NVLink links that are up; all GPUs of a node should have the same.", "none", NO_NVLINK,
              (GPU, by_gpu("rankscope_gpu_nvlink_active_links{@node}"))),
        lines("NVLink errors", "Errors on the GPU's NVLink links, by kind.", "none", NO_NVLINK,
              (GPU + " {{kind}}", by_gpu("rankscope_gpu_nvlink_errors_total{@node}", ", kind"))),
        strip("On the NVLink fabric", "Whether the GPU has registered with the fabric manager.", "none", "The GPUs are not on an NVLink fabric", GPU,
              by_gpu('rankscope_gpu_fabric_state{@node,state="completed"}'), size=(12, 8), colors=((None, "red"), (1, "green")),
              mappings=[switch_mapping(("no", "red"), ("yes", "green"))])),
    row("Inventory",
        table("Serial numbers", "What a vendor asks for: model, serial number, PCI address, driver.", "none", NO_GPU,
              "max by (instance, gpu, model, serial, pci_bus_id, driver_version, gpu_uuid) (rankscope_gpu_info{@node})",
              ("instance", "gpu", "model", "serial", "pci_bus_id", "driver_version", "gpu_uuid"), value=None)),
    hours=6)
