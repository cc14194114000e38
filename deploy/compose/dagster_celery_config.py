"""What a Celery worker reads at its start: the broker, as the environment names it."""

import os

broker_url = os.environ["CELERY_BROKER_URL"]
result_backend = broker_url
worker_prefetch_multiplier = 1
worker_max_tasks_per_child = 1
"""A run ends with its process, and so does what it holds."""
broker_connection_retry_on_startup = True
broker_connection_max_retries = None
"""A worker that was cut off comes back when it can."""
worker_cancel_long_running_tasks_on_connection_loss = False
"""A run needs the broker for nothing; PostgreSQL tells whether it may go on."""
broker_transport_options = {
    "socket_keepalive": True,
    "socket_timeout": 30,
    "health_check_interval": 10,
}
