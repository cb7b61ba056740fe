"""The server: `python -m app` runs it, and so does `streamlit run app/main.py`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

from app.limits import class_mode
from app.page import tell
from app.routes import routes, warm
from app.security import Guard
from app.supervisor import close, supervisor


@asynccontextmanager
async def lifespan(_: st.App) -> AsyncIterator[None]:
    """Worker processes begin and end with the server."""
    warm()
    supervisor().start()
    try:
        yield
    finally:
        close()


app = st.App(
    Path(__file__).with_name("page.py"),
    routes=routes(wall=class_mode()),
    lifespan=lifespan,
    middleware=[Middleware(Guard)],
    on_script_error=tell,
)
