import { BarChart, LineChart } from "@mantine/charts";
import { Rectangle } from "recharts";
import { roundTicks } from "./round-ticks.ts";

/** A series of the chart. Its `name` must contain no dots: the chart library reads dots as paths. */
export interface ChartSeries {
	readonly name: string;
	readonly label: string;
	readonly color: string;
}

export interface ChartRow {
	/** Unique label of the bucket; `short` is its label on the axis. */
	readonly at: string;
	readonly tick: string;
	/** True while the bucket's hour, day, week or month has not ended. */
	readonly running: boolean;
	readonly [series: string]: string | number | boolean | null;
}

/** Formats a tick of an axis. `step` is the distance between ticks. */
export type FormatTick = (value: number, step: number) => string;

export interface ChartProps {
	readonly label: string;
	/** `bar`: bars are stacked. */
	readonly kind: "bar" | "line";
	readonly data: readonly ChartRow[];
	readonly series: readonly ChartSeries[];
	readonly formatTick: FormatTick;
	readonly formatValue: (value: number) => string;
}

/** Loaded as a separate chunk, because the chart library is as large as all other code of the pages. */
export default function Chart({ label, kind, data, series, formatTick, formatValue }: ChartProps) {
	const ticks = roundTicks(data.flatMap((row) => heightsOf(row, series, kind)));
	const step = (ticks[1] ?? Infinity) - (ticks[0] ?? 0);
	const short = new Map(data.map(({ at, tick }) => [at, tick]));
	const shared = {
		h: 240,
		data: [...data],
		dataKey: "at",
		series: [...series],
		gridAxis: "x" as const,
		tickLine: "none" as const,
		valueFormatter: formatValue,
		withLegend: false,
		xAxisProps: {
			interval: "equidistantPreserveStart" as const,
			minTickGap: 8,
			tickFormatter: (at: string) => short.get(at) ?? at,
		},
		yAxisProps: {
			width: "auto" as const,
			ticks,
			domain: [ticks[0] ?? 0, ticks.at(-1) || 1] as [number, number],
			tickFormatter: (value: number) => formatTick(value, step),
		},
		tooltipAnimationDuration: 0,
		strokeDasharray: "2 4",
	};
	return (
		<div role="img" aria-label={label}>
			{kind === "line" ? (
				<LineChart
					{...shared}
					// Space for the labels of the first and last bucket.
					xAxisProps={{ ...shared.xAxisProps, padding: { left: 24, right: 24 } }}
					curveType="linear"
					dotProps={{ r: 2 }}
					connectNulls={false}
				/>
			) : (
				<BarChart
					{...shared}
					type="stacked"
					maxBarWidth={28}
					barChartProps={{ stackOffset: "sign" }}
					barProps={{
						shape: (bar) => <Rectangle {...bar} {...((bar.payload as ChartRow).running ? dashed(bar.fill) : {})} />,
					}}
				/>
			)}
		</div>
	);
}

const dashed = (color: string | undefined) => ({
	fillOpacity: 0.25,
	stroke: color ?? "currentColor",
	strokeOpacity: 1,
	strokeDasharray: "3 2",
});

/** Values of a bucket that the axis must cover; for bars, the height of the stack. */
function heightsOf(row: ChartRow, series: readonly ChartSeries[], kind: ChartProps["kind"]): number[] {
	const values = series.map(({ name }) => row[name]).filter((value) => typeof value === "number");
	if (kind === "line") return values;
	const sum = (sign: number) => values.reduce((all, value) => all + (value * sign > 0 ? value : 0), 0);
	return [sum(1), sum(-1)];
}
