import { Button, Group, SegmentedControl } from "@mantine/core";
import { useMemo, useState } from "react";
import { api } from "../api.ts";
import { formatCompact, formatCount, formatDuration } from "../format.ts";
import { UsageFilters } from "../parts/filters.tsx";
import { CsvButton } from "../parts/form.tsx";
import { Page, Panel, Stat } from "../parts/page.tsx";
import { Empty, Reading } from "../parts/problem.tsx";
import { type Column, DataTable } from "../parts/table.tsx";
import { Amount } from "../parts/text.tsx";
import { groupLabel, type Measure, UsageChart, useSeriesColors } from "../parts/usage-chart.tsx";
import { filterOf } from "../range.ts";
import { useResource } from "../resource.ts";
import { Link, useQueryState } from "../router.tsx";
import { useAccount } from "../session.tsx";
import { t } from "../texts.tsx";
import type { UsageGroup, UsageSeries } from "../views.ts";

const GROUPS = [
	{
		value: "model",
		label: t("Model"),
		by: t("By model"),
		usageBy: t("Usage by model"),
		each: t("Each model that was used will be a line here."),
	},
	{
		value: "key",
		label: t("Key"),
		by: t("By key"),
		usageBy: t("Usage by key"),
		each: t("Each key that was used will be a line here."),
	},
	{
		value: "project",
		label: t("Project"),
		by: t("By project"),
		usageBy: t("Usage by project"),
		each: t("Each project in which something was used will be a line here."),
	},
	{
		value: "status",
		label: t("Status"),
		by: t("By status"),
		usageBy: t("Usage by status"),
		each: t("Each status that was used will be a line here."),
	},
] as const;
type Grouping = (typeof GROUPS)[number];
const MEASURES = [
	{ value: "cost", label: t("Cost") },
	{ value: "tokens", label: t("Tokens") },
	{ value: "requests", label: t("Requests") },
] as const satisfies readonly { value: Measure; label: string }[];

export default function UsagePage() {
	const account = useAccount();
	const [query, change] = useQueryState();
	const grouping: Grouping = GROUPS.find(({ value }) => value === query.get("group")) ?? GROUPS[0];
	const group = grouping.value;
	const measured = MEASURES.find(({ value }) => value === query.get("show")) ?? MEASURES[0];
	const measure = measured.value;
	// Fixed while the page is open: a new value on each render would load without end.
	const [nowMs] = useState(() => Date.now());
	const filter = useMemo(() => ({ ...filterOf(query, nowMs), group }), [query, nowMs, group]);
	const usage = useResource(`usage ${account.id} ${JSON.stringify(filter)}`, () => api.usage(account.id, filter));
	const data = usage.data;

	return (
		<Page title={t("Usage")} aside={<CsvButton href={api.usageCsvAddress(account.id, filter)} />}>
			<UsageFilters />
			<Reading of={usage} />
			{(data || !usage.error) && (
				<>
					<Panel
						title={measured.label}
						aside={
							<>
								<SegmentedControl
									size="xs"
									aria-label={t("What is drawn")}
									data={[...MEASURES]}
									value={measure}
									onChange={(value) => change({ show: value === "cost" ? null : value })}
								/>
								<SegmentedControl
									size="xs"
									aria-label={t("Grouped by")}
									data={GROUPS.map(({ value, label }) => ({ value, label }))}
									value={group}
									onChange={(value) => change({ group: value === "model" ? null : value })}
								/>
							</>
						}
					>
						{data && <Totals series={data} />}
						{data?.total.requests === 0 ? (
							<Empty
								title={t("No usage in this time.")}
								action={
									<Button component={Link} to="/playground" variant="default" size="xs">
										{t("Try a model")}
									</Button>
								}
							>
								{t("Choose a longer time, take a filter away, or make a request.")}
							</Empty>
						) : (
							<UsageChart
								series={data}
								measure={measure}
								groupedBy={grouping.label}
								label={t("{measure} over time by {group}; the table below has the figures", {
									measure: measured.label,
									group: grouping.label,
								})}
							/>
						)}
					</Panel>
					<Groups series={data} grouping={grouping} />
				</>
			)}
		</Page>
	);
}

function Totals({ series }: { series: UsageSeries }) {
	const { total } = series;
	return (
		<div className="stats">
			<Stat label={t("Cost")} value={<Amount nanoUsd={total.costNanoUsd} />} />
			<Stat label={t("Requests")} value={formatCount(total.requests)} />
			<Stat
				label={t("Prompt tokens")}
				value={<span title={formatCount(total.promptTokens)}>{formatCompact(total.promptTokens)}</span>}
			>
				{total.cachedTokens > 0
					? t("{tokens} from the cache", { tokens: formatCompact(total.cachedTokens) })
					: undefined}
			</Stat>
			<Stat
				label={t("Completion tokens")}
				value={<span title={formatCount(total.completionTokens)}>{formatCompact(total.completionTokens)}</span>}
			/>
		</div>
	);
}

/** The chart's figures; each links to its requests. */
function Groups({ series, grouping }: { series: UsageSeries | undefined; grouping: Grouping }) {
	const group = grouping.value;
	const [query] = useQueryState();
	const color = useSeriesColors(series);
	const lines = useMemo(() => sparkValues(series), [series]);
	const columns: Column<UsageGroup>[] = [
		{
			label: grouping.label,
			lead: true,
			render: (row) => (
				<Group gap="xs" wrap="nowrap">
					<span className="swatch" style={{ background: color(row.id) }} />
					{row.id === "other" ? (
						groupLabel(row)
					) : (
						<Link to={requestsLink(query, group, row.id || "none")}>{groupLabel(row)}</Link>
					)}
				</Group>
			),
		},
		{
			label: t("Trend"),
			render: (row) => <Sparkline values={lines.get(row.id) ?? []} color={color(row.id)} />,
		},
		{ label: t("Requests"), right: true, render: (row) => <span className="num">{formatCount(row.requests)}</span> },
		{ label: t("Prompt"), right: true, render: (row) => <Tokens value={row.promptTokens} /> },
		{ label: t("Completion"), right: true, render: (row) => <Tokens value={row.completionTokens} /> },
		{
			label: t("First token"),
			right: true,
			render: (row) => <span className="num">{formatDuration(row.meanFirstTokenMs)}</span>,
		},
		{ label: t("Mean time"), right: true, render: (row) => <span className="num">{formatDuration(row.meanMs)}</span> },
		{ label: t("Cost"), amount: (row) => row.costNanoUsd, corner: true },
	];
	return (
		<Panel title={grouping.by} flush>
			<DataTable
				label={grouping.usageBy}
				columns={columns}
				rows={series?.groups}
				rowKey={(row) => row.id}
				empty={<Empty title={t("Nothing to sum up.")}>{grouping.each}</Empty>}
			/>
		</Panel>
	);
}

const Tokens = ({ value }: { value: number }) => (
	<span className="num" title={formatCount(value)}>
		{formatCompact(value)}
	</span>
);

function requestsLink(query: URLSearchParams, group: string, id: string): string {
	const next = new URLSearchParams();
	for (const name of ["range", "from", "to", "model", "key", "project", "status"]) {
		const value = query.get(name);
		if (value !== null) next.set(name, value);
	}
	next.set(group, id);
	return `/requests?${next}`;
}

function sparkValues(series: UsageSeries | undefined): ReadonlyMap<string, number[]> {
	const lines = new Map<string, number[]>();
	if (!series) return lines;
	const start = Math.floor(series.fromMs / series.bucketMs);
	const length = Math.max(1, Math.ceil(series.toMs / series.bucketMs) - start);
	for (const point of series.points) {
		const line = lines.get(point.group) ?? new Array<number>(length).fill(0);
		const place = Math.floor(point.atMs / series.bucketMs) - start;
		if (place >= 0 && place < length) line[place] = (line[place] ?? 0) + point.costNanoUsd;
		lines.set(point.group, line);
	}
	return lines;
}

/** A line chart of 96 by 20 pixels for table rows; the row has the figures as text. */
function Sparkline({ values, color }: { values: readonly number[]; color: string }) {
	const top = Math.max(...values, 0);
	if (values.length < 2 || top === 0) return <span className="dim">–</span>;
	const points = values
		.map(
			(value, index) =>
				`${((index / (values.length - 1)) * 94 + 1).toFixed(1)},${(18 - (value / top) * 16).toFixed(1)}`,
		)
		.join(" ");
	return (
		<svg width="96" height="20" viewBox="0 0 96 20" aria-hidden="true">
			<polyline points={points} fill="none" stroke={color} strokeWidth="1.5" strokeLinejoin="round" />
		</svg>
	);
}
