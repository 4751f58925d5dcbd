"""Keeps a program running on this machine for one person, without root: by systemd, else detached."""
