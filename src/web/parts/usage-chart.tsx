import { Group, Skeleton } from "@mantine/core";
import { useEffect, useMemo } from "react";
import { nanoUsd } from "../../money/nano-usd.ts";
import { formatCount, formatTick } from "../format.ts";
import { lazy } from "../lazy.tsx";
import { showUsd, showUsdTick } from "../shown-money.ts";
import { locale, t } from "../texts.tsx";
import type { UsageSeries } from "../views.ts";
import type { ChartProps, ChartRow, ChartSeries } from "./chart.tsx";

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

interface Labelled {
	readonly id: string;
	readonly label: string;
}

/** Values over time by group. The highest groups come first. */
export interface TimeSeries extends Pick<UsageSeries, "bucket" | "starts" | "toMs"> {
	readonly groups: readonly Labelled[];
	readonly points: readonly { readonly atMs: number; readonly group: string; readonly value: number }[];
}

export const MONEY_FORMAT = {
	formatTick: (value: number, step: number) => showUsdTick(nanoUsd(Math.round(value)), step),
	formatValue: (value: number) => showUsd(nanoUsd(Math.round(value))),
};
export const COUNT_FORMAT = { formatTick, formatValue: formatCount };

/** A measure of usage over time, stacked by group, with a legend. */
export function UsageChart(props: { series: UsageSeries | undefined; measure: Measure; label: string }) {
	const { series, measure } = props;
	const shown = useMemo(
		() =>
			series && { ...series, points: series.points.map((point) => ({ ...point, value: measureOf(point, measure) })) },
		[series, measure],
	);
	return <TimeChart series={shown} label={props.label} {...(measure === "cost" ? MONEY_FORMAT : COUNT_FORMAT)} />;
}

/** Draws the series with a legend, the last bucket dashed while it is not over. */
export function TimeChart(
	props: { series: TimeSeries | undefined } & Pick<ChartProps, "label" | "formatTick" | "formatValue"> &
		Partial<Pick<ChartProps, "kind">>,
) {
	const { series, kind = "bar", ...chart } = props;
	const drawn = useMemo(() => (series ? shape(series, kind === "bar" ? 0 : null) : undefined), [series, kind]);
	useEffect(() => Chart.preload(), []);
	if (!drawn) return <Skeleton height={CHART_HEIGHT + 30} />;
	return (
		<div className="chart">
			<Chart {...chart} kind={kind} data={drawn.rows} series={drawn.series} />
			<Group component="ul" className="bare small" gap="4px 12px" mt={6}>
				{drawn.series.map(({ name, label, color }) => (
					<Group component="li" key={name} gap={6} wrap="nowrap" maw="100%">
						<span className="swatch" style={{ background: color }} />
						<span className="clip">{label}</span>
					</Group>
				))}
				{kind === "bar" && drawn.rows.at(-1)?.running && <li className="dim">{t("Dashed: not complete yet")}</li>}
			</Group>
		</div>
	);
}

function shape(series: TimeSeries, absent: 0 | null) {
	const color = seriesColors(series.groups);
	// Series are named by position, because ids may contain dots, and two keys may have one name.
	const drawn: ChartSeries[] = series.groups
		.slice(0, SERIES_MAX)
		.map((group, place) => ({ name: `g${place}`, label: groupLabel(group), color: color(group.id) }));
	if (series.groups.length > SERIES_MAX && absent === 0) drawn.push({ name: "rest", label: t("Others"), color: OTHER });
	const nameOf = new Map(series.groups.map(({ id }, place) => [id, drawn[place]?.name ?? "rest"]));
	const nowMs = Date.now();
	const values = Object.fromEntries(drawn.map(({ name }) => [name, absent]));
	const rows = new Map(
		series.starts.map((atMs, place): [number, ChartRow] => {
			const running = nowMs >= atMs && nowMs < (series.starts[place + 1] ?? series.toMs);
			return [atMs, { ...values, ...bucketLabels(atMs, series.bucket), running }];
		}),
	);
	for (const { atMs, group, value } of series.points) {
		const row = rows.get(atMs);
		const name = nameOf.get(group) ?? "rest";
		if (row && name in values) rows.set(atMs, { ...row, [name]: Number(row[name]) + value });
	}
	return { rows: [...rows.values()], series: drawn };
}

/** Name of a group; usage without a project has a group without a name. */
export const groupLabel = ({ id, label }: Labelled): string => (id === "" ? t("No project") : label);

/** Value of a point as an integer: nano-dollars, tokens or requests. */
function measureOf(point: UsageSeries["points"][number], measure: Measure): number {
	if (measure === "cost") return point.costNanoUsd;
	return measure === "tokens" ? point.promptTokens + point.completionTokens : point.requests;
}

const day = new Intl.DateTimeFormat(locale, { month: "short", day: "numeric", timeZone: "UTC" });
const localDay = new Intl.DateTimeFormat(locale, { month: "short", day: "numeric" });
const month = new Intl.DateTimeFormat(locale, { month: "short", year: "numeric", timeZone: "UTC" });
const time = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

/** Labels days, weeks and months in UTC, by which the service sums usage, and hours in the reader's time. */
function bucketLabels(atMs: number, bucket: TimeSeries["bucket"]): Pick<ChartRow, "at" | "tick"> {
	if (bucket !== "hour") {
		const at = (bucket === "month" ? month : day).format(atMs);
		return { at, tick: at };
	}
	const isMidnight = new Date(atMs).getHours() === 0;
	return {
		at: `${localDay.format(atMs)}, ${time.format(atMs)}`,
		tick: isMidnight ? localDay.format(atMs) : time.format(atMs),
	};
}
