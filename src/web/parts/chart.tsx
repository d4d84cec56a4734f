import { AreaChart, BarChart } from "@mantine/charts";

/** A series of the chart. Its `name` must contain no dots, which the library reads as paths. */
export interface ChartSeries {
	readonly name: string;
	readonly label: string;
	readonly color: string;
}

export interface ChartProps {
	readonly label: string;
	readonly kind: "area" | "bar";
	readonly data: Record<string, number | string>[];
	readonly series: readonly ChartSeries[];
	readonly formatTick: (value: number) => string;
	readonly formatValue: (value: number) => string;
}

/** A chunk of its own, because the chart's library is as large as all other code. */
export default function Chart({ label, kind, data, series, formatTick, formatValue }: ChartProps) {
	const shared = {
		h: 240,
		data,
		dataKey: "at",
		series: [...series],
		gridAxis: "x" as const,
		tickLine: "none" as const,
		valueFormatter: formatValue,
		withLegend: false,
		xAxisProps: { interval: "equidistantPreserveStart" as const, minTickGap: 24 },
		yAxisProps: { width: "auto" as const, tickFormatter: formatTick },
		tooltipAnimationDuration: 0,
		strokeDasharray: "2 4",
	};
	return (
		<div role="img" aria-label={label}>
			{kind === "area" ? (
				<AreaChart
					{...shared}
					type="stacked"
					curveType="linear"
					withDots={false}
					fillOpacity={0.35}
					withGradient={false}
					areaProps={{ isAnimationActive: false }}
				/>
			) : (
				<BarChart {...shared} type="stacked" barProps={{ isAnimationActive: false }} maxBarWidth={28} />
			)}
		</div>
	);
}
