# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What an alert is, and what a site may set.

An expression is PromQL with <names> of settings in it. An alert says whose it is; what it does not measure itself (node, job, rank,
owner) is joined to it from the series of recorded.py, of which there is exactly one for each job, GPU and exporter. So an alert is
never lost, and never an error, because two exporters describe the same job.
"""
import dataclasses
import re
import textwrap


# By class and action of detectors/model/xids.inc.
HARDWARE_XIDS = ("46|48|54|62|64|74|79|94|95|109|110|119|120|121|136|140|142|143|144|145|146|147|148|149|150|151|155|156|158|167|169|"
                 "171|172")
PROGRAM_XIDS = "8|11|13|25|31|32|60|68|69|80|82|83|84|86|88|89|96|97|98|99|100|101|102|103|104|105|108|137|139"


def setting(default, what):
    return dataclasses.field(default=default, metadata={"what": what})


@dataclasses.dataclass(frozen=True)
class Settings:
    runbook_url: str = setting("https://rankscope.example/runbooks/{alert}.md",
                               "address of an alert's page; the pages are in alerts/runbooks/: publish them where operators read")
    job_url: str = setting("http://rankscope.example:10178/job/{job_id}", "address of a job's page, of a daemon that knows every job")
    targets: str = setting('job="rankscope"', "matchers of the series `up` of the exporters")
    selector: str = setting("", 'matchers that every metric of an exporter gets, such as cluster="a"')
    cluster: str = setting("cluster", "label that tells apart clusters whose jobs have the same numbers; clusters without it are one")
    node_pattern: str = setting("(.+?)(:[0-9]+)?", "regular expression whose first group is the node's name in the label `instance`")
    held: str = setting("30s", "how long a verdict of broken infrastructure has to stand")
    drop: str = setting("0.8", "a run is slow below this share of its own past")
    recent: str = setting("15m", "a run's present, as far as its speed is concerned")
    past: str = setting("2h", "a run's past, with which its present is compared")
    age: str = setting("1h", "how long a run must have been observed before it has a past")
    idle: str = setting("30m", "how long an allocated GPU may be idle")
    idle_ratio: str = setting("0.02", "a GPU is idle below this share of time in which anything runs on it")
    restarts: str = setting("3", "restarts of a job by Slurm within an hour that make a storm")
    requeues: str = setting("50", "requeued jobs within half an hour that make a storm")
    overdue: str = setting("2.5", "a checkpoint is overdue after this many of the run's usual intervals")
    saves_left: str = setting("3", "the disk is nearly full when fewer saves than this fit")
    full_in: str = setting("6 * 3600", "the disk is nearly full when it will be full within so many seconds")
    full_soon: str = setting("3600", "and is as good as full when it will be full within so many seconds")
    ecc_corrected: str = setting("100", "corrected memory errors of a GPU within an hour that are too many")
    nvlink_errors: str = setting("100", "replayed or recovered transfers of a GPU within a quarter of an hour that are too many")
    throttled: str = setting("0.1", "share of time for which heat or power may lower a GPU's clocks")
    hardware_xids: str = setting(HARDWARE_XIDS, "Xids that page somebody: of the GPU, its links, or a driver that needs a reset")
    program_xids: str = setting(PROGRAM_XIDS, "Xids that a program causes")
    nodes_out: str = setting("0.1", "share of nodes out of service that is an emergency")


def render(text, settings):
    """`text` with the settings put in, and the selector put into each metric of an exporter."""
    values = dataclasses.asdict(settings)
    text = re.sub(r"<(\w+)>", lambda found: values[found[1]], text)
    if not settings.selector:
        return text
    with_braces = re.sub(r"\b(rankscope_\w+)\{", lambda found: f"{found[1]}{{{settings.selector},", text)
    return re.sub(r"\b(rankscope_\w+)\b(?!\{)", lambda found: f"{found[1]}{{{settings.selector}}}", with_braces)


OWNER = "user, account, partition"


def one(series, keys):
    """1 for each of `keys`, with the labels of its newest series: after a restart of Prometheus the ones from before stay visible for five
    minutes. Their value is the time at which they were recorded."""
    return f"topk by ({keys}) (1, {series}) ^ 0"


# By whose the alert is: what its expression is joined with. `%s` stands for the expression.
JOINS = {
    "job": f"(\n%s\n) * on (<cluster>, job_id) group_left ({OWNER}) {one('training_job:owner:time', '<cluster>, job_id')}",
    "gpu": f"(\n%s\n) * on (<cluster>, instance, gpu_uuid) group_left (node, job_id, rank, {OWNER})\n"
           f"  {one('training_job:gpu_owner:time', '<cluster>, instance, gpu_uuid')}",
    "node": f"(\n%s\n) * on (<cluster>, instance) group_left (node, job_id, {OWNER})\n"
            f"  {one('training_job:node_owner:time', '<cluster>, instance')}",
    # Of a node as Slurm names it, which may have no exporter.
    "slurm": f"(\n%s\n) * on (<cluster>, node) group_left (job_id, {OWNER})\n"
             f"  {one('training_job:host_owner:time', '<cluster>, node')}\n"
             "or on (<cluster>, node) (\n%s\n)",
    "cluster": "%s",
}


@dataclasses.dataclass(frozen=True)
class Alert:
    name: str
    of: str        # a key of JOINS
    severity: str  # critical pages somebody, warning waits for the morning, info is for who looks
    domain: str    # workload | infrastructure | scheduler | unknown | exporter; empty: the expression's own label
    wait: str
    expr: str
    summary: str
    description: str
    nodes: bool = False  # annotations list the nodes whose exporters name this verdict, and GPUs of the job that report damage

    def expression(self):
        expr = textwrap.dedent(self.expr).strip()
        join = JOINS[self.of]
        if join == "%s":
            return expr
        return join.replace("%s", textwrap.indent(expr, "  "))

    def own_labels(self):
        return {"severity": self.severity, **({"domain": self.domain} if self.domain else {})}

    def annotations(self, settings):
        plain = dataclasses.replace(settings, selector="")
        texts = {"summary": self.summary, "description": render(" ".join(self.description.split()), plain)}
        if self.nodes:
            texts["nodes"] = render(NODES, plain)
            texts["gpus"] = render(SUSPECTS, plain)
        if self.of != "cluster":
            texts["job_url"] = "{{ if $labels.job_id }}%s{{ end }}" % settings.job_url.replace(
                "{job_id}", "{{ $labels.job_id | urlquery }}")
        texts["runbook_url"] = settings.runbook_url.replace("{alert}", self.name)
        return {key: tolerant(text) for key, text in texts.items()}


def tolerant(text):
    """To vmalert `$labels.x` is an error, and the alert is lost, where there is no label x."""
    return re.sub(r"\$labels\.(\w+)", r'(index $labels "\1")', text)


# Nodes, ranks and GPUs of a job are many and change: as labels they would make an alert of each. %q: ids of jobs are their users' words.
OF_JOB = "(printf `%s` $labels.<cluster> $labels.job_id%s)"
VERDICTS = "count by (instance) (rankscope_verdict_info{<cluster>=%q,job_id=%q,code=%q})"
GPUS = ("topk(8, last_over_time(rankscope_rank_gpu_info{<cluster>=%q,job_id=%q}[1h]) and on (<cluster>, instance, gpu_uuid) "
        '(time() - rankscope_gpu_last_xid_timestamp_seconds{xid=~"<hardware_xids>"} < 3600 '
        'or rankscope_gpu_health{state=~"unhealthy|lost|unresponsive"} == 1))')
NODES = ("{{ with query %s }}{{ . | first | value }}:{{ end }}" % (OF_JOB % (f"count({VERDICTS})", " $labels.code")) +
         '{{ range query %s }} {{ . | label "instance" }}{{ end }}' % (OF_JOB % (f"topk(8, {VERDICTS})", " $labels.code")))
SUSPECTS = ('{{ range query %s }}{{ . | label "instance" }} GPU {{ . | label "gpu" }} of rank {{ . | label "rank" }}; {{ end }}'
            % (OF_JOB % (GPUS, "")))
