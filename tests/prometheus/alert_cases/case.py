# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What a case of an alert is made of. A series may end with the exporter that it comes from: `rankscope_gpu_up{gpu="0"} @n1`."""
import dataclasses

JOB = {
    'rankscope_job_info{job_id="42",user="ada",account="science",partition="gpu",attempt="1"} @n1': "1x300",
    'rankscope_job_running{job_id="42"} @n1': "1x300",
}
CARD = 'gpu="3",gpu_uuid="GPU-a"'
GPU = {
    f"rankscope_gpu_up{{{CARD}}} @n1": "1x300",
    f'rankscope_job_gpu{{job_id="42",{CARD},source="slurm"}} @n1': "1x300",
    f'rankscope_rank_gpu_info{{job_id="42",rank="7",{CARD}}} @n1': "1x300",
}
OWNER = {"job_id": "42", "user": "ada", "account": "science", "partition": "gpu"}
ON_GPU = {**OWNER, "node": "n1", "gpu": "3", "gpu_uuid": "GPU-a", "rank": "7"}
ON_NODE = {**OWNER, "node": "n1"}
BARE_GPU = {"node": "n1", "gpu": "3", "gpu_uuid": "GPU-a"}


@dataclasses.dataclass(frozen=True)
class Case:
    alert: str
    what: str
    series: dict
    at: dict  # minute: the labels of each alert that fires then, as far as the case is about them


def info(code, family, severity, domain, state="live", more=""):
    return (f'rankscope_verdict_info{{job_id="42",family="{family}",code="{code}",sub="",scope="node",domain="{domain}",'
            f'severity="{severity}",phase="train",state="{state}"{more}}}')
