"""Both ends of a connection are told how soon the other one counts as gone.

What comes of it on a network that is cut is tried by `benchmarks.hosts`.
"""

from collections.abc import Callable, Mapping

import pytest
from sqlalchemy import Engine, make_url, text

from extraction_pipeline.dagster_storage.engines import engine_of
from extraction_pipeline.ledger.database import open_engine
from extraction_pipeline.ledger.dead_peers import CLIENT, CLIENT_SECONDS, SERVER, SERVER_SECONDS


def of_the_client(engine: Engine) -> Mapping[str, str]:
    with engine.connect() as connection:
        told: Mapping[str, str] = connection.connection.dbapi_connection.info.dsn_parameters  # type: ignore[union-attr]
    return told


@pytest.mark.parametrize("opened", [open_engine, engine_of], ids=["ledger", "Dagster"])
def test_every_engine_gives_up_on_a_server_that_is_gone(
    opened: Callable[[str], Engine], database_url: str
) -> None:
    engine = opened(database_url)
    told = of_the_client(engine)
    assert {name: told[name] for name in CLIENT} == {k: str(v) for k, v in CLIENT.items()}
    engine.dispose()


def test_what_the_url_says_is_kept(database_url: str) -> None:
    url = make_url(database_url).update_query_dict({"keepalives_idle": "7"})
    engine = open_engine(url.render_as_string(hide_password=False))
    told = of_the_client(engine)
    assert told["keepalives_idle"] == "7"
    assert told["tcp_user_timeout"] == str(CLIENT_SECONDS * 1000)
    engine.dispose()


@pytest.mark.parametrize("opened", [open_engine, engine_of], ids=["ledger", "Dagster"])
def test_the_server_ends_the_session_of_a_client_that_is_gone(
    opened: Callable[[str], Engine], database_url: str
) -> None:
    engine = opened(database_url)
    with engine.connect() as connection:
        shown = connection.execute(text("SHOW client_connection_check_interval")).scalar_one()
    engine.dispose()
    assert shown == SERVER["client_connection_check_interval"]


@pytest.mark.parametrize(
    ("sides", "seconds"), [(CLIENT, CLIENT_SECONDS), (SERVER, SERVER_SECONDS)], ids=["us", "it"]
)
def test_the_parts_add_up_to_what_is_promised(sides: Mapping[str, object], seconds: int) -> None:
    idle, interval, count = (
        int(str(next(value for name, value in sides.items() if name.endswith(part))))
        for part in ("keepalives_idle", "keepalives_interval", "keepalives_count")
    )
    assert idle + interval * count == seconds


def test_a_host_knows_of_its_loss_before_others_take_over() -> None:
    assert CLIENT_SECONDS < SERVER_SECONDS
