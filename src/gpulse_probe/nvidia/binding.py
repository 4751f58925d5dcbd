"""NVIDIA's Python binding (nvidia-ml-py), as far as the probe uses it: the names of names.py.

The binding defines some 400 structures, which cost 3 MB in every process that imports it, and twice that
where it is compiled from source. So a child that ends imports it and hands over what is wanted as plain data.
ModuleNotFoundError where there is no binding, ImportError where it is too old to have a name.
"""

import ctypes
import json

from gpulse_probe.child import Child, ChildEnded
from gpulse_probe.nvidia.names import NUMBERS, STRUCTURES

_DEADLINE_SECONDS = 30.0


def _describe(kind):
    """A ctypes type as plain data: a name, [type, length] for an array, or {"union" or "structure": fields}."""
    if issubclass(kind, (ctypes.Structure, ctypes.Union)):
        label = "union" if issubclass(kind, ctypes.Union) else "structure"
        return {label: [(field[0], _describe(field[1])) for field in kind._fields_]}
    if issubclass(kind, ctypes.Array):
        return [_describe(kind._type_), kind._length_]
    return "c_void_p" if issubclass(kind, ctypes._Pointer) else kind.__name__


def _made(name, description):
    """The type described. Plain structures: attribute access of the binding's own runs through Python."""
    if isinstance(description, str):
        return getattr(ctypes, description)
    if isinstance(description, list):
        return _made(name, description[0]) * description[1]
    ((label, fields),) = description.items()
    kind = ctypes.Union if label == "union" else ctypes.Structure
    return type(name, (kind,), {"_fields_": [(field, _made(field, inner)) for field, inner in fields]})


def _take(_request):
    """What the child answers: the wanted names, or the reason there are none."""
    try:
        import pynvml
    except ModuleNotFoundError:
        return b"null"
    too_old = [name for name in NUMBERS + STRUCTURES if not hasattr(pynvml, name)]
    if too_old:
        reason = "nvidia-ml-py %s has no %s" % (getattr(pynvml, "__version__", ""), ", ".join(too_old))
        return json.dumps({"missing": reason}).encode("ascii")
    numbers = {name: getattr(pynvml, name) for name in NUMBERS}
    structures = {name: _describe(getattr(pynvml, name)) for name in STRUCTURES}
    return json.dumps({"numbers": numbers, "structures": structures}).encode("ascii")


def _taken():
    child = Child(_take)
    try:
        child.ask()
        answer = child.answer(_DEADLINE_SECONDS)
    except ChildEnded as ended:
        raise ImportError("pynvml cannot be loaded: %s" % str(ended).strip().split("\n")[-1], name="pynvml")
    finally:
        child.abandon()
        child.wait()
    if answer is None:
        raise ImportError("pynvml was not loaded within %g s" % _DEADLINE_SECONDS, name="pynvml")
    found = json.loads(answer.decode("ascii"))
    if found is None:
        raise ModuleNotFoundError("No module named 'pynvml'", name="pynvml")
    if "missing" in found:
        raise ImportError(found["missing"], name="pynvml")
    names = dict(found["numbers"])
    names.update((name, _made(name, described)) for name, described in found["structures"].items())
    return names


globals().update(_taken())
