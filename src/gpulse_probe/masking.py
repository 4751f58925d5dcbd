"""Hides secrets in command lines before they leave the node; in doubt a value is hidden.

Whoever may look at a process list may not know the passwords in it. A secret is known by the name it stands
under (`--password X`, `HF_TOKEN=X`, `{"api_key": "X"}`), by its own shape (`ghp_…`), by its place in an address
(`https://user:X@host`) or by the program it is given to (`sshpass -p X`). All patterns take time in proportion
to the text, whatever the text.
"""

import re

from gpulse_probe.secret_names import IF_RANDOM, SURE, hides, is_switch, judge, looks_random
from gpulse_probe.secret_programs import FLAGS, LOGIN, PLACES

MASK = "***"
_DEEPEST = 2
_READ = 8192
_LONGEST_SECRET = 1024
# So much of a value tells whether it is a path or looks random; its end is looked for when it is to be masked.
_ENOUGH = 200

_SHAPES = re.compile(
    r"(?<![\w\-])(?:"
    r"hf_[A-Za-z0-9]{16,}|api_org_[A-Za-z0-9]{16,}|gh[oprsu]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|gl(?:pat|ptt|dt|rt|cbt|ft|imt|agent|oas|soat|ffct)-[\w\-]{16,}"
    r"|gp[njksplf]_[0-9a-f]{12}_\w+"
    r"|(?:sk|pk|rk)[-_][\w\-]{16,}"
    r"|(?:gsk|r8|npm|pcsk|dckr_pat|dop_v1|lsv2_[a-z]{2}|wandb_v1|whsec|shpat|glsa|tgp_v1|fw)_[\w\-]{16,}"
    r"|(?:nvapi|xai|pypi|tskey|pplx|GOCSPX|AGE-SECRET-KEY)-[\w\-]{16,}|key-[0-9a-f]{32}|ATATT3[\w\-]{30,}|EAA[A-Za-z0-9]{40,}|xox[a-z]-[\w\-]{8,}|xapp-[\w\-]{16,}|(?:AKIA|ASIA)[A-Z0-9]{12,}"
    r"|AIza[\w\-]{30,}|ya29\.[\w\-]{16,}|hv[bs]\.[\w\-]{16,}|SG\.[\w\-]{16,}\.[\w\-]{16,}"
    r"|eyJ[\w\-]{5,}\.[\w\-]{5,}(?:\.[\w\-]*)*|eyJ[\w\-+/]{40,}={0,2}|\d{8,10}:AA[\w\-]{30,}"
    r")"
    r"|(?<=hooks\.slack\.com/services/)[\w/\-]+|(?<=/api/webhooks/)[\w/\-]+"
    r"|(?<=/bot)\d{8,10}:[\w\-]{30,}|(?<=conda\.anaconda\.org/t/)[\w\-]+"
)
_WORDLIKE = ("sk", "pk", "rk", "xai", "pypi", "tskey", "npm", "pplx", "fw")
_KEY_BLOCK = re.compile(
    r"(-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----).*?"
    r"(-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)

# user:password@ in an address. A "/" in the password is wrong but written all the same; a port is not a password.
_ADDRESS = re.compile(
    r"(://[^\s/:@\"']*:)(?:[^\s/\"']+(?=@)|(?!\d+(?:[/?#]|\Z))(?:[^\s/\"'@]|/(?!/)){1,300}(?=@))|(?<=://)[\w\-]{20,}(?=@)"
    r"|(?<=git\+https://)(?!git@)[\w\-]+(?=@)"
)

# Only a text with one of these can hold a name that judge() knows, and most arguments hold none.
_HINT = re.compile(r"pass|pw|token|secret|key|auth|cred|bearer|jwt|cookie|sig|netrc", re.IGNORECASE)
_NAME = re.compile(
    r"(?<![\w.\-])(?=[\w.\-]*(?i:pass|pw|token|secret|key|auth|cred|bearer|jwt|cookie|sig|netrc))"
    r"(-*)([\w.\-]+)(\\?[\"']|)(\]?\s*=\s*|\]?\s*:(?!//)\s*|,\s*(?=[\"'])|\s+)"
)
_SCHEME = re.compile(r"(?:Bearer|Basic|Token|Digest|ApiKey|AWS4-HMAC-SHA256)\s+", re.IGNORECASE)
# The secret is the next word: -H Authorization: Bearer X without quotes.
_SCHEME_LAST = re.compile(r"(?:.*authorization[\"']?\s*[:=]?\s*)?(?:Bearer|Basic|Token|Digest|ApiKey)$", re.IGNORECASE)
_SETTING = re.compile(r"[A-Za-z_\-]+=[^=]")
_QUOTED = re.compile(r"\\?\"(?:[^\"\\]|\\[^\"])*\\?\"?|\\?'[^']*'?", re.DOTALL)
_BRACKETED = re.compile(r"[\[{(][^\]})]*")
_PLAIN = re.compile(r"[^\s\"'&,;)}\]|<>`#]*")
_TO_BLANK = re.compile(r"[^\s\"';&|)`]*")

_WORD = re.compile(r"\s+|(?:[^\s\"'\\]+|\\.?|\"(?:[^\"\\]+|\\.?)*\"?|'[^']*'?)+", re.DOTALL)
_SHELL_SWITCH = re.compile(r"-[a-z]{0,4}c$|--(?:wrap|command|cmd)$")

# How user and password are joined in the value of a flag; "=": a cookie, and without one a file of cookies.
_PARTS = ":%,="
_LOGIN_KEY = re.compile(r"[\w\-]{30,}$")


def mask(arguments):
    """The arguments with every secret in them replaced by ***; as many as before.

    What lies more than 8,192 characters in is masked unread: nobody is shown it, and it must not cost time.
    """
    left = _READ
    words = []
    for word in arguments:
        left -= len(word) + 1
        if left < 0:
            break
        words.append(word)
    unread = arguments[len(words) :]
    if unread:
        # Cut at a blank, or well before the end: what is left of a secret cut in two might not look like one.
        head = unread[0][: max(0, left + len(unread[0]) + 1)]
        words.append(head[: max(head.rfind(" "), len(head) - _LONGEST_SECRET, 0)])
    # A single argument with blanks is a title a program gave itself: several words in one.
    masked = _mask_words(words, 0, len(arguments) == 1)
    if unread and not masked[-1].endswith(MASK):
        masked[-1] += MASK
    return masked + [MASK] * (len(arguments) - len(masked))


def _mask_words(words, depth, shell):
    masked = []
    flags = ()
    places = {}
    place = next_is = None
    previous = ""
    for word in words:
        wanted, next_is = next_is, None
        if _is_scheme(word, previous):
            masked.append(word)
            next_is = SURE if wanted or "uthorization" in (previous[-64:] + word).lower() else IF_RANDOM
        elif wanted and wanted in _PARTS and not word.startswith("-"):
            masked.append(_mask_part(word, wanted))
        elif wanted and hides(wanted, word) and not _is_option(word):
            masked.append(MASK)
        elif place == 0 and not word.startswith("-") and not _SETTING.match(word):
            masked.append(MASK + ";" if word.endswith(";") else MASK)
        else:
            masked.append(_mask_word(word, flags, depth, shell or _SHELL_SWITCH.match(previous) is not None))
        if word.startswith("-"):
            next_is = _announces(word, flags)
        elif next_is is None and depth == 0 and word.endswith((":", "=")):
            next_is = judge(word[:-1])
        elif previous == "set" and "=" not in word:
            # aws configure set aws_secret_access_key X
            next_is = judge(word)
        else:
            name = word.rsplit("/", 1)[-1]
            flags = FLAGS.get(name, flags)
            if name in PLACES:
                places = PLACES[name]
        if not word.startswith("-"):
            place = places[word] if word in places else place - 1 if place else None
        previous = word
    return masked


def _is_scheme(word, previous):
    """Return whether a word is the scheme of a header, with the secret to follow: `Authorization:` `Bearer` `X`."""
    if len(word) > 64 or not _SCHEME_LAST.match(word):
        return False
    return "uthorization" in (previous[-64:] + word).lower() or word.lower() == "bearer"


def _is_option(word):
    """Whether a word in the place of a value is the next option: a secret may begin with a dash too."""
    return word.startswith("--") or (word.startswith("-") and len(word) < 3)


def _announces(option, flags):
    """Return what the word after an option is: a verdict of judge(), a part to mask (see _PARTS) or None."""
    name = option.lstrip("-")
    if any(flag.endswith("+") and option.startswith("-" + flag[:-1]) and len(option) > 2 for flag in flags):
        return None
    verdict = None if "=" in name or ":" in name or is_switch(name) else judge(name)
    if verdict:
        return verdict
    for flag in flags:
        letter = flag.rstrip(_PARTS)
        if not flag.endswith("+") and (option == "-" + letter or (len(letter) == 1 and _ends_cluster(option, letter))):
            return flag[-1] if flag[-1] in _PARTS else SURE
    return None


def _ends_cluster(option, letter):
    """-sSu: several short options in one word, of which the last takes the value."""
    return option.endswith(letter) and len(option) < 6 and option[1:].isalpha() and not option.startswith("--")


def _mask_word(word, flags, depth, shell):
    if word.startswith("-"):
        for flag in flags:
            kind = flag[-1]
            joined = "-" + flag.rstrip("+" + _PARTS)
            if word.startswith(joined) and len(word) > len(joined):
                if kind == "+":
                    return joined + MASK
                if kind in _PARTS and kind in word:
                    return joined + _mask_part(word[len(joined) :], kind)
    elif flags is LOGIN and _LOGIN_KEY.match(word):
        return MASK
    text = _inside(word, not shell)
    if depth < _DEEPEST and (" " in text or "\n" in text or "\t" in text):
        return _mask_text(text, depth + 1)
    return text


def _mask_part(text, separator):
    """Mask what follows the separator of user and password, or all of a cookie; without one there is no secret."""
    user, found, _ = text.partition(separator)
    if not found:
        return text
    return MASK if separator == "=" else user + separator + MASK


def _mask_text(text, depth):
    """Words in one string, as `sh -c` takes them: each is looked at like an argument, within its quotes."""
    pieces = _WORD.findall(text)
    places = [place for place, piece in enumerate(pieces) if not piece.isspace()]
    words = []
    for place in places:
        piece = pieces[place]
        quote = piece[0] if len(piece) > 1 and piece[0] in "\"'" and piece[-1] == piece[0] else ""
        words.append(piece[1:-1] if quote else piece)
        pieces[place] = quote
    for number, word in enumerate(_mask_words(words, depth, True)):
        quote = pieces[places[number]]
        pieces[places[number]] = quote + word + quote
    return "".join(pieces)


def _inside(text, whole=False):
    """Secrets by shape, in addresses and under a name, anywhere in one argument.

    whole: a value whose name begins the argument goes on to its end, blanks and all.
    """
    if len(text) > 8:
        if "-----BEGIN" in text:
            text = _KEY_BLOCK.sub(r"\1" + MASK + r"\2", text)
        text = _SHAPES.sub(_mask_shape, text)
        if "://" in text:
            text = _ADDRESS.sub(_mask_address, text)
    if _HINT.search(text):
        text = _mask_named(text, whole)
    return text


def _mask_shape(found):
    text = found.group()
    # sk-learn-pipeline-v1 is a name.
    if text.startswith(_WORDLIKE) and not looks_random(text):
        return text
    return MASK


def _mask_address(found):
    return (found.group(1) or "") + MASK


def _mask_named(text, whole):
    pieces = []
    position = 0
    while True:
        found = _NAME.search(text, position)
        if not found:
            break
        verdict = judge(found.group(2))
        if verdict and _joins(text, found):
            begin, end = _value(text, found, whole, found.end() + _ENOUGH)
            if hides(verdict, text[begin:end].strip("\\\"'")):
                begin, end = _value(text, found, whole, len(text))
                pieces.append(text[position:begin])
                pieces.append(_masked_value(text[begin:end]))
                position = end
                continue
        pieces.append(text[position : found.end()])
        position = found.end()
    pieces.append(text[position:])
    return "".join(pieces)


def _joins(text, found):
    """Whether what stands between name and value makes them a pair there."""
    dashes, name, closing, separator = found.groups()
    start, end = found.span()
    if separator.isspace():
        return bool(dashes) and not closing and not is_switch(name) and text[end : end + 2] != "--"
    if separator.startswith(","):
        return bool(closing) and text[max(0, start - 3) : start].rstrip("\"'\\").endswith("(")
    # /run/secret:/run/secret is a path in a container, //token:***@host a login that is masked already.
    return not (separator == ":" and text[start - 1 : start] == "/")


def _value(text, found, whole, limit):
    """Where a value begins and ends, looking no further than limit; a scheme such as Bearer stays readable."""
    closing, separator = found.group(3, 4)
    start, begin = found.span()
    before = text[start - 1 : start]
    scheme = _SCHEME.match(text, begin)
    if scheme:
        begin = scheme.end()
    if not separator.isspace():
        if whole and start < 3 and not text[:start].strip("+~"):
            return begin, min(limit, len(text))
        if before and before in "\"'" and not closing:
            end = text.find(before, begin, limit)
            return begin, (min(limit, len(text)) if end < 0 else end)
    for pattern in (_QUOTED, _BRACKETED):
        value = pattern.match(text, begin, limit)
        if value:
            return begin, value.end()
    listed = before and before in ",{;(&?["
    return begin, (_PLAIN if listed or ":" in separator else _TO_BLANK).match(text, begin, limit).end()


def _masked_value(value):
    for quote in ('\\"', "\\'", '"', "'"):
        if value.startswith(quote):
            return quote + MASK + (quote if len(value) > len(quote) and value.endswith(quote) else "")
    return MASK
