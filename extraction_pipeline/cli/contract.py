"""`extraction-pipeline contract`."""

import sys

import click

from extraction_pipeline.cli.signals import importing
from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.providers.names import ProviderName

NAMES = [name.value for name in ProviderName if name is not ProviderName.OUTSIDE]


@click.command()
@click.argument("provider", required=False, type=click.Choice(NAMES))
@click.option(
    "--check", "checking", is_flag=True, help="Ask the provider, compare, and keep the answer."
)
@click.option("--json", "as_json", is_flag=True, help="The whole contract as one JSON object.")
def contract(provider: str | None, checking: bool, as_json: bool) -> None:
    """Show what is relied on of a provider: every call, field and limit, and what is sent.

    Without a provider, an overview of all. With --check, what the provider says of itself is read
    and compared: for infrai its public discovery, which needs no key; for the others one entry of
    the list of batches. Both are kept in the state folder with hash and time, and what changed
    since the last check is told. Nothing is sent but the question.

    \b
    Exit codes: 0 as relied on; 2 no key; 5 the provider differs, or did not answer.

    \b
    Example:
      extraction-pipeline contract openai
      extraction-pipeline contract infrai --check
    """
    if as_json and checking:
        raise ConfigurationError(
            "--json shows the contract and --check compares it.", remedy="Give one of the two."
        )
    with importing():
        from extraction_pipeline.cli.contract_shown import show_contract
    sys.exit(show_contract(provider, checking=checking, as_json=as_json))
