import { Group } from "@mantine/core";
import { useMemo } from "react";
import { locale, t } from "../texts.tsx";
import Chart, { type ChartProps, type ChartRow, type ChartSeries } from "./chart.tsx";
import { groupLabel, OTHER_GROUP, SERIES_MAX, seriesColors, type TimeSeries } from "./time-series.ts";

export interface TimeChartProps extends Pick<ChartProps, "label" | "formatTick" | "formatValue"> {
	readonly series: TimeSeries;
	readonly kind?: ChartProps["kind"];
}

/** Chart of the series with a legend. The last bucket is dashed until it ends. */
export default function TimeChart({ series, kind = "bar", ...chart }: TimeChartProps) {
	const drawn = useMemo(() => shape(series, kind === "bar" ? 0 : null), [series, kind]);
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
				{kind === "bar" && drawn.rows.at(-1)?.running && <li className="dim">{t("Dashed: still in progress")}</li>}
			</Group>
		</div>
	);
}

function shape(series: TimeSeries, absent: 0 | null) {
	const color = seriesColors(series.groups);
	// The names of series are their positions: ids may contain dots, and two keys may have the same name.
	const drawn: ChartSeries[] = series.groups
		.slice(0, SERIES_MAX)
		.map((group, place) => ({ name: `g${place}`, label: groupLabel(group), color: color(group.id) }));
	if (series.groups.length > SERIES_MAX && absent === 0)
		drawn.push({ name: "rest", label: t("Others"), color: OTHER_GROUP });
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

const day = new Intl.DateTimeFormat(locale, { month: "short", day: "numeric", timeZone: "UTC" });
const localDay = new Intl.DateTimeFormat(locale, { month: "short", day: "numeric" });
const month = new Intl.DateTimeFormat(locale, { month: "short", year: "numeric", timeZone: "UTC" });
const time = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

/** Returns labels of a bucket: days, weeks and months in UTC, as usage is summed; hours in the browser's time zone. */
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
