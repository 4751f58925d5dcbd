"""Secrets in command lines never leave the node, and what is no secret stays readable."""

import shlex
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulse_probe.masking import mask

S = "Xq7vR2mK9tLw4"
HEX = "0123456789abcdef0123456789abcdef01234567"
LONG = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"

# Typed as in a shell; § stands for the secret.
HIDDEN = [
    "x --password §",
    "x --password=§",
    "x --password='§ with blanks'",
    "x -password §",
    "x --db-password § -v",
    "x --passwd §",
    "x --passphrase §",
    "x --api-key §",
    "x --api_key=§",
    "x --apikey §",
    "x --apiKey=§",
    "x --token §",
    "x --auth-token=§",
    "x --use_auth_token §",
    "x --secret §",
    "x --client-secret=§",
    "x --access-key §",
    "x --hf_token §",
    "x --wandb_key §",
    "x --auth me:§",
    "env WANDB_API_KEY=§ python train.py",
    "env AWS_SECRET_ACCESS_KEY=§ python train.py",
    "env MYSQL_PWD=§ HF_TOKEN_READ=§ python train.py",
    "docker run --rm -p 8080:80 -e OPENAI_API_KEY=§ --env=PASSWORD=§ image",
    "python train.py hydra.style.token=§",
    "python train.py +logger.api_key=§ ++a.b.password=§",
    "python train.py '+logger={api_key:§,project:x}'",
    'python train.py --json \'{"api_key": "§"}\'',
    'python train.py --json "{\\"lr\\": 1, \\"nested\\": {\\"password\\":\\"§\\"}}"',
    "python train.py \"{'password': '§', 'n': 2}\"",
    'python -c \'import os; os.environ["HF_TOKEN"] = "§"\'',
    'python -c \'os.environ.setdefault("HF_TOKEN", "§")\'',
    "python -c 'login(token=\"§\")'",
    "curl -H 'Authorization: Bearer §' https://example.org",
    "curl -H 'X-Api-Key: §' https://example.org",
    "curl --header='Authorization: Basic §' https://example.org",
    "curl -u me:§ https://example.org",
    "curl -sSu me:§ https://example.org",
    "curl -ume:§ https://example.org",
    "curl --user me:§ https://example.org",
    "git clone https://me:§@example.org/x.git",
    "git clone https://x-access-token:§@example.org/x.git",
    "x postgresql://me:p@§@db.example.org/base",
    "x postgresql://me:p/§@db.example.org/base",
    "x 'https://example.org/?token=§&x=1'",
    "x 'https://example.org/?a=1&api_key=§'",
    "x 'Server=db;User=me;Password=§;Encrypt=yes'",
    "psql 'host=db password=§ user=me'",
    "sh -c 'HF_TOKEN=§ python train.py --lr 1'",
    "bash -lc 'export API_KEY=\"§\"; python train.py'",
    "bash -c 'python train.py --password § --lr 1'",
    "bash -c 'curl -H \"Authorization: Bearer §\" https://example.org | sh'",
    "srun bash -c \"sshpass -p § ssh me@host 'mysql -p§ base'\"",
    "sbatch --wrap 'WANDB_API_KEY=§ python train.py'",
    "mysql -p§ -u me base",
    "python app.py --pw § --db-pw=§ --user me",
    "sh -c 'ADMIN_PW=§ ./serve'",
    "aws configure set aws_secret_access_key §",
    "python train.py --wandb.key=§ --conf spark.fs.secret.key=§",
    "helm install x --set auth.password=§,auth.user=me",
    "lm_eval --model_args pretrained=x,token=§,dtype=float",
    "python app.py redis://:§@host:6379/0",
    "http POST example.org X-Api-Key:§ -a me:§",
    "java -Djavax.net.ssl.trustStorePassword=§ -jar x.jar",
    "mysqldump --password=§ base",
    "/usr/bin/sshpass -p § ssh me@host",
    "sshpass -p§ ssh me@host",
    "redis-cli -a § ping",
    "docker login -u me -p § registry.example.org",
    "openssl enc -aes-256-cbc -pass pass:§",
    "vllm serve model --api-key § --port 8000",
    "jupyter lab --NotebookApp.token=§ --no-browser",
    "jupyter lab --ServerApp.password §",
    "'trainer: step 3 --password §'",
    "'trainer HF_TOKEN=§ running'",
]

SHAPES = [
    "hf_" + LONG,
    "sk-" + LONG,
    "sk-proj-" + LONG,
    "ghp_" + LONG,
    "github_pat_" + LONG,
    "glpat-" + LONG[:20],
    "xoxb-123456789012-" + LONG[:24],
    "AKIAIOSFODNN7EXAMPLE",
    "nvapi-" + LONG,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N",
]

SHOWN = [
    "python train.py --tokenizer gpt2 --tokenizer-path /models/t",
    "vllm serve model --max-tokens 512 --max-num-batched-tokens=8192",
    "python train.py --num_tokens=1 --token-type bpe --token_dim 64 --tokens-per-batch 4096",
    "python train.py --pad-token '<pad>' --eos_token '</s>' --pad_token_id=0 --image-token '<image>'",
    "python train.py --key-frames 5 --keys a,b --image_key image data.text_key=story --sort-key=name",
    "python train.py --passes 3 --num-pass 2 --bypass x --compass north",
    "python train.py --author me --authority x --secretary joe --monkey 3 --keyboard us",
    "python train.py model.pretrained=sk-learn model=sk-learn-gradient-boosting",
    "python train.py --use_auth_token True --use_auth_token --next 1 --push_to_hub_token=None",
    "python train.py --password-file /run/secrets/p --token-path=/t --credentials /etc/c.json",
    "python train.py --revision " + HEX + " --name glove-wiki-gigaword-300",
    "torchrun --nproc_per_node=8 --rdzv_endpoint=host:29500 train.py trainer.max_steps=1000 optimizer.lr=3e-4",
    "accelerate launch --config_file a.yaml --main_process_port 29501 train.py --lr 3e-4",
    "deepspeed --hostfile /job/hostfile --include 'node1:0,1@node2:2,3' train.py",
    "singularity exec --nv --pwd /workspace image.sif python train.py",
    "docker run -p 8080:80 -v /run/secret:/run/secret -v /data/token:/token image",
    "mysql -u root -p base",
    "python train.py --key image --pwm 3 --upward x --lr-pw 0.1",
    "ssh -o PasswordAuthentication=no host",
    "accelerate launch train.py --placeholder_token '<cat>' --initializer_token toy --add_special_tokens",
    "python train.py --auth-type none --auth_mode basic --signature_version 4 --key-length 5 data.key=image",
    "wget http://localhost:8000/v1/model@main git+ssh://git@github.com/x/y",
    "ssh -p 2222 -i /home/me/.ssh/id_rsa me@host",
    "env TOKENIZERS_PARALLELISM=false NCCL_DEBUG=INFO PWD=/home/me python train.py",
    "bash -c 'cd /data && python train.py --max-tokens 5 | tee log'",
    "'ray::Worker.step (pid=7) idle'",
    "python train.py a==b x: y 'C:\\data' '{\"lr\": 1e-3, \"max_tokens\": 5}'",
]


@pytest.mark.parametrize("line", HIDDEN)
def test_a_secret_is_hidden(line: str) -> None:
    arguments = [word.replace("§", S) for word in shlex.split(line)]
    masked = mask(arguments)
    assert len(masked) == len(arguments)
    assert S not in " ".join(masked)
    assert "***" in " ".join(masked)


@pytest.mark.parametrize("line", SHOWN)
def test_what_is_no_secret_is_shown(line: str) -> None:
    assert mask(shlex.split(line)) == shlex.split(line)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", ["{}", "--run={}", "x,{},y", "say '{}' twice", "https://example.org/{}/x"])
def test_a_known_shape_is_hidden_wherever_it_stands(shape: str, form: str) -> None:
    assert mask(["x", form.format(shape)]) == ["x", form.format("***")]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["x", "--password", "a", "b"], ["x", "--password", "***", "b"]),
        (["x", "--password=a b"], ["x", "--password=***"]),
        (["x", "--auth", "-password", S], ["x", "--auth", "***", "***"]),
        (["x", "--password"], ["x", "--password"]),
        (["x", "--token", "--verbose", "y"], ["x", "--token", "--verbose", "y"]),
        (["curl", "-u", "me:pw", "-H", "X-Api-Key: t"], ["curl", "-u", "me:***", "-H", "X-Api-Key: ***"]),
        (["curl", "-H", "Authorization: Bearer t u"], ["curl", "-H", "Authorization: Bearer ***"]),
        (["x", "https://me:pw@host/p?token=t&x=1"], ["x", "https://me:***@host/p?token=***&x=1"]),
        (["x", '{"api_key": "k", "lr": 1}'], ["x", '{"api_key": "***", "lr": 1}']),
        (["x", "+logger={api_key:k,project:p}"], ["x", "+logger={api_key:***,project:p}"]),
        (["sh", "-c", "HF_TOKEN=t python x --lr 1"], ["sh", "-c", "HF_TOKEN=*** python x --lr 1"]),
        (["wandb", "login", HEX], ["wandb", "login", "***"]),
        (["mysql", "-ppw", "base"], ["mysql", "-p***", "base"]),
        (["x", "--key", "abc"], ["x", "--key", "abc"]),
        (["x", "--key", LONG], ["x", "--key", "***"]),
        (["python train.py --password pw --lr 1"], ["python train.py --password *** --lr 1"]),
        (["x", f"-----BEGIN RSA PRIVATE KEY-----\n{LONG}\n-----END RSA PRIVATE KEY-----"],
         ["x", "-----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY-----"]),
        ([], []),
    ],
)  # fmt: skip
def test_the_rest_of_the_line_stays(arguments: list[str], expected: list[str]) -> None:
    assert mask(arguments) == expected


PIECES = st.sampled_from(
    [
        "--password",
        "token",
        "=",
        ":",
        " ",
        "'",
        '"',
        "\\",
        "key",
        "{",
        "}",
        "[",
        "://",
        "@",
        "-",
        "sk-",
        "eyJ",
        ".",
        ",",
        "(",
    ]
)


@given(st.lists(st.one_of(st.text(), st.lists(PIECES).map("".join))))
def test_any_text_is_taken_and_no_argument_is_lost(arguments: list[str]) -> None:
    masked = mask(arguments)
    assert len(masked) == len(arguments)
    assert all(isinstance(word, str) for word in masked)


PLANTED = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", min_size=4, max_size=40).map(
    "Qz9x".__add__
)


@settings(max_examples=300)
@given(st.sampled_from(HIDDEN), PLANTED, st.lists(st.text(max_size=20), max_size=3))
def test_a_planted_secret_never_survives(line: str, secret: str, others: list[str]) -> None:
    arguments = [word.replace("§", secret) for word in shlex.split(line)]
    # Other words after the line must not uncover what is in it.
    masked = mask(arguments + others if len(arguments) > 1 else arguments)
    assert secret not in " ".join(masked[: len(arguments)])


@given(st.lists(st.text("abc '\"\\\n\t\x1f=:,-/()[]{}é", max_size=60), max_size=4))
def test_text_without_secrets_stays_as_it_is(arguments: list[str]) -> None:
    assert mask(arguments) == arguments


WHOLE = ["--password=", "-password=", "HF_TOKEN=", "+a.b.api_key=", "X-Api-Key: ", "Authorization: Bearer ", "secret:"]


@given(st.sampled_from(WHOLE), st.text(max_size=30))
def test_a_value_goes_on_to_the_end_of_its_argument(name: str, rest: str) -> None:
    assert mask(["x", name + S + rest]) == ["x", name + "***"]
    assert S not in mask(["x", name + rest + S])[1]


@given(st.sampled_from(["--password", "--hf_token", "-secret", "password:"]), st.text(max_size=30))
def test_a_value_of_its_own_is_hidden_whole(name: str, rest: str) -> None:
    assert mask(["x", name, S + rest, "y"]) == ["x", name, "***", "y"]
    assert mask(["x", name, "-" + S + rest, "y"])[2] == "***"


@pytest.mark.parametrize("cut", range(8192 - 60, 8192 + 10, 7))
def test_a_secret_at_the_end_of_what_is_read_is_not_shown_in_half(cut: int) -> None:
    masked = mask(["x", "y" * (cut - 40) + " ghp_" + LONG])
    assert "ghp_" not in masked[1]
    masked = mask(["x", "y" * (cut - 40), "ghp_" + LONG, S])
    assert "ghp_" not in "".join(masked) and masked[3] in (S, "***")


# One a line; a blank at the end counts.
REPEATED = """a
a=
key=
auth=/
key=[
key='\x20
--password\x20
-
://a:
@
eyJ
SG.
-----BEGIN\x20
{"
'
"
\\
token=true\x20
"token":\x20
("token",\x20
pass
a.
sk-
mysql -p\x20
bash -c '
gpk_
authorization
authorization:\x20
Bearer\x20
eyJ/
12345678:AA
git+https://a
kaggle key\x20
mc set\x20
sk-a1-
<pad
é="""


def cpu_seconds(arguments: list[str]) -> float:
    start = time.process_time()
    mask(arguments)
    return time.process_time() - start


@pytest.mark.parametrize("piece", REPEATED.split("\n"))
def test_time_grows_with_the_text_and_no_faster(piece: str) -> None:
    """Up to 8 KiB; of a longer one no more is read."""
    texts = [(piece * 131072)[:size] for size in (4096, 8192, 131072)]
    forms = [
        ([text], ["x", text], text.split(" "), [text[i : i + 64] for i in range(0, len(text), 64)]) for text in texts
    ]
    for sizes in zip(*forms, strict=True):
        tries = [[cpu_seconds(arguments) for arguments in sizes] for _ in range(3)]
        half, whole, endless = (min(taken) for taken in zip(*tries, strict=True))
        # Twice the text is twice the time, or four times where it grows too fast; a few milliseconds tell nothing.
        assert whole < 3 * half + 0.005
        assert endless < 2 * whole + 0.005
