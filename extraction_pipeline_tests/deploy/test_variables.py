"""Variables of `deploy/` are settings, or somebody else's; no file holds a secret."""

import re

from extraction_pipeline.settings import variables
from extraction_pipeline_tests.deploy.files import COMPOSE, DEPLOY, EXAMPLE, FILES, INSTANCES, ours

OTHERS = frozenset(
    {
        *("POSTGRES_USER", "POSTGRES_PASSWORD", "POSTGRES_DB"),
        *("MINIO_ROOT_USER", "MINIO_ROOT_PASSWORD"),
        *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL_S3"),
        *("AWS_DEFAULT_REGION", "CELERY_BROKER_URL", "RUN_NAMESPACE", "PYTHONPATH"),
        *("COLLECTIONS", "DOCUMENTS"),
        *("DAGSTER_HOME", "DAGSTER_REDACT_USER_CODE_ERRORS"),
    }
)
"""Variables of other programs: Compose, the database's image, the object store and its client,
Dagster."""


def test_every_variable_is_a_setting_or_somebody_elses() -> None:
    named = set(EXAMPLE)
    for service in COMPOSE["services"].values():
        named |= set(service.get("environment", {}))
    for path in FILES:
        named |= set(re.findall(r"\bEXTRACTION_[A-Z_]+\b", path.read_text()))
        named |= set(re.findall(r"\{?env: ([A-Z_]+)", path.read_text()))
    assert named <= variables() | OTHERS, named - variables() - OTHERS


def test_what_instances_read_from_the_environment_is_set() -> None:
    given = set(EXAMPLE).union(*(one.get("environment", {}) for one in ours().values()))
    asked = set(re.findall(r"env: ([A-Z_]+)", INSTANCES["compose"].read_text()))
    assert asked <= given
    assert "RUN_NAMESPACE" in (DEPLOY / "kubernetes" / "values.yaml").read_text()


def test_no_file_holds_a_secret() -> None:
    for name, value in EXAMPLE.items():
        if re.search("PASSWORD|KEY|SECRET|DATABASE_URL|ROOT_USER", name):
            assert value == "", name
    for path in FILES:
        found = re.findall(r"://[^\s/:@]+:([^\s/@]+)@|\b(sk-\w+|whsec_\w+)", path.read_text())
        assert all(word in ("", "PASSWORD") for one in found for word in one), path
