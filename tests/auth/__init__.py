"""Tests of tokens and keys."""
