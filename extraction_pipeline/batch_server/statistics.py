"""The counts of what the server accepted, out of its database."""

import sqlite3

from extraction_pipeline.batch_server.records import DialectStatistics, Statistics

_KEYS = """
SELECT dialect, job_key, count(*) FROM batches WHERE job_key IS NOT NULL GROUP BY 1, 2
UNION ALL
SELECT 'openai', pair.value, count(DISTINCT batches.id)
FROM batches, json_each(metadata) AS pair
WHERE dialect = 'openai' AND metadata IS NOT NULL GROUP BY 2
"""
_REQUESTS = """
SELECT dialect, coalesce(sum(total), 0), coalesce(sum(tally ->> '$.completed'), 0)
FROM batches GROUP BY 1
"""
_ANSWERED = """
SELECT dialect, count(*), count(*) FILTER (WHERE times > 1) FROM answered GROUP BY 1
"""
_METADATA = """
SELECT pair.key, pair.value, count(*) FROM batches, json_each(metadata) AS pair
WHERE dialect = 'openai' AND metadata IS NOT NULL GROUP BY 1, 2
"""


def read_statistics(database: sqlite3.Connection) -> Statistics:
    """What was accepted so far, deleted or not."""
    states = database.execute("SELECT dialect, state, count(*) FROM batches GROUP BY 1, 2")
    by_state: dict[str, dict[str, int]] = {}
    for dialect, state, number in states.fetchall():
        by_state.setdefault(dialect, {})[state] = number
    files = dict(
        map(
            tuple,
            database.execute("SELECT dialect, count(*) FROM files WHERE uploaded GROUP BY 1"),
        )
    )
    requests = {dialect: (total, done) for dialect, total, done in database.execute(_REQUESTS)}
    answered = {dialect: (all_, again) for dialect, all_, again in database.execute(_ANSWERED)}
    keys: dict[str, dict[str, int]] = {}
    for dialect, key, number in database.execute(_KEYS):
        keys.setdefault(dialect, {})[key] = number
    by_metadata: dict[str, dict[str, int]] = {}
    for key, value, number in database.execute(_METADATA):
        by_metadata.setdefault(key, {})[value] = number
    dialects = {
        dialect: DialectStatistics(
            files_uploaded=files.get(dialect, 0),
            jobs_created=sum(by_state.get(dialect, {}).values()),
            requests_accepted=requests.get(dialect, (0, 0))[0],
            requests_completed=requests.get(dialect, (0, 0))[1],
            distinct_requests_answered=answered.get(dialect, (0, 0))[0],
            requests_answered_again=answered.get(dialect, (0, 0))[1],
            jobs_by_state=by_state.get(dialect, {}),
            jobs_by_key=keys.get(dialect, {}),
        )
        for dialect in sorted({*files, *by_state})
    }
    all_states: dict[str, int] = {}
    for counts in by_state.values():
        for state, number in counts.items():
            all_states[state] = all_states.get(state, 0) + number
    return Statistics(
        files_uploaded=sum(files.values()),
        jobs_created=sum(all_states.values()),
        requests_accepted=sum(total for total, _ in requests.values()),
        jobs_by_state=all_states,
        jobs_by_metadata=by_metadata,
        dialects=dialects,
        faults_applied=dict(map(tuple, database.execute("SELECT name, times FROM faults_applied"))),
    )
