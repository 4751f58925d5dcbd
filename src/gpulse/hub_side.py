"""Settings and lists of nodes as the SSH transport wants them: the one place that knows both sides."""

from gpulse.config import Config
from gpulse.discovery import Target
from gpulse.transport.ssh import SshSettings, SshTarget


def ssh_settings(config: Config) -> SshSettings:
    """The [ssh] section."""
    given = config.ssh
    return SshSettings(
        host_keys=given.host_keys,
        config_files=tuple(map(str, given.config_files)),
        system_known_hosts=SshSettings().system_known_hosts + tuple(map(str, given.known_hosts)),
        connects_at_once=given.simultaneous_connects,
        connect_seconds=given.connect_timeout_seconds,
        login_seconds=given.login_timeout_seconds,
        keepalive_seconds=given.keepalive_seconds,
    )


def ssh_target(config: Config, target: Target) -> SshTarget:
    """A node; what its own table does not say comes from [ssh] and [hub]."""
    return SshTarget(
        name=target.name,
        host=target.host,
        user=target.user or config.ssh.user,
        port=target.port or config.ssh.port,
        interval_seconds=target.interval_seconds or config.hub.interval_seconds,
        python=target.python or config.ssh.python,
        identity_files=tuple(map(str, target.identity_files or config.ssh.identity_files)),
    )
