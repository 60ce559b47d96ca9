"""Values that conf allows in several places."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

Text = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=1)]
BrokerId = Annotated[int, Meta(ge=0, le=2**31 - 1)]
