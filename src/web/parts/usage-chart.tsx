import { Group, Skeleton } from "@mantine/core";
import { useEffect, useMemo } from "react";
import { nanoUsd } from "../../money/nano-usd.ts";
import { formatCompact, formatCount } from "../format.ts";
import { lazy } from "../lazy.tsx";
import { showUsd, showUsdShort } from "../shown-money.ts";
import { locale, t } from "../texts.tsx";
import type { UsageSeries } from "../views.ts";
import type { ChartProps, ChartSeries } from "./chart.tsx";

export type Measure = "cost" | "tokens" | "requests";

const CHART_HEIGHT = 240;
const Chart = lazy<ChartProps>(() => import("./chart.tsx"), <Skeleton height={CHART_HEIGHT} />);

/** Colours that remain distinct with common colour blindness (after Okabe and Ito), on light and dark. */
const COLORS = ["#0072b2", "#d98200", "#009e73", "#b8578d", "#56b4e9", "#c04f15", "#8c8f00", "#7a6ac8"] as const;
const OTHER = "#8a939b";
const STATUS_COLORS: Readonly<Record<string, string>> = { ok: "#009e73", failed: "#c04f15", left: "#d98200" };
/** Groups that have a series of their own; the rest is one series. */
const SERIES_MAX = COLORS.length;

/** A group's colour, the same in chart and table: by position, except for statuses. */
export function seriesColors(groups: readonly { readonly id: string }[] = []): (id: string) => string {
	const places = new Map(groups.map(({ id }, place) => [id, place]));
	return (id) => STATUS_COLORS[id] ?? COLORS[places.get(id) ?? SERIES_MAX] ?? OTHER;
}

/** Usage over time, stacked by group, with a legend. */
export function UsageChart(props: { series: UsageSeries | undefined; measure: Measure; label: string }) {
	const { series, measure } = props;
	const drawn = useMemo(() => (series ? shape(series, measure) : undefined), [series, measure]);
	useEffect(() => Chart.preload(), []);
	if (!drawn) return <Skeleton height={CHART_HEIGHT + 30} />;
	const money = measure === "cost";
	return (
		<div className="chart">
			<Chart
				label={props.label}
				kind={money ? "area" : "bar"}
				data={drawn.rows}
				series={drawn.series}
				formatTick={money ? (tick) => showUsdShort(nanoUsd(Math.round(tick))) : formatCompact}
				formatValue={money ? (sum) => showUsd(nanoUsd(sum)) : formatCount}
			/>
			<Group component="ul" className="bare small" gap="4px 12px" mt={6}>
				{drawn.series.map(({ name, label, color }) => (
					<Group component="li" key={name} gap={6} wrap="nowrap" maw="100%">
						<span className="swatch" style={{ background: color }} />
						<span className="clip">{label}</span>
					</Group>
				))}
			</Group>
		</div>
	);
}

function shape(series: UsageSeries, measure: Measure) {
	const color = seriesColors(series.groups);
	// Series are named by position, because ids may contain dots, and two keys may have one name.
	const drawn: ChartSeries[] = series.groups
		.slice(0, SERIES_MAX)
		.map((group, place) => ({ name: `g${place}`, label: groupLabel(group), color: color(group.id) }));
	if (series.groups.length > SERIES_MAX) drawn.push({ name: "rest", label: t("Others"), color: OTHER });
	const nameOf = new Map(series.groups.map(({ id }, place) => [id, drawn[place]?.name ?? "rest"]));
	const byDay = series.bucketMs >= 86_400_000;
	const rows = new Map<number, Record<string, number | string>>();
	const start = Math.floor(series.fromMs / series.bucketMs) * series.bucketMs;
	for (let at = start; at < series.toMs; at += series.bucketMs) {
		rows.set(at, { at: bucketLabel(at, byDay), ...Object.fromEntries(drawn.map(({ name }) => [name, 0])) });
	}
	for (const point of series.points) {
		const row = rows.get(point.atMs);
		const name = nameOf.get(point.group) ?? "rest";
		if (row?.[name] !== undefined) row[name] = Number(row[name]) + measureOf(point, measure);
	}
	return { rows: [...rows.values()], series: drawn };
}

/** Name of a group. Usage outside projects is a group without a name. */
export const groupLabel = ({ id, label }: { id: string; label: string }): string =>
	id === "" ? t("No project") : label;

/** Value of a point as an integer: nano-dollars, tokens or requests. */
function measureOf(point: UsageSeries["points"][number], measure: Measure): number {
	if (measure === "cost") return point.costNanoUsd;
	return measure === "tokens" ? point.promptTokens + point.completionTokens : point.requests;
}

const day = new Intl.DateTimeFormat(locale, { month: "short", day: "numeric", timeZone: "UTC" });
const hour = new Intl.DateTimeFormat(locale, {
	month: "short",
	day: "numeric",
	hour: "2-digit",
	minute: "2-digit",
	hourCycle: "h23",
});
/** Days are in UTC, by which the service sums usage. */
const bucketLabel = (atMs: number, byDay: boolean): string => (byDay ? day : hour).format(atMs);
