"""Pages of lists, in Google's way: a size that is only a wish, and a token that says nothing."""

import base64
import binascii
import re

from starlette.requests import Request

from extraction_pipeline.batch_server.api_errors import ApiError


def page_size(request: Request, *, default: int, most: int) -> int:
    """How many a page is to hold; zero asks for the default, and more than `most` for that."""
    value = request.query_params.get("pageSize", request.query_params.get("page_size", "0"))
    if not re.fullmatch(r"\d{1,9}", value, re.ASCII):
        raise ApiError(400, "The page size is not a number, or negative.")
    return min(int(value) or default, most)


def page_token(last_id: str) -> str:
    """The token of the page after the one that ends with this id."""
    return base64.urlsafe_b64encode(last_id.encode()).decode()


def token_cursor(request: Request) -> str | None:
    """The id that a page is to go on after."""
    token = request.query_params.get("pageToken", request.query_params.get("page_token"))
    if not token:
        return None
    try:
        return base64.urlsafe_b64decode(token).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise ApiError(400, "The page token is not valid.") from None
