import { Button, Group, Skeleton } from "@mantine/core";
import { useEffect, useMemo, useState } from "react";
import { nanoUsd } from "../../money/nano-usd.ts";
import { api } from "../api.ts";
import { formatCompact, formatCount } from "../format.ts";
import { lazy } from "../lazy.tsx";
import { useResource } from "../resource.ts";
import { SERIES_MAX, seriesColors } from "../series-colors.ts";
import { showUsd, showUsdShort } from "../shown-money.ts";
import { locale, t } from "../texts.tsx";
import type { UsageSeries } from "../views.ts";
import type { ChartProps, ChartSeries } from "./chart.tsx";

export type Measure = "cost" | "tokens" | "requests";

const CHART_HEIGHT = 240;
const Chart = lazy<ChartProps>(() => import("./chart.tsx"), <Skeleton height={CHART_HEIGHT} />);

/** Usage over time, stacked by group. Buttons hide and show groups. */
export function UsageChart(props: {
	series: UsageSeries | undefined;
	measure: Measure;
	groupedBy: string;
	label: string;
}) {
	const { series, measure } = props;
	const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
	const color = useSeriesColors(series);
	const drawn = useMemo(() => (series ? shape(series, measure, color) : undefined), [series, measure, color]);
	// Loads the chart while the figures are read.
	useEffect(() => Chart.preload(), []);
	if (!drawn) return <Skeleton height={CHART_HEIGHT + 30} />;

	const toggle = (id: string) => {
		const next = new Set(hidden);
		if (!next.delete(id)) next.add(id);
		setHidden(next);
	};
	const money = measure === "cost";
	return (
		<div className="chart">
			<Chart
				label={props.label}
				kind={money ? "area" : "bar"}
				data={drawn.rows}
				series={drawn.series.filter(({ id }) => !hidden.has(id))}
				formatTick={money ? (tick) => showUsdShort(nanoUsd(Math.round(tick))) : formatCompact}
				formatValue={money ? (sum) => showUsd(nanoUsd(sum)) : formatCount}
			/>
			{drawn.series.length > 0 && (
				<Group gap={4} mt={6} role="group" aria-label={t("Shown by {groupedBy}", { groupedBy: props.groupedBy })}>
					{drawn.series.map((item) => (
						<Button
							key={item.id}
							size="compact-xs"
							variant="subtle"
							color="gray"
							maw="100%"
							fw={400}
							c={hidden.has(item.id) ? "dimmed" : "var(--ink)"}
							aria-pressed={!hidden.has(item.id)}
							onClick={() => toggle(item.id)}
							leftSection={<span className="swatch" style={{ background: item.color }} />}
						>
							<span className="clip">{item.label}</span>
						</Button>
					))}
				</Group>
			)}
		</div>
	);
}

/** Colours by group id, shared by the chart and its table. */
export function useSeriesColors(series: UsageSeries | undefined): (id: string) => string {
	const models = useResource("models", api.models);
	return useMemo(() => {
		const drawn = series?.groups.slice(0, SERIES_MAX).map(({ id }) => id) ?? [];
		return seriesColors(drawn, models.data?.items.map(({ id }) => id) ?? []);
	}, [series, models.data]);
}

function shape(series: UsageSeries, measure: Measure, color: (id: string) => string) {
	const shown = series.groups.slice(0, SERIES_MAX);
	const nameOf = new Map(shown.map((group, index) => [group.id, `g${index}`]));
	const hasRest = series.groups.length > SERIES_MAX;
	const byDay = series.bucketMs >= 86_400_000;
	const rows = new Map<number, Record<string, number | string>>();
	const names = [...nameOf.values(), ...(hasRest ? ["rest"] : [])];
	const start = Math.floor(series.fromMs / series.bucketMs) * series.bucketMs;
	for (let at = start; at < series.toMs; at += series.bucketMs) {
		rows.set(at, { at: bucketLabel(at, byDay), ...Object.fromEntries(names.map((name) => [name, 0])) });
	}
	for (const point of series.points) {
		const row = rows.get(point.atMs);
		const name = nameOf.get(point.group) ?? (hasRest ? "rest" : undefined);
		if (row && name) row[name] = Number(row[name] ?? 0) + measureOf(point, measure);
	}
	// Two keys may have one name, as after a rotation: series are hidden by id.
	const drawn: (ChartSeries & { readonly id: string })[] = shown.map((group) => ({
		id: group.id,
		name: nameOf.get(group.id) ?? "rest",
		label: groupLabel(group),
		color: color(group.id),
	}));
	if (hasRest) drawn.push({ id: "rest", name: "rest", label: t("Others"), color: color("other") });
	return { rows: [...rows.values()], series: drawn };
}

/** Usage without a project is a group without a name. */
export const groupLabel = ({ id, label }: { id: string; label: string }): string =>
	id === "" ? t("No project") : label;

/** Integers: nano-dollars, tokens, requests. */
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
/** Days are in UTC, as the service sums them. */
const bucketLabel = (atMs: number, byDay: boolean): string => (byDay ? day : hour).format(atMs);
