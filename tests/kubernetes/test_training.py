"""A distributed training as an indexed Job: its success, its rights, and what happens when tasks are lost.

The compiled pipeline runs in a pod (`--local`); the job of its Trainer has separate pods. The pod's
service account has the rights that docs/kubeflow.md lists, and no others.
"""

import json
import pathlib
import re

import pytest

from pipelines.config.pod_spec import restricted
from tests.kubernetes.namespace import IMAGE, TOOLS, inside, result_of

PROJECT = pathlib.Path(__file__).parents[2]
ACCOUNT = "pipeline-runner"
JOB_LABEL = "batch.kubernetes.io/job-name"
INDEX = "batch.kubernetes.io/job-completion-index"
TASKS = 3  # a chief, a worker, a parameter server
CHIEF, WORKER = 0, 1
CONFIG = f"""
name = "taxi"
[data]
path = "taxi.csv"
label = "tips"
problem_type = "binary"
[module]
file = "cluster_module.py"
[trainer]
workers = 1
ps = 1
eval_steps = 2
[evaluator]
label = "tips_xf"
[kubeflow]
image = "{IMAGE}"
[kubeflow.training_job]
api_server = "http://127.0.0.1:8001"
poll_secs = 1
restarts = 2
deadline_secs = 1500
"""


def documented_rights():
    """Returns the rules of a Role from the table of docs/kubeflow.md."""
    text = (PROJECT / "docs/kubeflow.md").read_text()
    (table,) = re.findall(r"\| resource \| verbs \|\n\|---\|---\|\n((?:\|.*\|\n)+)", text)
    rules = []
    for line in table.splitlines():
        resources, verbs = (cell.strip() for cell in line.strip("|").split("|"))
        names = [name.strip("` ") for name in resources.split(",")]
        groups = {name.partition(".")[2] for name in names}
        rules.append(
            {
                "apiGroups": sorted(groups),
                "resources": [name.partition(".")[0] for name in names],
                "verbs": verbs.split(", "),
            }
        )
    return rules


def grant(training, rules):
    """Gives the account of the runner these rights, instead of its previous rights."""
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ACCOUNT}
    training.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": ACCOUNT},
            "rules": rules,
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": ACCOUNT},
            "roleRef": role,
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT}],
        },
    )


@pytest.fixture(scope="module")
def training(namespace):
    training = namespace("training")
    grant(training, documented_rights())
    module = pathlib.Path(__file__).with_name("cluster_module.py")
    training.write("cluster_module.py", module.read_text())
    training.write("taxi.toml", CONFIG)
    training.run(
        "data",
        *("python", "-m", "pipelines.examples.taxi.generate", "--rows=2000", "--seed=1"),
        *("--out", inside("taxi.csv")),
    )
    return training


@pytest.fixture
def switch(training):
    """Sets the switches of the module; without any, the training is quick and succeeds.

    The jobs of the test are deleted in the end.
    """
    for name in ("slow", "fail"):
        (training.volume / name).unlink(missing_ok=True)
    yield lambda name: training.write(name, "")
    training.kubectl("delete", "jobs", "--all", "--cascade=foreground", "--timeout=120s")


def start(training, name, steps):
    """Starts the pipeline in a pod; another number of steps trains anew, all before comes from the cache."""
    proxy = {
        "name": "kubectl-proxy",
        "image": TOOLS,
        "command": ["/kubectl", "proxy", "--port=8001"],
        "restartPolicy": "Always",  # it ends with the pod
        "securityContext": restricted(),
    }
    training.start(
        name,
        *("python", "-m", "estimator_pipelines", "run", "--runner", "kubeflow", "--local"),
        *("--config", inside("taxi.toml"), "--root", inside("root")),
        *("--set", f"trainer.train_steps={steps}"),
        initContainers=[proxy],
        serviceAccountName=ACCOUNT,
        automountServiceAccountToken=True,
        terminationGracePeriodSeconds=60,
    )


def job_of(training):
    """Returns the present Job, or None."""
    jobs = training.read("jobs")["items"]
    return jobs[-1] if jobs else None


def tasks_of(training, phase):
    """Returns the pods of the job in a phase, by index; of two with an index, the newer one."""
    pods = sorted(training.pods(JOB_LABEL), key=lambda pod: pod["metadata"]["creationTimestamp"])
    return {int(pod["metadata"]["labels"][INDEX]): pod for pod in pods if pod["status"]["phase"] == phase}


def newest_checkpoint(training):
    """Returns the step of the newest checkpoint of the job that runs; 0 without one."""
    steps = training.volume.glob("root/artifacts/Trainer/*")
    paths = [
        path
        for step in steps
        if not (step / "step.json").exists()  # it has not finished
        for path in step.glob("**/model.ckpt-*.index")
    ]
    return max((int(re.findall(r"-(\d+)\.index", path.name)[0]) for path in paths), default=0)


def wait_for_training(training):
    """Waits until all tasks run and a checkpoint after the first has been saved; returns the tasks."""
    training.wait_for(lambda: newest_checkpoint(training) >= 10, "no checkpoint has been saved", 900)
    tasks = tasks_of(training, "Running")
    assert sorted(tasks) == list(range(TASKS))
    return tasks


def kill(cluster, pod):
    """Kills the process of a pod's container, as when memory runs out."""
    (status,) = pod["status"]["containerStatuses"]
    task = status["containerID"].removeprefix("containerd://")
    cluster.run_inside("ctr", "-n", "k8s.io", "tasks", "kill", "--signal", "SIGKILL", task)


@pytest.mark.timeout(3600)
def test_a_job_trains_with_the_documented_rights(training, cluster, switch):
    start(training, "success", 60)
    code, output = training.ended("success")
    print(output)
    assert (code, result_of(output)["status"]) == (0, "pushed")
    job = job_of(training)
    assert job["status"]["succeeded"] == TASKS
    assert not job["status"].get("failed")
    for pod in training.pods(JOB_LABEL):
        (container,) = pod["spec"]["containers"]
        print(pod["metadata"]["name"], json.dumps(container["securityContext"], sort_keys=True))
        assert container["securityContext"] == restricted()
        assert not pod["spec"]["securityContext"]
    # Each request was one of the table, and was answered.
    asked = set()
    for line in (cluster.state / "audit.log").read_text().splitlines():
        request = json.loads(line)
        if request["user"]["username"] == f"system:serviceaccount:training:{ACCOUNT}":
            assert request["responseStatus"]["code"] < 300, request
            reference = request["objectRef"]
            resource = "/".join(filter(None, (reference["resource"], reference.get("subresource"))))
            asked.add((reference.get("apiGroup", ""), resource, request["verb"]))
    print(sorted(asked))
    documented = {
        (group, resource, verb)
        for rule in documented_rights()
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert asked <= documented
    assert ("batch", "jobs", "create") in asked


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("name", "index"), [("worker", WORKER), ("chief", CHIEF)])
def test_a_task_that_is_killed_is_started_again(training, cluster, switch, name, index):
    switch("slow")
    start(training, f"{name}-killed", 200 + index)
    killed = wait_for_training(training)[index]
    kill(cluster, killed)
    saved = newest_checkpoint(training)

    def another():
        pod = tasks_of(training, "Running").get(index)
        return pod and pod["metadata"]["uid"] != killed["metadata"]["uid"]

    training.wait_for(another, f"the {name} has not been replaced")
    pod = tasks_of(training, "Running")[index]["metadata"]["name"]
    training.wait_for(lambda: newest_checkpoint(training) > saved + 10, "the training has not gone on")
    log = training.kubectl("logs", pod)
    (training.volume / "slow").unlink()
    code, output = training.ended(f"{name}-killed")
    print(output)
    assert (code, result_of(output)["status"]) != (0, "failed"), output
    assert code in (0, 3), output
    job = job_of(training)
    assert (job["status"]["succeeded"], job["status"]["failed"]) == (TASKS, 1)
    if index == CHIEF:
        (step,) = re.findall(r"Restoring parameters from \S+model\.ckpt-(\d+)", log)[:1]
        print(f"killed with checkpoint {saved}, continued from {step}")
        assert int(step) >= 10


@pytest.mark.timeout(3600)
def test_code_that_fails_is_the_reason_of_the_run(training, switch):
    switch("fail")
    start(training, "failing", 61)
    code, output = training.ended("failing")
    print(output)
    result = result_of(output)
    assert (code, result["status"]) == (1, "failed")
    assert "ValueError: the 13th taxi has no driver" in result["reason"]
    job = job_of(training)
    conditions = {condition["type"]: condition for condition in job["status"]["conditions"]}
    assert conditions["Failed"]["reason"] == "PodFailurePolicy"  # it was not started again
    record = training.run(
        "record", *("python", "-m", "estimator_pipelines", "runs", "--json", "--root", inside("root"))
    )
    assert "ValueError: the 13th taxi has no driver" in record


@pytest.mark.timeout(3600)
def test_a_run_that_is_stopped_deletes_its_job(training, switch):
    switch("slow")
    start(training, "stopped", 400)
    wait_for_training(training)
    training.kubectl("delete", "pod", "stopped", "--wait=false")
    training.wait_for(lambda: job_of(training) is None, "the job is still there", 60)
    training.wait_for(lambda: not training.pods(JOB_LABEL), "its pods are still there", 60)
    assert not training.read("services")["items"]


@pytest.mark.timeout(3600)
def test_a_node_that_is_emptied_loses_no_training(training, cluster, switch):
    switch("slow")
    start(training, "drained", 203)
    tasks = wait_for_training(training)
    saved = newest_checkpoint(training)
    cluster.kubectl("drain", "node1", f"--pod-selector={JOB_LABEL}", "--ignore-daemonsets", "--timeout=120s")
    cluster.kubectl("uncordon", "node1")
    former = {pod["metadata"]["uid"] for pod in tasks.values()}

    def all_are_new():
        running = tasks_of(training, "Running").values()
        return len({pod["metadata"]["uid"] for pod in running} - former) == TASKS

    training.wait_for(all_are_new, "the tasks have not been replaced")
    training.wait_for(lambda: newest_checkpoint(training) > saved + 10, "the training has not gone on")
    (training.volume / "slow").unlink()
    code, output = training.ended("drained")
    print(output)
    assert code in (0, 3), output
    job = job_of(training)
    assert job["status"]["succeeded"] == TASKS


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("resource", "verb"), [("jobs", "create"), ("services", "create"), ("jobs", "get")])
def test_a_right_that_is_missing_is_named(training, switch, resource, verb):
    rules = documented_rights()
    for rule in rules:
        if resource in rule["resources"]:
            rule["verbs"] = [allowed for allowed in rule["verbs"] if allowed != verb]
    grant(training, rules)
    try:
        start(training, f"without-{resource}-{verb}", 62)
        code, output = training.ended(f"without-{resource}-{verb}")
    finally:
        grant(training, documented_rights())
    reason = result_of(output)["reason"]
    print(reason)
    assert code == 1
    assert re.search(rf"cannot {verb} resource \"{resource}\"", reason)
    training.wait_for(lambda: job_of(training) is None or verb == "get", "the job is still there")
