"""Bytes of mail to text: charsets, encoded words, transfer encodings.

Total: whatever the bytes and whatever they claim to be, text comes out that JSON can hold (no lone surrogates). Only
charsets on the list below are believed; UTF-7 (which hides markup from whoever filters it) and Python's codecs that
aren't charsets (zlib, punycode, …) aren't on it, so their bytes are shown as they are.
"""

import binascii
import re
from encodings.aliases import aliases

_BELIEVED = """ascii latin_1 utf_8 utf_8_sig utf_16 utf_16_le utf_16_be utf_32 utf_32_le utf_32_be
    iso8859_2 iso8859_3 iso8859_4 iso8859_5 iso8859_6 iso8859_7 iso8859_8 iso8859_9 iso8859_10 iso8859_11 iso8859_13
    iso8859_14 iso8859_15 iso8859_16 cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 cp437 cp850 cp852
    cp866 cp874 tis_620 koi8_r koi8_u koi8_t mac_roman mac_cyrillic mac_greek mac_latin2 mac_turkish
    gb2312 gbk gb18030 hz big5 big5hkscs cp950 shift_jis shift_jis_2004 shift_jisx0213 cp932 euc_jp euc_jis_2004
    euc_jisx0213 iso2022_jp iso2022_jp_1 iso2022_jp_2 iso2022_jp_2004 iso2022_jp_3 iso2022_jp_ext euc_kr cp949 johab
    iso2022_kr"""
_CHARSETS = frozenset(_BELIEVED.split())
# What mail means by the name, where that is wider than the standard (as browsers and other mail programs do).
_WIDER = {"latin_1": "cp1252", "gb2312": "gb18030", "gbk": "gb18030", "euc_kr": "cp949", "shift_jis": "cp932"}
_MORE = {"x_sjis": "cp932", "x_gbk": "gb18030", "x_euc_jp": "euc_jp", "iso_8859_8_i": "iso8859_8", "x_cp1252": "cp1252"}

_WORD = re.compile(r"=\?([^?\s]{1,60})\?([bBqQ])\?([^?\s]*)\?=")
# Controls, line and paragraph separators, and the marks that turn the direction of what is shown after them.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]+")
_NOT_BASE64 = bytes(set(range(256)) - set(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="))
_QUANTUM = 4


def decode(data: bytes, charset: str = "") -> str:
    """Text of the bytes; an unknown or unwanted charset, or none, means UTF-8 if they are that, else Windows-1252."""
    codec = _codec(charset)
    text = _guess(data) if codec is None or codec == "ascii" else _as(data, codec)
    return text.removeprefix("\ufeff")


def words(value: bytes) -> str:
    """Text of a header value, its encoded words decoded (RFC 2047), on one line and without control characters."""
    text = _guess(value)
    out: list[str] = []
    pending: list[tuple[str, bytes]] = []
    at = 0
    for word in _WORD.finditer(text):
        between = text[at : word.start()]
        # Blanks between two encoded words are part of the encoding; a character may be torn over both of them.
        if between.strip() or not pending:
            out += [_joined(pending), between]
            pending = []
        charset = word[1].partition("*")[0].lower()
        payload = word[3].encode()
        if word[2] in "bB":
            pending.append((charset, unbase64(payload)))
        else:
            pending.append((charset, binascii.a2b_qp(payload, header=True)))
        at = word.end()
    out += [_joined(pending), text[at:]]
    return one_line("".join(out))


def one_line(text: str) -> str:
    """The text on one line: control characters, separators and direction marks become blanks."""
    return _CONTROLS.sub(" ", text).strip()


def id_text(message_id: bytes) -> str:
    r"""A message id to show and to put into a header: bytes that aren't UTF-8, and controls, are written as ``\xhh``.

    For people and for outgoing headers; identity is in the bytes.
    """
    text = message_id.decode("utf-8", "backslashreplace")
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def transfer_decoded(encoding: bytes, data: bytes) -> bytes:
    """Undo a Content-Transfer-Encoding (RFC 2045 §6); one we don't know leaves the bytes alone."""
    match encoding.lower():
        case b"base64":
            return unbase64(data)
        case b"quoted-printable":
            return binascii.a2b_qp(data)
        case _:
            return data


def unbase64(data: bytes) -> bytes:
    """Decode base64: characters outside the alphabet are passed over, the first padding ends it, a torn end is cut."""
    clean = data.translate(None, _NOT_BASE64).partition(b"=")[0]
    if len(clean) % _QUANTUM == 1:
        clean = clean[:-1]
    return binascii.a2b_base64(clean + b"=" * (-len(clean) % _QUANTUM))


def _joined(pending: list[tuple[str, bytes]]) -> str:
    """Decode a run of encoded words, bytes of one charset together."""
    out: list[str] = []
    run: list[bytes] = []
    for place, (charset, data) in enumerate(pending):
        run.append(data)
        if place + 1 == len(pending) or pending[place + 1][0] != charset:
            out.append(decode(b"".join(run), charset))
            run = []
    return "".join(out)


def _codec(charset: str) -> str | None:
    """Python's name of a charset that we believe in, else None."""
    key = re.sub(r"[^a-z0-9]", "_", charset[:60].strip().lower())
    name = _MORE.get(key) or aliases.get(key, key)
    return _WIDER.get(name, name) if name in _CHARSETS else None


def _guess(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def _as(data: bytes, codec: str) -> str:
    try:
        return data.decode(codec, "replace")
    except UnicodeError:
        # Some stateful decoders give up on garbage even when told to replace it.
        return _guess(data)
