"""gpulse.toml: what is read from it, and how its mistakes are told."""

import tempfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpulse.config import Config, Thresholds, database_url, load
from gpulse.config.lines import find_lines
from gpulse.config.sizes import size
from gpulse.errors import ConfigError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "gpulse.toml"


def problems(file: Path, text: str | bytes) -> list[str]:
    """What is wrong, without the file's path."""
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert str(caught.value) == "\n".join(caught.value.problems)
    return [problem.removeprefix(str(file)) for problem in caught.value.problems]


def test_empty_file_is_all_defaults(file):
    file.write_text("")
    assert load(file) == Config()
    assert (Config().hub.host, Config().hub.port, Config().ssh.host_keys) == ("127.0.0.1", 7070, "strict")


def test_defaults_pass_their_own_checks():
    for section in (Config().hub, Config().web, Config().ssh, Thresholds()):
        for field in msgspec.structs.fields(section):
            value = getattr(section, field.name)
            assert msgspec.convert(value, field.type, dec_hook=lambda _, path: path) == value, field.name


def test_every_kind_of_value(file):
    file.write_text("""
        [hub]
        port = 0
        data = "data"
        interval_seconds = 2
        local = false
        [web]
        title = "Lab"
        logo = "logo.svg"
        base_path = "/monitor/gpulse"
        origins = ["https://portal.example.org", "http://[::1]:8080"]
        [ssh]
        host_keys = "accept-new"
        identity_files = ["keys/a", "/b"]
        [[nodes]]
        hosts = ["gpu[01-02]", "me@gpu40:2222"]
        rack = "r1"
        [[nodes]]
        hosts = "login"
        [[host_files]]
        path = "nodes.txt"
        [names]
        gpu01 = "Big one"
        "10.0.0.1" = "Old one"
        [people]
        alice = "Alice L."
        [thresholds]
        held_memory_bytes = "1.5 GiB"
    """)
    config = load(file)
    assert config.hub.port == 0
    assert config.hub.data == file.parent / "data"
    assert (config.web.title, config.web.logo) == ("Lab", file.parent / "logo.svg")
    assert config.web.base_path == "/monitor/gpulse"
    assert config.web.origins == ("https://portal.example.org", "http://[::1]:8080")
    assert config.hub.interval_seconds == 2.0
    assert config.hub.local is False
    assert config.ssh.identity_files == (file.parent / "keys/a", Path("/b"))
    assert config.nodes[0].texts() == ("gpu[01-02]", "me@gpu40:2222")
    assert config.nodes[0].rack == "r1"
    assert config.nodes[1].texts() == ("login",)
    assert config.host_files[0].path == file.parent / "nodes.txt"
    assert config.names == {"gpu01": "Big one", "10.0.0.1": "Old one"}
    assert config.people == {"alice": "Alice L."}
    assert config.thresholds.held_memory_bytes == 3 * 2**29
    assert config.thresholds.busy_hold_seconds == 30.0


def test_home_is_known(file, monkeypatch):
    monkeypatch.setenv("HOME", "/somewhere")
    file.write_text('hub.data = "~/x"')
    assert load(file).hub.data == Path("/somewhere/x")


def test_every_mistake_at_once_by_line(file):
    text = """[hub]
prot = 3
port = 99999
local = "yes"

[ssh]
host_keys = "no"
identity_files = [
  "a",
  3,
]

[[nodes]]
hosts = "gpu[01-04"

[[nodes]]
rack = ""

[thresholds]
busy_utilization_ratio = 1.5

[modles]
"""
    nodes = 'hosts, ranges and groups such as "gpu[01-16] me@gpu40:2222 @rack1"'
    assert problems(file, text) == [
        ':2: hub.prot: there is no such setting; did you mean "port"? '
        "allowed: host, port, data, interval_seconds, local",
        ":3: hub.port: cannot be 99999; allowed: a port, 1 to 65535, or 0 for any free one",
        ':4: hub.local: cannot be "yes"; allowed: true or false',
        ':7: ssh.host_keys: cannot be "no"; allowed: "strict" or "accept-new"',
        ":10: ssh.identity_files[2]: cannot be 3; allowed: a path",
        f':14: nodes[1].hosts: "gpu[01-04" has a "[" without its "]"; allowed: {nodes}',
        ':16: nodes[2]: "hosts" is missing; allowed: text in quotes or a list (text in quotes)',
        ':17: nodes[2].rack: cannot be ""; allowed: text that is not empty',
        ":20: thresholds.busy_utilization_ratio: cannot be 1.5; allowed: a ratio, 0 to 1",
        ':22: modles: there is no such setting; did you mean "models"? '
        "allowed: hub, store, web, access, privacy, reservations, tls, ssh, nodes, host_files, ini_files, "
        "drop_folders, consul, dns, names, people, models, thresholds",
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("hub = 3", ":1: hub: cannot be 3; allowed: a table with host, port, data, interval_seconds, local"),
        ("hub.data = ''", ':1: hub.data: cannot be ""; allowed: a path'),
        ("hub.interval_seconds = nan", ":1: hub.interval_seconds: cannot be nan; allowed: seconds, 0.1 to 3600"),
        ("web.base_path = '/a/'", ':1: web.base_path: cannot be "/a/"; allowed: "" or a path such as "/gpulse"'),
        (
            "hub.base_path = '/a'",
            ":1: hub.base_path: there is no such setting any more; it is called web.base_path now",
        ),
        ("web.logo = 3", ":1: web.logo: cannot be 3; allowed: the path of an .svg or .png file"),
        (
            "web.origins = ['https://a.example/']",
            ':1: web.origins[1]: cannot be "https://a.example/"; '
            'allowed: a site such as "https://portal.example.org", without a path',
        ),
        ("ssh.port = true", ":1: ssh.port: cannot be true; allowed: a port, 1 to 65535"),
        ("ssh.user = 1979-05-27", ":1: ssh.user: cannot be 1979-05-27; allowed: text that is not empty"),
        ("ssh.identity_files = 'a'", ':1: ssh.identity_files: cannot be "a"; allowed: a list (a path)'),
        ("[models]\n'NVIDIA H100' = 4", ':2: models."NVIDIA H100": cannot be 4; allowed: text that is not empty'),
        ("nodes = [{hosts = []}]", ":1: nodes[1].hosts: the list is empty; allowed: one host or more"),
        (
            "thresholds.held_memory_bytes = '1 elephant'",
            ':1: thresholds.held_memory_bytes: cannot be "1 elephant"; '
            'allowed: bytes, or text such as "256MiB" or "1GB"',
        ),
    ],
)
def test_one_mistake(file, text, told):
    assert problems(file, text) == [told]


def test_every_way_in(file):
    file.write_text("""
        [[nodes]]
        hosts = "a"
        transport = "pull"
        port = 7081
        token_file = "token"
        tls = true
        [[nodes]]
        hosts = "gpu[1-2]"
        transport = "push"
        interval_seconds = 5
        [[drop_folders]]
        path = "drop"
        group = "nfs"
        [[consul]]
        service = "gpu"
        tag = "h100"
        [[consul]]
        url = "https://[fe80::1]:8501/prefix"
        service = "gpu"
        tag = ["h100", "a100"]
        passing_only = false
        acl_token_file = "acl"
        [[dns]]
        name = "_gpulse._tcp.example.org."
        record = "SRV"
        server = "[::1]:5353"
        transport = "pull"
    """)
    config = load(file)
    pull, push = config.nodes
    assert (pull.transport, pull.port, pull.token_file, pull.tls) == ("pull", 7081, file.parent / "token", True)
    assert (push.transport, push.interval_seconds) == ("push", 5.0)
    assert (config.drop_folders[0].path, config.drop_folders[0].group) == (file.parent / "drop", "nfs")
    first, second = config.consul
    assert (first.url, first.tags(), first.passing_only, first.transport) == (
        "http://127.0.0.1:8500",
        ("h100",),
        True,
        "ssh",
    )
    assert (second.tags(), second.passing_only, second.acl_token_file) == (
        ("h100", "a100"),
        False,
        file.parent / "acl",
    )
    assert config.dns[0].records() == ("SRV",)
    assert load(file) == config


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "nodes = [{hosts = 'a', transport = 'telnet'}]",
            ':1: nodes[1].transport: cannot be "telnet"; allowed: "ssh" or "pull" or "push"',
        ),
        (
            "nodes = [{hosts = 'a', token_file = 'x'}]",
            ':1: nodes[1].token_file: means nothing with transport = "ssh"; allowed: with transport = "pull"',
        ),
        (
            "dns = [{name = 'a', transport = 'push', port = 22}]",
            ':1: dns[1].port: means nothing with transport = "push"; allowed: with transport = "ssh" or "pull"',
        ),
        (
            "host_files = [{path = 'a', transport = 'pull', user = 'me'}]",
            ':1: host_files[1].user: means nothing with transport = "pull"; allowed: with transport = "ssh"',
        ),
        (
            "drop_folders = [{path = 'a', user = 'me'}]",
            ":1: drop_folders[1].user: there is no such setting; allowed: group, rack, display_name, path",
        ),
        (
            "drop_folders = [{path = 'a'}, {path = 'a'}]",
            ':1: drop_folders[2].path: "a" stands in a table above already; allowed: each folder once',
        ),
        (
            "consul = [{service = 'a', display_name = 'x'}]",
            ':1: consul[1].display_name: "x" would name several nodes alike; allowed: text with {name} in it',
        ),
        (
            "consul = [{url = 'http://h:8500'}]",
            ':1: consul[1]: "service" is missing; allowed: text that is not empty',
        ),
        (
            "consul = [{service = 'a', url = 'http://h:99999/x'}]",
            ":1: consul[1].url: has no port of 1 to 65535; allowed: such as http://127.0.0.1:8500",
        ),
        ("dns = [{name = 'a b'}]", ':1: dns[1].name: cannot be "a b"; allowed: a name such as "gpu.example.org"'),
        ("dns = [{name = 'a', record = []}]", ":1: dns[1].record: the list is empty; allowed: one record or more"),
        (
            "dns = [{name = 'a', record = ['A', 'MX']}]",
            ':1: dns[1].record[2]: cannot be "MX"; allowed: "A" or "AAAA" or "SRV"',
        ),
    ],
)
def test_one_mistake_in_a_way_in(file, text, told):
    assert problems(file, text) == [told]


@pytest.mark.parametrize(
    "url", ["consul:8500", "http://", "ftp://h", "http://u:p@h", "http://h/?x=1", "http://h\\n", ""]
)
def test_what_is_no_url_of_consul(file, url):
    [told] = problems(file, f'consul = [{{service = "a", url = "{url}"}}]')
    assert told.endswith('; allowed: a URL such as "http://127.0.0.1:8500"')


@pytest.mark.parametrize("server", ["ns.example.org", "10.0.0.1 10.0.0.2", "me@10.0.0.1", "10.0.0.1:x", "10.0.0.[1-2]"])
def test_what_is_no_name_server(file, server):
    [told] = problems(file, f'dns = [{{name = "a", server = "{server}"}}]')
    assert told.endswith('; allowed: an address such as "10.0.0.2" or "[::1]:5353"')


def test_a_host_stands_once(file):
    text = '[[nodes]]\nhosts = "gpu[1-4]"\n[[nodes]]\nhosts = ["gpu[3-5]",\n"gpu1:2222", "gpu5"]\n'
    assert problems(file, text) == [
        ":4: nodes[2].hosts[1]: gpu3 and 1 more stands on line 2 already; allowed: each host once",
        ":5: nodes[2].hosts[3]: gpu5 stands on line 4 already; allowed: each host once",
    ]


def test_a_file_stands_once(file):
    assert problems(file, '[[host_files]]\npath = "a"\n[[host_files]]\npath = "a"\n') == [
        ':4: host_files[2].path: "a" stands in a table above already; allowed: each file once'
    ]


def test_one_display_name_for_several_nodes(file):
    assert problems(file, 'nodes = [{hosts = "a b", display_name = "x"}]') == [
        ':1: nodes[1].display_name: "x" would name several nodes alike; allowed: text with {name} in it'
    ]
    file.write_text('nodes = [{hosts = "a b", display_name = "Lab {name}"}, {hosts = "c", display_name = "x"}]')
    assert load(file).nodes[1].display_name == "x"


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"[hub]\nport = = 3\n", ":2:8: is not TOML: invalid value"),
        (b"[hub]\n[hub]\n", ":2:5: is not TOML: cannot declare ('hub',) twice"),
        (b"[hub]\nhost = 'a", ': is not TOML: expected "\'" at the end of the file'),
        (b"# caf\xe9\n", ":1: is not UTF-8 text; save it as UTF-8"),
        (b"a = " + b"[" * 5000, ": brackets are nested too deeply"),
    ],
)
def test_what_is_no_toml_is_one_sentence(file, data, told):
    assert problems(file, data) == [told]


def test_unreadable_file(tmp_path):
    with pytest.raises(ConfigError, match=r"gone\.toml: cannot be read: No such file or directory$"):
        load(tmp_path / "gone.toml")
    with pytest.raises(ConfigError, match=r"cannot be read: Is a directory$"):
        load(tmp_path)
    with pytest.raises(ConfigError, match="cannot be read: it is larger than"):
        load(Path("/dev/zero"))


def test_windows_text(file):
    file.write_bytes(b"\xef\xbb\xbf[hub]\r\nport = 7071\r\n")
    assert load(file).hub.port == 7071
    assert problems(file, b"\xef\xbb\xbf[hub]\r\n\r\nport = ''\r\n")[0].startswith(":3: hub.port: ")


def test_lines_of_every_shape():
    text = '''# [no]
a."b.c".'d' = """x
[no]
"""""
e = [ # [no]
  "]", {f = 1, g = [
    2]},
]
[[h]]
i = \'\'\'
= 1\'\'\'
[h.j]
k = 1
[[h]]
[h.j]
k = 2
'''
    found = find_lines(text)
    assert found[("a", "b.c", "d")] == 2
    assert [found[("e",)], found[("e", 0)], found[("e", 1, "f")], found[("e", 1, "g", 0)]] == [5, 6, 6, 7]
    assert [found[("h", 0)], found[("h", 0, "i")], found[("h", 0, "j")], found[("h", 0, "j", "k")]] == [9, 10, 12, 13]
    assert [found[("h", 1)], found[("h", 1, "j", "k")]] == [14, 16]
    assert not any("no" in path for path in found)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("40GB", 40_000_000_000),
        ("256MiB", 268435456),
        (" 1.5 gib ", 1610612736),
        ("2T", 2 * 10**12),
        ("123456789012345678B", 123456789012345678),
        ("123", None),
        ("7b", 7),
        ("", None),
        ("GB", None),
        ("-1GB", None),
        ("1 GB left", None),
        ("1e3", None),
    ],
)
def test_sizes(text, expected):
    assert size(text) == expected


KEYS = st.sampled_from([*(field.name for field in msgspec.structs.fields(Config)), "x"])
WORDS = (
    "hosts port path user display_name held_memory_bytes data local transport tls service url tag name record server"
)
INNER = st.sampled_from([*WORDS.split(), "é "])
VALUES = st.recursive(
    st.one_of(
        st.integers(),
        st.floats(),
        st.booleans(),
        st.text(max_size=12),
        st.sampled_from(["gpu[1-3]", "a!", "~nobody/x"]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(INNER, inner, max_size=3)),
    max_leaves=8,
)


def written(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{written(key)} = {written(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(written(item) for item in value) + "]"
    if isinstance(value, str):
        return (
            '"'
            + "".join(f"\\U{ord(letter):08x}" if not 0xD800 <= ord(letter) < 0xE000 else "" for letter in value)
            + '"'
        )
    return str(value).lower()


def loads_or_tells(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "gpulse.toml"
        file.write_bytes(data)
        try:
            assert isinstance(load(file), Config)
        except ConfigError as error:
            assert error.problems
            assert all(problem.startswith(str(file)) and "\n" not in problem for problem in error.problems)


@given(st.binary(max_size=200))
@example(b"a = " + b"9" * 5000)
@example(b"a = {" * 3000)
def test_any_bytes(data):
    loads_or_tells(data)


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_any_toml(tables):
    text = "".join(f"{key} = {written(value)}\n" for key, value in tables.items())
    loads_or_tells(text.encode())


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_lines_of_any_toml(tables):
    text = "\n".join(f"{key} = {written(value)}" for key, value in tables.items())
    found = find_lines(text)
    assert [found[(key,)] for key in tables] == list(range(1, len(tables) + 1))


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('certificate = "c"', "tls.certificate: is of no use without its private key; set tls.key too"),
        ('key = "k"', "tls.key: is of no use without its certificate; set tls.certificate too"),
        ('certificate = "c"\nkey = "k"\nself_signed = true', "tls.self_signed: cannot be true beside tls.certificate"),
    ],
)
def test_ways_to_be_at_https_that_do_not_go_together(file, lines, words):
    file.write_text(f"[tls]\n{lines}\n")
    with pytest.raises(ConfigError) as told:
        load(file)
    assert len(told.value.problems) == 1
    assert words in told.value.problems[0]


def test_whether_the_hub_is_at_https(file):
    assert not Config().tls.on
    file.write_text('[tls]\ncertificate = "c.pem"\nkey = "k.pem"\n')
    tls = load(file).tls
    assert tls.on
    assert (tls.certificate, tls.key) == (file.parent / "c.pem", file.parent / "k.pem")
    file.write_text("[tls]\nself_signed = true\n")
    assert load(file).tls.on


def test_where_the_records_are(tmp_path, monkeypatch):
    monkeypatch.delenv("GPULSE_STORE_URL", raising=False)
    path, url = tmp_path / "gpulse.toml", "postgresql://me:geheim@db/"
    assert database_url(Config().store) is None
    path.write_text(f'[store]\nurl = "{url}a"\n')
    assert database_url(load(path).store) == f"{url}a"
    (tmp_path / "there").write_text(f"{url}b\n")
    path.write_text(f'[store]\nurl = "{url}a"\nurl_file = "there"\n')
    assert database_url(load(path).store) == f"{url}b"
    monkeypatch.setenv("GPULSE_STORE_URL", f"{url}c")
    assert database_url(load(path).store) == f"{url}c"


def test_a_wrong_url_of_a_database_is_not_shown(tmp_path, monkeypatch):
    monkeypatch.delenv("GPULSE_STORE_URL", raising=False)
    path = tmp_path / "gpulse.toml"
    path.write_text('[store]\nurl = "mysql://me:geheim@db/x"\n')
    with pytest.raises(
        ConfigError, match=r"gpulse\.toml:2: store\.url: is no address of a database; allowed: postg"
    ) as told:
        load(path)
    assert "geheim" not in str(told.value)
    path.write_text('[store]\nurl_file = "there"\n')
    with pytest.raises(ConfigError, match=r"store\.url_file: .*/there cannot be read: No such file"):
        database_url(load(path).store)
    for wrong in (b"me:geheim@db", b"postgresql://me:geheim@db\npostgresql://x", b"\xffgeheim"):
        (tmp_path / "there").write_bytes(wrong)
        with pytest.raises(ConfigError, match=r"store\.url_file: .*/there.* is no") as told:
            database_url(load(path).store)
        assert "geheim" not in str(told.value)
    monkeypatch.setenv("GPULSE_STORE_URL", "geheim")
    with pytest.raises(ConfigError, match="GPULSE_STORE_URL: is no address") as told:
        database_url(load(path).store)
    assert "geheim" not in str(told.value)
