"""Which names of options, variables and fields stand for a secret: `hf_token` does, `max_tokens` does not."""

import re
from functools import lru_cache

# The words of a name: HF_TOKEN, hf-token, hfToken and ServerApp.token all end with "token". Digits fall out.
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

# Searched in the name without its separators, so that api-key, api_key, apiKey and APIKEY are one.
_SURE = re.compile(
    r"passw(?:or)?d(?!less)|passphrase|passcode|passin$|passout$|secret(?!ar)|bearer|jwt|authorization"
    r"|apikey|accesskey|apitoken|authtoken|accesstoken|privatetoken|refreshtoken|sessiontoken|securitytoken"
    r"|requirepass|masterauth"
)
# Secrets as a rule, but the same names are used for the file that holds the secret, or a folder (--pwd).
_UNLESS_PATH = re.compile(
    r"credentials?$|creds$|cookies?$|pwd$|netrc$|signature$|^sig$"
    r"|keyids?$|(?:private|auth|signing|encryption|master|shared|account|storage|session|license|licence|subscription"
    r"|deploy|ssh|ssl|tls|rsa|gpg|pgp|aes|hmac|wandb|hf|huggingface|openai|anthropic|claude|gemini|google|gcp|gcs|aws"
    r"|azure|cohere|mistral|together|groq|replicate|deepseek|nvidia|ngc|comet|neptune|clearml|swanlab|mlflow|kaggle"
    r"|pinecone|langchain|langfuse|langsmith|tavily|serper|serpapi|datadog|sendgrid|stripe|github|gitlab)keys?$"
)


def _set(words):
    return frozenset(words.split())


# What stands before "token" where it is one of a text or a picture, or a number of them.
_TEXT_TOKENS = _set(
    """
    pad eos bos unk mask cls sep special image images img im video audio vision visual speech text stop start end
    max min num per add prompt class register each first last next by avg mean cost total price time think
    thinking reasoning patch draft speculative placeholder trigger instance initializer init input output batch
    single multi begin eot sot eod eom decoder encoder latent pause sink unused
    lang language boi eoi soi de pre un re trash blank word sub box seg frame frames rare
    modifier noise
    """
)
# What a name that ends like this holds is about a secret, not a secret.
_ABOUT = _set(
    """
    type types file files path paths dir folder url uri endpoint name names len length count size dim dims limit
    stdin env var ttl timeout expiry expires expiration age policy level embedding embeddings embed prob probs
    probability masks dropout drop rate ratio budget classifier loss losses weight weights mixing mixer mixup
    shift pooling pool parallel format required store provider manager server host port min max num pattern
    strategy position positions pos start end method mode accuracy entropy throughput idx index indices backend
    class module enabled disabled frames frame merge merging pruning labeling labelling labels label vocab mapping
    field column col attribute prefix suffix regex hint prompt bits algorithm algo rotation version usage stats
    counter metric metrics wise list map sampler scorer spec template volume mount ref arn namespace region scope
    scopes audience issuer rounds step steps lengths
    """
)
_PASS_OWNERS = _set(
    """
    db database user root admin mysql maria redis smtp mail email ftp http https proxy ldap pg postgres psql key
    bind rabbitmq mongo ssh vnc sudo my wifi auth basic login store keystore truststore rpc cert ssl tls rdp
    jupyter api sftp webdav smb become
    """
)
# A switch of such a name takes no value: what follows it is something else.
_SWITCHES = _set(
    """
    no ask prompt show skip without generate print hide require requires allow disable enable reset has is
    """
)

_PATH = re.compile(r"[~.]{0,2}/|[\w.\-]+\.(?:json|pem|key|crt|cert|txt|ya?ml|pub|cfg|ini|env)$|[A-Za-z]:[\\/]")
_RANDOM = re.compile(r"[\w+=\-]{20,}$", re.ASCII)
_HEX = re.compile(r"[0-9a-fA-F\-]{32,}$")
_PIECES = re.compile(r"[A-Za-z0-9]{8,}")
_DIGIT = re.compile(r"\d")
# Answers to a question, one pass of two, a token of a text, or where the secret is: not secrets.
_HARMLESS = re.compile(
    r"(?:|true|false|none|null|yes|no|\d|\*\*\*|</?[a-z]{1,12}>|<\|[a-z_]{1,20}\|>|\[[a-z]{2,6}\]"
    r"|file:[~.]{0,2}/.*|env:\w+|fd:\d+)$",
    re.IGNORECASE,
)
_KINDS = re.compile(r"(?:password|token|basic|bearer|digest|oauth2?|oidc|ldap|pam|kerberos|ntlm|any)$", re.IGNORECASE)
_LONGEST = 200

SURE, UNLESS_PATH, IF_RANDOM = "sure", "unless it is a path", "if it looks random"


def judge(name):
    """SURE, UNLESS_PATH, IF_RANDOM or None: what a value under this name is."""
    # Nobody gives names this long; what counts is the end, where the value follows.
    return _judge(name[-_LONGEST:])


@lru_cache(maxsize=256)
def _judge(name):
    parts = name.strip("-+~.").split(".")
    words = [word.lower() for word in _WORDS.findall(parts[-1])]
    if not words or words[-1] in _ABOUT or (words[-1] in ("id", "ids") and "token" in words):
        return None
    if words == ["key"] and len(parts) > 1:
        # wandb.key and s3.secret.key: the part before says whose key it is.
        words = [word.lower() for word in _WORDS.findall(parts[-2])] + words
    flat = "".join(words)
    if _SURE.search(flat) or _is_token(words, parts[-1]) or _is_pass(words):
        return SURE
    if _UNLESS_PATH.search(flat) or words[-1] in ("auth", "oauth") or _SURE.search(".".join(parts[:-1]).lower()):
        return UNLESS_PATH
    return IF_RANDOM if words[-1] in ("key", "keys") else None


def _is_pass(words):
    return words[-1] in ("pass", "pw") and (len(words) == 1 or words[-2] in _PASS_OWNERS)


def _is_token(words, name):
    # TOKEN_READ is somebody's variable, token_embed a part of a model.
    first = 0 if name.isupper() else len(words) - 1
    for position in range(first, len(words)):
        if words[position].endswith("token"):
            before = words[position][:-5] or (words[position - 1] if position else "")
            return before not in _TEXT_TOKENS
    return False


def is_switch(name):
    """Whether an option of this name, written without "=", has no value of its own."""
    first = _WORDS.search(name)
    return bool(first) and first.group().lower() in _SWITCHES


def hides(verdict, value):
    """Whether a value under a name so judged is to be masked."""
    if verdict is None or _HARMLESS.match(value):
        return False
    if verdict == UNLESS_PATH:
        return not (_PATH.match(value) or _KINDS.match(value))
    if verdict == IF_RANDOM:
        return _RANDOM.match(value) is not None and looks_random(value)
    return True


def looks_random(text):
    """Return whether a text is rather a key than a name made of words, such as `label_of_product_2024_v1`."""
    if _HEX.match(text):
        return True
    for piece in _PIECES.findall(text):
        digits = _DIGIT.search(piece) is not None
        mixed = piece not in (piece.lower(), piece.upper())
        if (digits and mixed) or (len(piece) >= 16 and (digits or mixed)):
            return True
    return False
