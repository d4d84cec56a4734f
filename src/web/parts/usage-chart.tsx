import { Skeleton } from "@mantine/core";
import { useEffect, useMemo } from "react";
import { nanoUsd } from "../../money/nano-usd.ts";
import type { UsageSeries } from "../api.ts";
import { lazy } from "../lazy.tsx";
import { formatCount, formatTick, showUsd, showUsdTick } from "../texts.tsx";
import type { TimeChartProps } from "./time-chart.tsx";
import type { TimeSeries } from "./time-series.ts";

export type Measure = "cost" | "tokens" | "requests";

const WAITING = <Skeleton height={270} />;
/** A separate chunk, because the chart library is as large as all other code of the pages. */
const Drawn = lazy<TimeChartProps>(() => import("./time-chart.tsx"), WAITING);

export const MONEY_FORMAT = {
	formatTick: (value: number, step: number) => showUsdTick(nanoUsd(Math.round(value)), step),
	formatValue: (value: number) => showUsd(nanoUsd(Math.round(value))),
};
export const COUNT_FORMAT = { formatTick, formatValue: formatCount };

/** Chart of one measure of usage over time, stacked by group. */
export function UsageChart(props: { series: UsageSeries | undefined; measure: Measure; label: string }) {
	const { series, measure } = props;
	const shown = useMemo(
		() =>
			series && { ...series, points: series.points.map((point) => ({ ...point, value: measureOf(point, measure) })) },
		[series, measure],
	);
	return <TimeChart series={shown} label={props.label} {...(measure === "cost" ? MONEY_FORMAT : COUNT_FORMAT)} />;
}

/** Chart of a series, or a placeholder while the series is undefined. */
export function TimeChart(props: Omit<TimeChartProps, "series"> & { series: TimeSeries | undefined }) {
	const { series, ...chart } = props;
	useEffect(() => Drawn.preload(), []);
	return series ? <Drawn {...chart} series={series} /> : WAITING;
}

/** Returns the measure of a point as an integer: nano-dollars, tokens or requests. */
function measureOf(point: UsageSeries["points"][number], measure: Measure): number {
	if (measure === "cost") return point.costNanoUsd;
	return measure === "tokens" ? point.promptTokens + point.completionTokens : point.requests;
}
