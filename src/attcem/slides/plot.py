"""A chart that whoever gets the slides can edit: points and lines on two axes, with error bars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attcem.slides.page import INK, RULE, SMALLEST, SOFT, Plot, Series

if TYPE_CHECKING:
    from pptx.chart.chart import Chart

MARKERS = {
    "o": "CIRCLE",
    "s": "SQUARE",
    "^": "TRIANGLE",
    "D": "DIAMOND",
    "v": "DASH",
    "P": "PLUS",
    "X": "X",
    "*": "STAR",
}
BARS = (
    '<c:errBars xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"'
    ' xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><c:errDir val="{direction}"/>'
    '<c:errBarType val="both"/><c:errValType val="cust"/><c:noEndCap val="1"/>'
    "<c:plus>{lengths}</c:plus><c:minus>{lengths}</c:minus>"
    '<c:spPr><a:ln w="12700"><a:solidFill><a:srgbClr val="{colour}"/></a:solidFill></a:ln></c:spPr></c:errBars>'
)


def draw_plot(shapes: Any, plot: Plot) -> None:
    from pptx.chart.data import XyChartData
    from pptx.enum.chart import XL_CHART_TYPE
    from pptx.util import Inches

    data = XyChartData()
    ordered = sorted(
        plot.series, key=lambda series: -len(series.xs)
    )  # LibreOffice loses what comes before a longer one
    for series in ordered:
        points = data.add_series(series.name)
        for x, y in zip(series.xs, series.ys, strict=True):
            points.add_data_point(float(x), float(y))
    frame = shapes.add_chart(XL_CHART_TYPE.XY_SCATTER_LINES, *map(Inches, plot.box), data)
    chart: Chart = frame.chart
    frame.name = plot.up
    style_axes(chart, plot)
    for drawn, series in zip(chart.plots[0].series, ordered, strict=True):
        style_series(drawn, series)


def style_axes(chart: Chart, plot: Plot) -> None:
    from pptx.dml.color import RGBColor
    from pptx.enum.chart import XL_LEGEND_POSITION, XL_TICK_LABEL_POSITION
    from pptx.oxml import parse_xml
    from pptx.util import Pt

    chart.font.size, chart.font.color.rgb = Pt(SMALLEST), RGBColor.from_string(INK)
    chart.has_title = False
    chart.has_legend = plot.legend
    if plot.legend:
        chart.legend.position, chart.legend.include_in_layout = XL_LEGEND_POSITION.RIGHT, False
        chart.legend.font.size = Pt(SMALLEST)
    for axis, title in ((chart.category_axis, plot.across), (chart.value_axis, plot.up)):
        axis.has_title = True
        frame = axis.axis_title.text_frame
        frame.text = title
        run = frame.paragraphs[0].runs[0]
        run.font.size, run.font.bold, run.font.color.rgb = Pt(SMALLEST), False, RGBColor.from_string(SOFT)
        axis.has_major_gridlines = axis is chart.value_axis
        axis.format.line.color.rgb = RGBColor.from_string(SOFT)
        axis.tick_label_position = XL_TICK_LABEL_POSITION.LOW
        axis.tick_labels.number_format, axis.tick_labels.number_format_is_linked = "General", False
    chart.value_axis.major_gridlines.format.line.color.rgb = RGBColor.from_string(RULE)
    xs = [x + bar for s in plot.series for x, bar in zip(s.xs, s.x_bars or [0.0] * len(s.xs), strict=True)]
    ys = [
        y + sign * bar
        for s in plot.series
        for y, bar in zip(s.ys, s.y_bars or [0.0] * len(s.ys), strict=True)
        for sign in (-1, 1)
    ]
    set_scale(chart.category_axis, [0.0, *xs])
    if plot.log:
        base = '<c:logBase xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart" val="10"/>'
        chart.value_axis._element.scaling.insert(0, parse_xml(base))
        chart.value_axis.tick_labels.number_format = "General" if min(ys) >= 1e-3 else "0E+0"
        chart.value_axis.minimum_scale = 10.0 ** math.floor(math.log10(min(ys)))
        chart.value_axis.maximum_scale = 10.0 ** math.ceil(math.log10(max(ys)))
    else:
        set_scale(chart.value_axis, ys)


def set_scale(axis: Any, values: Sequence[float]) -> None:
    axis.minimum_scale, axis.maximum_scale, axis.major_unit = scale(min(values), max(values))


def scale(low: float, high: float) -> tuple[float, float, float]:
    """From, to and step of an axis, in steps that read well: about five of them.

    >>> scale(0.605, 0.732), scale(0, 5), scale(0.5, 0.5)
    ((0.6, 0.75, 0.025), (0.0, 5.0, 1.0), (0.44, 0.56, 0.02))
    """
    if high <= low:
        air = abs(low) / 10 or 1.0
        low, high = low - air, high + air
    power = 10.0 ** math.floor(math.log10((high - low) / 5))
    step = next(times * power for times in (1, 2, 2.5, 5, 10) if (high - low) / (times * power) <= 5.5)
    ends = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return round(ends[0], 12), round(ends[1], 12), round(step, 12)


def style_series(drawn: Any, series: Series) -> None:
    from pptx.dml.color import RGBColor
    from pptx.enum.chart import XL_MARKER_STYLE
    from pptx.enum.dml import MSO_LINE
    from pptx.util import Pt

    colour, line = RGBColor.from_string(series.colour), drawn.format.line
    drawn.smooth = False
    if series.dash:
        line.color.rgb, line.width = colour, Pt(2)
        line.dash_style = getattr(MSO_LINE, series.dash)
    else:
        line.fill.background()
    drawn.marker.style = getattr(XL_MARKER_STYLE, MARKERS.get(series.marker, "NONE"))
    if series.marker:
        drawn.marker.size = 12 if series.marker == "*" else 9
        drawn.marker.format.line.color.rgb = colour
        drawn.marker.format.fill.solid()
        drawn.marker.format.fill.fore_color.rgb = colour
    for direction, bars in (("x", series.x_bars), ("y", series.y_bars)):
        if any(bars):
            draw_bars(drawn._element, direction, bars, series.colour)


def draw_bars(element: Any, direction: str, bars: Sequence[float], colour: str) -> None:
    """Error bars, which the library does not know; they belong before the points."""
    from pptx.oxml import parse_xml

    points = "".join(f'<c:pt idx="{place}"><c:v>{float(bar)}</c:v></c:pt>' for place, bar in enumerate(bars))
    lengths = f'<c:numLit><c:ptCount val="{len(bars)}"/>{points}</c:numLit>'
    element.xVal.addprevious(parse_xml(BARS.format(direction=direction, lengths=lengths, colour=colour)))
