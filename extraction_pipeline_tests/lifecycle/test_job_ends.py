"""The ways in which a provider ends a job, and what becomes of the members that got no answer."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from extraction_pipeline.ledger.states import JobState
from extraction_pipeline.lifecycle.collecting import EMPTY_END_PATIENCE
from extraction_pipeline.providers.errors import CallFailed
from extraction_pipeline_tests.batch_server.chat_endpoint import ChatEndpoint, chat_endpoint
from extraction_pipeline_tests.batch_server.process import ServerProcess, running_server, wait_until
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.actions import answer
from extraction_pipeline_tests.faults.proxy import POLL, Proxy, rewritten
from extraction_pipeline_tests.lifecycle.driving import Driven
