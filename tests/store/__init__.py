"""Tests of what the hub keeps."""
