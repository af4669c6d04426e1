import logging

import pytest

from acpo_trl.sandbox import SANDBOXES, Bubblewrap, SandboxError


def opened(make):
    try:
        return make()
    except SandboxError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session", params=list(SANDBOXES))
def sandbox(request):
    """Each sandbox of the package."""
    logging.getLogger("acpo_trl.sandbox.process").disabled = True
    made = opened(SANDBOXES[request.param])
    logging.getLogger("acpo_trl.sandbox.process").disabled = False
    yield made
    made.close()


@pytest.fixture(scope="session")
def bubblewrap():
    made = opened(Bubblewrap)
    yield made
    made.close()
