"""The OpenAPI document is true: nothing that it allows is answered with a 500."""

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error

from tests.serve.running import running


@pytest.mark.slow
def test_no_request_that_the_document_allows_breaks_anything(catalogue):
    from hypothesis import given

    with running(catalogue) as server:
        schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
        tried = 0
        for operation in schema.get_all_operations():
            if operation.ok().path.endswith("/events"):
                continue  # never ends

            @given(case=operation.ok().as_strategy())
            @settings(max_examples=12, suppress_health_check=list(HealthCheck), database=None, deadline=None)
            def is_answered(case):
                case.call_and_validate(checks=[not_a_server_error], timeout=60)

            is_answered()
            tried += 1
        assert tried >= 30
