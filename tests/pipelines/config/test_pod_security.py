from pipelines.config.pod_security import restricted


def test_it_has_what_the_restricted_profile_asks_of_a_container():
    # https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
    found = restricted()
    assert found["allowPrivilegeEscalation"] is False
    assert found["capabilities"] == {"drop": ["ALL"]}
    assert found["runAsNonRoot"] is True
    assert found["seccompProfile"]["type"] in ("RuntimeDefault", "Localhost")
    assert "privileged" not in found


def test_each_container_has_one_of_its_own():
    restricted()["capabilities"]["drop"].clear()
    assert restricted()["capabilities"]["drop"] == ["ALL"]
