import pytest
from matplotlib.figure import Figure


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """Call a function that draws what it is given to a file; return the axes."""

    def drawn(draw, content):
        figures = []
        monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: figures.append(figure))
        draw(content, str(tmp_path / "plot.png"))
        return figures[0].axes[0]

    return drawn
