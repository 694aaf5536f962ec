"""The parts of the dashboards: variables, panels and their layout, typed by Grafana's SDK."""
import itertools

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, table, timeseries
from grafana_foundation_sdk.models import common as common_models
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

SOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
RUN = 'job="$job", run="$run"'  # of every query
WORKER = RUN + ', instance=~"$instance"'
WIDTH = 24  # columns of Grafana's grid


def thresholds(*steps):
    """Colours from a value on; the first one has no value."""
    return (dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE)
            .steps([models.Threshold(value=value, color=color) for value, color in steps]))


def good_above(tolerable, good):
    return thresholds((None, "red"), (tolerable, "yellow"), (good, "green"))


def bad_above(doubtful, bad):
    return thresholds((None, "green"), (doubtful, "yellow"), (bad, "red"))


NEUTRAL = thresholds((None, "blue"))


def queries(panel, targets):
    for number, (expr, legend) in enumerate(targets):
        panel = panel.with_target(prometheus.Dataquery().expr(expr).legend_format(legend)
                                  .ref_id(chr(ord("A") + number)).datasource(SOURCE))
    return panel.datasource(SOURCE)


def number(title, description, unit, expr, limits=NEUTRAL, decimals=None):
    """One value, large."""
    options = common.ReduceDataOptions().calcs(["lastNotNull"])
    panel = (stat.Panel().title(title).description(description).unit(unit).thresholds(limits)
             .reduce_options(options).graph_mode(common_models.BigValueGraphMode.AREA)
             .span(3).height(4))
    if decimals is not None:
        panel = panel.decimals(decimals)
    return queries(panel, [(expr, "")])


def chart(title, description, unit, *targets, span=8, low=0, high=None, limits=None, stacked=False):
    """Lines over time; `targets` are (expression, legend)."""
    legend = (common.VizLegendOptions().display_mode(common_models.LegendDisplayMode.LIST)
              .placement(common_models.LegendPlacement.BOTTOM).show_legend(True))
    tooltip = common.VizTooltipOptions().mode(common_models.TooltipDisplayMode.MULTI)
    panel = (timeseries.Panel().title(title).description(description).unit(unit).legend(legend)
             .tooltip(tooltip).span(span).height(8).line_width(1)
             .show_points(common_models.VisibilityMode.NEVER))
    if low is not None:
        panel = panel.min(low)
    if high is not None:
        panel = panel.max(high)
    if limits is not None:
        style = common.GraphThresholdsStyleConfig().mode(
            common_models.GraphTresholdsStyleMode.DASHED)
        panel = panel.thresholds(limits).thresholds_style(style)
    if stacked:
        panel = panel.fill_opacity(40).stacking(
            common.StackingConfig().mode(common_models.StackingMode.NORMAL))
    return queries(panel, targets)


def facts(title, description, expr, *hidden, span=12):
    """The labels of the series as a table."""
    organize = models.DataTransformerConfig(
        id_val="organize",
        options={"excludeByName": {name: True for name in
                                   ("Time", "Value", "__name__", "job", "run", *hidden)}})
    panel = (table.Panel().title(title).description(description).span(span).height(8)
             .with_transformation(organize).datasource(SOURCE))
    return panel.with_target(prometheus.Dataquery().expr(expr).instant()
                             .format(PromQueryFormat.TABLE).ref_id("A").datasource(SOURCE))


def chosen(name, label, query, several=False):
    variable = (dashboard.QueryVariable(name).label(label).query(query).datasource(SOURCE)
                .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
                .sort(models.VariableSort.ALPHABETICAL_ASC))
    if several:
        everything = models.VariableOption(text="All", value="$__all", selected=True)
        variable = variable.multi(True).include_all(True).current(everything)
    return variable


def board(uid, title, description, instances, rows):
    """`instances`: the family whose instances can be chosen; `rows`: (title, panels)."""
    made = (dashboard.Dashboard(title).uid(uid).description(description).tags(["lockstep"])
            .readonly().refresh("15s").time("now-1h", "now").timezone("browser")
            .tooltip(models.DashboardCursorSync.CROSSHAIR)
            .link(dashboard.DashboardLink("Lockstep").type(models.DashboardLinkType.DASHBOARDS)
                  .tags(["lockstep"]).as_dropdown(True).include_vars(True).keep_time(True))
            .with_variable(dashboard.DatasourceVariable("datasource").label("Data source")
                           .type("prometheus"))
            .with_variable(chosen("job", "Job", "label_values(lockstep_job_step, job)"))
            .with_variable(chosen("run", "Run", 'label_values(lockstep_job_step{job="$job"}, run)'))
            .with_variable(chosen("instance", "Instance",
                                  f"label_values({instances}{{{RUN}}}, instance)", several=True)))
    ids = itertools.count(1)
    for row, panels in rows:
        made = made.with_row(dashboard.Row(row).id(next(ids)))
        for panel in panels:
            made = made.with_panel(panel.id(next(ids)))
    return made.build()
