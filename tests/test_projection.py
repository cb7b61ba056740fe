"""The projection: inside, on and outside the ball; against loops, autograd and finite differences."""

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ftp import mars_norm, project_mars, row_l1

SHAPES = st.sampled_from([(), (1,), (5,), (3, 4), (4, 1), (1, 6), (2, 3, 2), (3, 2, 2, 2), (0, 3), (0,)])
VALUES = st.floats(-1e6, 1e6, allow_subnormal=False)


@st.composite
def layers(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    shape = draw(SHAPES)
    pair = [draw(hnp.arrays(np.float64, shape, elements=VALUES)) for _ in range(2)]
    return torch.from_numpy(np.array(pair[0])), torch.from_numpy(np.array(pair[1]))


def rows(tensor: Tensor) -> list[list[float]]:
    nested = tensor.reshape(1, -1) if tensor.dim() < 2 else tensor.flatten(1)
    return nested.tolist()


@settings(deadline=None)
@given(layers())
def test_norms_against_a_loop(pair: tuple[Tensor, Tensor]) -> None:
    weight, _ = pair
    lengths = [sum(abs(value) for value in row) for row in rows(weight)]
    assert row_l1(weight).tolist() == pytest.approx(lengths)
    assert float(mars_norm(weight)) == pytest.approx(max(lengths, default=0.0))


@settings(deadline=None)
@given(layers(), st.floats(0, 1e7), st.booleans())
def test_projection_properties(pair: tuple[Tensor, Tensor], gamma: float, per_element: bool) -> None:
    weight, anchor = pair
    projected = project_mars(weight, anchor, gamma, per_element)
    before, after = row_l1(weight - anchor, per_element), row_l1(projected - anchor, per_element)
    slack = 1e-9 * (1 + row_l1(anchor, per_element) + before)
    assert projected.shape == weight.shape
    assert (after <= gamma + slack).all()  # on the leash
    assert (after <= before + slack).all()  # never farther
    inside = before + 1e-8 <= gamma
    if weight.dim() < 2 and not per_element:
        assert torch.equal(projected, weight) or not inside.all()
    elif weight.dim() >= 2:
        assert torch.equal(projected[inside], weight[inside])  # within reach: not a bit changes
    again = project_mars(projected, anchor, gamma, per_element)
    assert torch.allclose(again, projected, rtol=1e-6, atol=1e-6)  # idempotent


@pytest.mark.parametrize(
    ("point", "where"), [([0.3, -0.2], "inside"), ([0.5, -0.5], "on"), ([3.0, -1.0], "outside"), ([0.0, 0.0], "anchor")]
)
def test_inside_on_outside(point: list[float], where: str) -> None:
    anchor = torch.tensor([[1.0, 2.0]], dtype=torch.float64)
    weight = anchor + torch.tensor([point], dtype=torch.float64)
    projected = project_mars(weight, anchor, 1.0)
    if where == "outside":
        assert torch.allclose(projected - anchor, torch.tensor([[0.75, -0.25]], dtype=torch.float64), atol=1e-7)
    else:
        assert torch.allclose(projected, weight, atol=1e-7)


def test_gamma_zero_is_the_anchor() -> None:
    weight, anchor = torch.randn(4, 3), torch.randn(4, 3)
    assert torch.equal(project_mars(weight, anchor, 0.0), anchor)


def test_it_is_radial_not_the_nearest_point() -> None:
    # the nearest point of the l1 ball to (2, 1) is (1, 0); Eq. 2 goes straight back instead
    projected = project_mars(torch.tensor([[2.0, 1.0]]), torch.zeros(1, 2), 1.0)
    assert torch.allclose(projected, torch.tensor([[2 / 3, 1 / 3]]))


def test_rows_do_not_see_each_other() -> None:
    weight, anchor = torch.randn(5, 4, dtype=torch.float64), torch.randn(5, 4, dtype=torch.float64)
    whole = project_mars(weight, anchor, 0.7)
    for i in range(5):
        assert torch.allclose(whole[i : i + 1], project_mars(weight[i : i + 1], anchor[i : i + 1], 0.7))


def test_derivatives_against_finite_differences() -> None:
    weight = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    anchor = torch.randn(4, 3, dtype=torch.float64)
    gamma = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda w, g: project_mars(w, anchor, g), (weight, gamma))


def test_a_gain_acts_as_a_diagonal_matrix() -> None:
    gain = torch.tensor([0.5, -3.0, 1.0])
    assert mars_norm(gain, per_element=True) == mars_norm(torch.diag(gain))
    assert mars_norm(gain) == 4.5


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match=r"^unconstrained has shape \(2, 3\) and anchor \(3, 2\); a layer and its"):
        project_mars(torch.zeros(2, 3), torch.zeros(3, 2), 1.0)
    for gamma in (-1.0, float("nan")):
        with pytest.raises(ValueError, match=r"^gamma is (-1.0|nan); a constraint is a length, so give a number >= 0$"):
            project_mars(torch.zeros(2, 3), torch.zeros(2, 3), gamma)
