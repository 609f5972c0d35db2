"""What a run of a deployment records of how it was begun. Pure."""

from actors.messages import DeploymentSpec
from substrate.messages import Start


def start_of(spec: DeploymentSpec) -> Start:
    """As of what the deployment is now."""
    return Start(
        definition=spec.definition,
        code=spec.code,
        python=spec.python,
        waypost=spec.waypost,
        distributions=spec.distributions,
        mail_to=spec.mail_to,
        secrets=spec.secrets,
    )
