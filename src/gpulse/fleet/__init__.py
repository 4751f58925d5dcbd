"""The live truth about now: every node, GPU and process, as told last."""
