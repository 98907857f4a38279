"""Hidden graders of layer norm and of the block around it."""

from autograder.core.comparison import assert_close
from autograder.graders import contracts

from .sizes import D


@contracts.exercise("layer_norm")
class TestLayerNorm(contracts.Graders):
    def draw(self, rng, *sizes):
        return (rng.randn(*(sizes or (4, D))),)

    test_rows = contracts.agree("Each row is normalised.", [(4, D), (1, 6)], public=True)
    test_leading_dimensions = contracts.agree("Any number of leading dimensions works.", [(2, 3, D), (D,)])
    test_gradients = contracts.gradients("Gradients flow back to the input.")
    test_input_is_unchanged = contracts.unchanged("The input is left as it was.")
    test_follows_device = contracts.device("The result is on the input's device.")


@contracts.exercise("ResidualBlock", forbids=["library attention"])
class TestResidualBlock(contracts.Graders):
    def callee(self, face):
        return face.ResidualBlock(D)

    def draw(self, rng, *sizes):
        return (rng.randn(*(sizes or (4, D))),)

    @contracts.points(1, public=True)
    def test_seeded(self, student, reference, rng):
        """With seed 123 its layer is the one that PyTorch draws first."""
        (x,), results = self.draw(rng), []
        for face in (student, reference):
            face.manual_seed(123)
            results.append(self.callee(face)(x))
        assert_close(*results)

    test_result = contracts.agree("The input is added to what the layer makes of it.", [(4, D), (2, 3, D), (1, D)])
    test_parameters = contracts.parameters(
        "There is one weight, of the layer called linear.", {"linear.weight": (D, D)}
    )
