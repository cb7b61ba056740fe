"""The border to the network: which names the server answers to, and what a browser may do with its pages."""

import secrets
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import config
from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

from app.cookies import COOKIE, name_in, sign
from app.limits import secret

# Streamlit and Plotly write styles inline, and Streamlit's components are loaded from blobs and compiled text
POLICY = {
    "default-src": "'self'",
    "script-src": "'self' 'unsafe-inline' 'unsafe-eval' 'wasm-unsafe-eval' blob:",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "connect-src": "'self' ws: wss: data: blob:",
    "worker-src": "'self' blob:",
    "media-src": "'self' data: blob:",
    "object-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
    "frame-src": "'self' blob: data:",
    "frame-ancestors": "'self'",
}
HEADERS = {
    "content-security-policy": "; ".join(f"{name} {value}" for name, value in POLICY.items()),
    "x-frame-options": "SAMEORIGIN",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


UPLOADS = "_stcore/upload_file"
LOOKS = ("GET", "HEAD", "OPTIONS")  # methods that change nothing


class Guard:
    """Refuse unknown host names (another site's name may lead to this machine) and changes asked for by pages of other
    sites, and add the headers."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # Streamlit checks its socket itself, and there are no headers to add
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        fresh = None if _has_cookie(headers) else sign(secrets.token_hex(16), secret())

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    answer[name] = value
                page = answer.get("content-type", "").startswith("text/html")
                if page:  # the first chart need not wait until its view has asked for Plotly
                    answer["link"] = "</api/plotly.js>; rel=preload; as=script"
                if fresh and page:
                    secure = "; Secure" if scope["scheme"] == "https" else ""
                    answer.append("set-cookie", f"{COOKIE}={fresh}; Path=/; HttpOnly; SameSite=Lax{secure}")
            await send(message)

        if not is_host_allowed(headers.get("host")):
            names = " or ".join(config.get_option("server.allowedHosts"))
            refusal = PlainTextResponse(f"This server does not answer to that name; it is {names}.", 403)
            await refusal(scope, receive, guarded)
            return
        if UPLOADS in scope["path"]:  # no view takes files, so nobody can fill the server's memory with them
            await PlainTextResponse("This server takes no files.", 403)(scope, receive, guarded)
            return
        if scope["method"] not in LOOKS and _is_from_elsewhere(headers):
            await PlainTextResponse("This server takes that from its own pages only.", 403)(scope, receive, guarded)
            return
        await self.app(scope, receive, guarded)


def _is_from_elsewhere(headers: Headers) -> bool:
    """True if a browser says that a page of another site asks; without a browser there is no such page."""
    origin = headers.get("origin")
    return origin is not None and origin.partition("://")[2] != headers.get("host")


def _has_cookie(headers: Headers) -> bool:
    """True if the viewer has a cookie that this server has signed."""
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return False
    return cookie is not None and name_in(cookie.value, secret()) != ""
