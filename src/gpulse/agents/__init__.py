"""Agents on nodes: installed, looked after and taken away over SSH, without root."""
