import { Skeleton } from "@mantine/core";
import { useEffect, useMemo } from "react";
import { nanoUsd } from "../../money/nano-usd.ts";
import { formatCount, formatTick } from "../format.ts";
import { lazy } from "../lazy.tsx";
import { showUsd, showUsdTick } from "../shown-money.ts";
import { t } from "../texts.tsx";
import type { UsageSeries } from "../views.ts";
import type { TimeChartProps } from "./time-chart.tsx";

export type Measure = "cost" | "tokens" | "requests";

const WAITING = <Skeleton height={270} />;
/** A separate chunk, because its library is as large as all other code. */
const Drawn = lazy<TimeChartProps>(() => import("./time-chart.tsx"), WAITING);

/** Colours that remain distinct with common colour blindness (after Okabe and Ito), on light and dark. */
const COLORS = ["#0072b2", "#d98200", "#009e73", "#b8578d", "#56b4e9", "#c04f15", "#8c8f00", "#7a6ac8"] as const;
export const OTHER = "#8a939b";
const STATUS_COLORS: Readonly<Record<string, string>> = { ok: "#009e73", failed: "#c04f15", left: "#d98200" };
/** Groups that have a series of their own; the rest is one series. */
export const SERIES_MAX = COLORS.length;

/** A group's colour, the same in chart and table: by position, except for statuses. */
export function seriesColors(groups: readonly { readonly id: string }[] = []): (id: string) => string {
	const places = new Map(groups.map(({ id }, place) => [id, place]));
	return (id) => STATUS_COLORS[id] ?? COLORS[places.get(id) ?? SERIES_MAX] ?? OTHER;
}

export interface Labelled {
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

/** Draws the series with a legend; a placeholder without one. */
export function TimeChart(props: Omit<TimeChartProps, "series"> & { series: TimeSeries | undefined }) {
	const { series, ...chart } = props;
	useEffect(() => Drawn.preload(), []);
	return series ? <Drawn {...chart} series={series} /> : WAITING;
}

/** Name of a group; usage without a project has a group without a name. */
export const groupLabel = ({ id, label }: Labelled): string => (id === "" ? t("No project") : label);

/** Value of a point as an integer: nano-dollars, tokens or requests. */
function measureOf(point: UsageSeries["points"][number], measure: Measure): number {
	if (measure === "cost") return point.costNanoUsd;
	return measure === "tokens" ? point.promptTokens + point.completionTokens : point.requests;
}
