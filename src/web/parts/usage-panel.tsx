import { Group, SegmentedControl } from "@mantine/core";
import type { ReactNode } from "react";
import type { UsageGroup, UsageSeries } from "../api.ts";
import { Link, useQueryState } from "../router.tsx";
import { formatCompact, formatCount, formatDuration, t } from "../texts.tsx";
import { Empty, Panel } from "./page.tsx";
import { TablePanel } from "./table.tsx";
import { groupLabel, seriesColors } from "./time-series.ts";
import { type Measure, UsageChart } from "./usage-chart.tsx";

export interface Grouping<Value extends string = string> {
	readonly value: Value;
	readonly label: string;
	/** Heading of the table for this grouping. */
	readonly by: string;
}

/** Returns the grouping in the URL; the first one if the URL has none. */
export function useGrouping<Value extends string>(groupings: readonly Grouping<Value>[]): Grouping<Value> {
	const [query] = useQueryState();
	return groupings.find(({ value }) => value === query.get("group")) ?? (groupings[0] as Grouping<Value>);
}

/** Panel with a chart of usage and selects for measure and grouping. `children` are figures above the chart. */
export function UsagePanel(props: {
	/** Label of the measure of money, such as "Cost" or "Revenue". */
	money: string;
	groupings: readonly Grouping[];
	series: UsageSeries | undefined;
	empty: ReactNode;
	children: ReactNode;
}) {
	const { series } = props;
	const [query, change] = useQueryState();
	const grouping = useGrouping(props.groupings);
	const measures = [
		{ value: "cost", label: props.money },
		{ value: "tokens", label: t("Tokens") },
		{ value: "requests", label: t("Requests") },
	] as const satisfies readonly { value: Measure; label: string }[];
	const measured = measures.find(({ value }) => value === query.get("show")) ?? measures[0];
	return (
		<Panel
			title={measured.label}
			aside={
				<>
					<SegmentedControl
						size="xs"
						aria-label={t("Metric")}
						data={[...measures]}
						value={measured.value}
						onChange={(value) => change({ show: value === "cost" ? null : value })}
					/>
					<SegmentedControl
						size="xs"
						aria-label={t("Grouped by")}
						data={props.groupings.map(({ value, label }) => ({ value, label }))}
						value={grouping.value}
						onChange={(value) => change({ group: value === props.groupings[0]?.value ? null : value })}
					/>
				</>
			}
		>
			{props.children}
			{series?.points.length === 0 ? (
				props.empty
			) : (
				<UsageChart
					series={series}
					measure={measured.value}
					label={t("{measure} over time by {group}; the table below has the figures", {
						measure: measured.label,
						group: grouping.label,
					})}
				/>
			)}
		</Panel>
	);
}

/** Table of groups with their usage, in the colours of the chart. */
export function UsageTable(props: {
	title: string;
	lead: string;
	amount: string;
	groups: readonly UsageGroup[] | undefined;
	/** Returns the address of a group's details; null: no link. */
	link: (id: string) => string | null;
}) {
	const color = seriesColors(props.groups);
	const name = (row: UsageGroup) => {
		const to = row.id === "other" ? null : props.link(row.id);
		return to === null ? groupLabel(row) : <Link to={to}>{groupLabel(row)}</Link>;
	};
	return (
		<TablePanel
			title={props.title}
			rows={props.groups}
			empty={<Empty title={t("No usage.")} />}
			columns={[
				{
					label: props.lead,
					lead: true,
					render: (row) => (
						<Group gap="xs" wrap="nowrap">
							<span className="swatch" style={{ background: color(row.id) }} />
							{name(row)}
						</Group>
					),
				},
				{ label: t("Requests"), figure: (row) => formatCount(row.requests) },
				{ label: t("Prompt"), figure: (row) => <Tokens value={row.promptTokens} /> },
				{ label: t("Completion"), figure: (row) => <Tokens value={row.completionTokens} /> },
				{ label: t("First token"), figure: (row) => formatDuration(row.meanFirstTokenMs) },
				{ label: t("Mean duration"), figure: (row) => formatDuration(row.meanMs) },
				{ label: props.amount, amount: (row) => row.costNanoUsd, corner: true },
			]}
		/>
	);
}

export const Tokens = ({ value }: { value: number }) => <span title={formatCount(value)}>{formatCompact(value)}</span>;
