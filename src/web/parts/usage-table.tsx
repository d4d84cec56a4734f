import { Group } from "@mantine/core";
import { formatCompact, formatCount, formatDuration } from "../format.ts";
import { Link } from "../router.tsx";
import { t } from "../texts.tsx";
import type { UsageGroup } from "../views.ts";
import { Empty } from "./problem.tsx";
import { TablePanel } from "./table.tsx";
import { groupLabel, seriesColors } from "./time-series.ts";

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
