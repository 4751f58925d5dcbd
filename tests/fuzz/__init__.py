"""Decoders fed with what nobody should send."""
