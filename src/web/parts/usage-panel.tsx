import { SegmentedControl } from "@mantine/core";
import type { ReactNode } from "react";
import { useQueryState } from "../router.tsx";
import { t } from "../texts.tsx";
import type { UsageSeries } from "../views.ts";
import { Panel } from "./page.tsx";
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
