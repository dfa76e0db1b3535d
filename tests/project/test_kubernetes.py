"""The manifests in docs/deploy/kubernetes/: valid for Kubernetes, and in accord with each other and with Longboat."""

import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from test_deploy import DEPLOY, PAGE, instructions, read
from test_readme import complaint

from longboat.config.load import load_config, user_config_file
from longboat.config.settings import Config
from longboat.server.auth import Policy

kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="needs kubernetes-validate: make setup")
NAMES = sorted(f"kubernetes/{path.name}" for path in (DEPLOY / "kubernetes").iterdir())
OLDEST, NEWEST = "1.30", "1.37"


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(read(name)))


def one(kind: str, name: str = "longboat") -> dict[str, Any]:
    (found,) = [
        each for each in documents("kubernetes/nodes.yaml") if (each["kind"], each["metadata"]["name"]) == (kind, name)
    ]
    return found


def pod() -> dict[str, Any]:
    spec: dict[str, Any] = one("StatefulSet")["spec"]["template"]["spec"]
    return spec


def settings(config_map: dict[str, Any]) -> Config:
    """What Longboat makes of it."""
    with tempfile.TemporaryDirectory() as folder:
        file = user_config_file({}, Path(folder))
        file.parent.mkdir(parents=True)
        file.write_text(config_map["data"]["longboat.json"])
        return load_config(Path(folder), environ={}, user_dir=Path(folder))


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("name", NAMES)
def test_kubernetes_takes_every_manifest(name: str, version: str) -> None:
    for document in documents(name):
        kubernetes_validate.validate(document, version, strict=True)
    assert f"Kubernetes {OLDEST} to {NEWEST}" in PAGE


def test_the_check_can_fail() -> None:
    broken = one("StatefulSet")
    broken["spec"]["template"]["spec"]["terminationGracePeriod"] = 60
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, NEWEST, strict=True)


def test_each_node_starts_with_a_name_and_an_address_of_its_own() -> None:
    (container,) = pod()["containers"]
    program, *arguments = container["args"]
    assert (program, complaint(arguments)) == ("longboat", None)
    given = dict(word.split("=", 1) for word in arguments[1:])
    headless = one("Service", "longboat-nodes")
    (port,) = headless["spec"]["ports"]
    assert headless["spec"]["clusterIP"] == "None"
    assert headless["metadata"]["name"] == one("StatefulSet")["spec"]["serviceName"]
    assert given["--advertise"] == f"http://$(POD_NAME).longboat-nodes:{port['port']}"
    assert given["--port"] == str(port["port"]) == str(container["ports"][0]["containerPort"])
    assert given["--node"] == "$(POD_NAME)"
    assert any(each["name"] == "POD_NAME" for each in container["env"])


def test_everything_selects_the_pods_and_clients_go_to_any_of_them() -> None:
    labels = one("StatefulSet")["spec"]["template"]["metadata"]["labels"]
    for name in ("longboat", "longboat-nodes"):
        assert one("Service", name)["spec"]["selector"] == labels
    for kind in ("StatefulSet", "PodDisruptionBudget"):
        assert one(kind)["spec"]["selector"] == {"matchLabels": labels}
    assert one("Service")["spec"]["sessionAffinity"] == "None"


def test_a_pod_has_the_time_to_drain() -> None:
    (container,) = pod()["containers"]
    waits = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod()["terminationGracePeriodSeconds"] > waits + settings(one("ConfigMap")).server.drain_s + 5


def test_probes_ask_what_needs_no_token_by_the_address_of_the_pod() -> None:
    (container,) = pod()["containers"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        path = "/v1/ready" if probe == "readinessProbe" else "/v1/health"
        assert container[probe]["httpGet"] == {"path": path, "port": "http"}
    policy = Policy(token="t", listen_host="0.0.0.0", allowed_hosts=settings(one("ConfigMap")).server.allowed_hosts)
    headers = [(b"host", b"10.1.2.3:8911")]
    for path in ("/v1/health", "/v1/ready"):
        assert policy.check(local=("10.1.2.3", 8911), path=path, headers=headers) is False


def test_every_disk_is_there_and_the_pods_user_is_that_of_the_image() -> None:
    spec = one("StatefulSet")["spec"]
    there = {each["metadata"]["name"] for each in spec["volumeClaimTemplates"]}
    there |= {each["name"] for each in pod()["volumes"]}
    for container in (*pod()["initContainers"], *pod()["containers"]):
        assert {each["name"] for each in container["volumeMounts"]} <= there
    assert f"--uid {pod()['securityContext']['runAsUser']} " in " ".join(instructions("RUN"))


def test_the_secret_of_the_page_is_the_one_that_the_pods_get() -> None:
    (container,) = pod()["containers"]
    (given,) = [each["secretRef"]["name"] for each in container["envFrom"]]
    (made,) = re.findall(r"kubectl create secret generic (\S+) ((?:[^\\\n]|\\\n)+)", PAGE)
    assert made[0] == given
    assert {"LONGBOAT_TOKEN", "LONGBOAT_CLUSTER_SECRET"} <= set(re.findall(r"--from-literal=(\w+)=", made[1]))


def test_a_shared_tree_is_where_the_pods_have_their_projects() -> None:
    claim, config = documents("kubernetes/shared-tree.yaml")
    (container,) = pod()["containers"]
    (mounted,) = [each["mountPath"] for each in container["volumeMounts"] if each["name"] == "work"]
    assert settings(config).server.shared_trees == (mounted,)
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert f"claimName: {claim['metadata']['name']}" in read("kubernetes/shared-tree.yaml")
