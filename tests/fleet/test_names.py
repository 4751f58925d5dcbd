"""Names as people say them."""

import pytest

from gpulse.fleet.names import natural, short_model


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("NVIDIA GeForce RTX 3090", "RTX 3090"),
        ("NVIDIA H100 80GB HBM3", "H100 80G"),
        ("NVIDIA H100 PCIe", "H100"),
        ("NVIDIA A100-SXM4-40GB", "A100 40G"),
        ("NVIDIA A100-PCIE-40GB", "A100 40G"),
        ("NVIDIA A100 80GB PCIe", "A100 80G"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "A100 40G 1g.5gb"),
        ("Tesla V100-SXM2-32GB", "V100 32G"),
        ("Tesla T4", "T4"),
        ("Tesla P100-PCIE-16GB", "P100 16G"),
        ("Quadro P400", "P400"),
        ("Quadro RTX 6000", "RTX 6000"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA GB200", "GB200"),
        ("NVIDIA GH200 480GB", "GH200 480G"),
        ("NVIDIA GeForce RTX 4080 SUPER", "RTX 4080 SUPER"),
        ("NVIDIA H200", "H200"),
        ("GeForce GTX 1070 Ti", "GTX 1070 Ti"),
        ("NVIDIA GeForce RTX 3060 Laptop GPU", "RTX 3060 Laptop GPU"),
        ("Graphics Device", "Graphics Device"),
        ("", ""),
    ],
)
def test_short_models(name, short):
    assert short_model(name) == short


def test_site_may_say_otherwise():
    assert short_model("NVIDIA H100 80GB HBM3", {"NVIDIA H100 80GB HBM3": "big one"}) == "big one"


def test_natural_order():
    names = ["gpu10", "gpu2", "gpu1", "GPU3", "a", "gpu2b", "10", "9"]
    assert sorted(names, key=natural) == ["9", "10", "GPU3", "a", "gpu1", "gpu2", "gpu2b", "gpu10"]


@pytest.mark.parametrize("name", ["²", "gpu²", "2²", "٣", "①", "9" * 5000, "", "gpu007"])
def test_any_text_has_a_natural_order(name):
    """What looks like a digit is not always a number, and int() does not read every number."""
    ordered = sorted([name, "gpu10", "gpu2"], key=natural)
    assert ordered.index("gpu2") < ordered.index("gpu10")


def test_zeros_before_a_number_do_not_matter():
    assert sorted(["gpu010", "gpu9", "gpu0", "gpu00011"], key=natural) == ["gpu0", "gpu9", "gpu010", "gpu00011"]
