import { SegmentedControl } from "@mantine/core";
import { useMemo, useState } from "react";
import { ZERO_USD } from "../../money/nano-usd.ts";
import { formatCount, formatPercent } from "../format.ts";
import { codeText, LEDGER_KINDS } from "../labels.ts";
import { ServiceFilters } from "../parts/filters.tsx";
import { CsvButton } from "../parts/form.tsx";
import { Page, Panel, Stat } from "../parts/page.tsx";
import { Empty, Reading } from "../parts/problem.tsx";
import { TablePanel } from "../parts/table.tsx";
import { Amount } from "../parts/text.tsx";
import { type Measure, UsageChart } from "../parts/usage-chart.tsx";
import { Tokens, UsageTable } from "../parts/usage-table.tsx";
import { filterOf } from "../range.ts";
import { type Resource, useResource } from "../resource.ts";
import { useQueryState } from "../router.tsx";
import { t } from "../texts.tsx";
import type { LedgerEntry, UsageSeries } from "../views.ts";
import { type Figures, operatorApi, type RevenueFilter, type ServiceFilter } from "./api.ts";
import { Attention } from "./attention.tsx";
import { ServicePanels } from "./service-panels.tsx";

const GROUPS = [
	{ value: "model", label: t("Model"), by: t("By model") },
	{ value: "account", label: t("Account"), by: t("By account") },
	{ value: "project", label: t("Project"), by: t("By project") },
	{ value: "code", label: t("Result"), by: t("By result") },
] as const;
const MEASURES = [
	{ value: "cost", label: t("Revenue") },
	{ value: "tokens", label: t("Tokens") },
	{ value: "requests", label: t("Requests") },
] as const satisfies readonly { value: Measure; label: string }[];
const RANGE = "30d";
const TOP_ACCOUNTS = 20;

/** The operator's first page: open tasks, revenue, credit, accounts, margin and speed of the service. */
export function RevenuePage() {
	const [query] = useQueryState();
	// Fixed while the page is open: a new value on each render would reload for ever.
	const [nowMs] = useState(() => Date.now());
	const grouping = GROUPS.find(({ value }) => value === query.get("group")) ?? GROUPS[0];
	const service = useMemo((): ServiceFilter => {
		const { from, to, bucket, model } = filterOf(query, nowMs, RANGE);
		return { from, to, bucket, model };
	}, [query, nowMs]);
	const filter: RevenueFilter = { ...service, group: grouping.value };
	const of = JSON.stringify(service);
	const series = useResource(`revenue ${grouping.value} ${of}`, () => operatorApi.revenue(filter));
	const figures = useResource(`figures ${of}`, () => operatorApi.figures(service));
	const top = useResource(`revenue account ${of}`, () => operatorApi.revenue({ ...service, group: "account" }));
	return (
		<Page title={t("Revenue")} aside={<CsvButton href={operatorApi.revenueCsvAddress(filter)} />}>
			<Attention />
			<ServiceFilters range={RANGE} />
			<Reading of={figures} />
			<RevenuePanel figures={figures.data} series={series} grouping={grouping} />
			{figures.data && <CreditPanel figures={figures.data} />}
			<UsageTable
				title={grouping.by}
				lead={grouping.label}
				amount={t("Revenue")}
				groups={named(series.data)?.groups}
				link={(id) => (grouping.value === "account" ? `/operator/accounts/${id}` : null)}
			/>
			{grouping.value !== "account" && (
				<>
					<Reading of={top} />
					<UsageTable
						title={t("Top accounts")}
						lead={t("Account")}
						amount={t("Revenue")}
						groups={top.data?.groups.filter(({ id }) => id !== "other").slice(0, TOP_ACCOUNTS)}
						link={(id) => `/operator/accounts/${id}`}
					/>
				</>
			)}
			<ServicePanels filter={service} series={series.data} />
			{figures.data && <ErrorTable figures={figures.data} />}
		</Page>
	);
}

function RevenuePanel(props: {
	figures: Figures | undefined;
	series: Resource<UsageSeries>;
	grouping: (typeof GROUPS)[number];
}) {
	const { figures, series, grouping } = props;
	const [query, change] = useQueryState();
	const measured = MEASURES.find(({ value }) => value === query.get("show")) ?? MEASURES[0];
	return (
		<Panel
			title={measured.label}
			aside={
				<>
					<SegmentedControl
						size="xs"
						aria-label={t("Metric")}
						data={[...MEASURES]}
						value={measured.value}
						onChange={(value) => change({ show: value === "cost" ? null : value })}
					/>
					<SegmentedControl
						size="xs"
						aria-label={t("Grouped by")}
						data={GROUPS.map(({ value, label }) => ({ value, label }))}
						value={grouping.value}
						onChange={(value) => change({ group: value === "model" ? null : value })}
					/>
				</>
			}
		>
			{figures && <Totals figures={figures} />}
			<Reading of={series} />
			{series.data?.points.length === 0 ? (
				<Empty title={t("No usage in this time range.")}>{t("Choose a longer time range or remove a filter.")}</Empty>
			) : (
				(series.data || !series.error) && (
					<UsageChart
						series={named(series.data)}
						measure={measured.value}
						label={t("{measure} over time by {group}; the table below has the figures", {
							measure: measured.label,
							group: grouping.label,
						})}
					/>
				)
			)}
		</Panel>
	);
}

const shareOf = (part: number, whole: number): string => (whole === 0 ? "–" : formatPercent(part / whole));

/** Change from the period before; a dash if there was nothing. */
const changeOf = (now: number, before: number): string =>
	before === 0 ? "–" : `${now >= before ? "+" : "−"}${formatPercent(Math.abs(now - before) / before)}`;

/** The series with words for its groups that are codes. */
const named = (series: UsageSeries | undefined) =>
	series && { ...series, groups: series.groups.map((group) => ({ ...group, label: codeText(group.label) })) };

function Totals({ figures: { total, before } }: { figures: Figures }) {
	const shown = (name: "requests" | "promptTokens" | "completionTokens" | "costNanoUsd") =>
		t("{change} to the period before", { change: changeOf(total?.[name] ?? 0, before?.[name] ?? 0) });
	return (
		<div className="stats">
			<Stat label={t("Revenue")} value={<Amount nanoUsd={total?.costNanoUsd ?? ZERO_USD} />}>
				{shown("costNanoUsd")}
			</Stat>
			<Stat label={t("Requests")} value={formatCount(total?.requests ?? 0)}>
				{shown("requests")}
			</Stat>
			<Stat label={t("Prompt tokens")} value={<Tokens value={total?.promptTokens ?? 0} />}>
				{shown("promptTokens")}
				{", "}
				{t("{share} from the cache", { share: shareOf(total?.cachedTokens ?? 0, total?.promptTokens ?? 0) })}
			</Stat>
			<Stat label={t("Completion tokens")} value={<Tokens value={total?.completionTokens ?? 0} />}>
				{shown("completionTokens")}
			</Stat>
		</div>
	);
}

function CreditPanel({ figures }: { figures: Figures }) {
	return (
		<Panel title={t("Credit and accounts")}>
			<div className="stats">
				<Stat label={t("Prepaid credit")} value={<Amount nanoUsd={figures.prepaidNanoUsd} />}>
					{t("not spent yet, of all accounts")}
				</Stat>
				<Stat label={t("Reserved")} value={<Amount nanoUsd={figures.reservedNanoUsd} />}>
					{t("by running requests")}
				</Stat>
				{(figures.entries.length === 0 ? NO_ENTRIES : figures.entries).map(({ kind, amountNanoUsd }) => (
					<Stat
						key={kind}
						label={LEDGER_KINDS[kind as LedgerEntry["kind"]] ?? kind}
						value={<Amount nanoUsd={amountNanoUsd} />}
					>
						{t("in this time range")}
					</Stat>
				))}
				<Stat label={t("Active accounts")} value={formatCount(figures.active28)}>
					{t("in 28 days; {week} in 7 days, {day} in one", {
						week: formatCount(figures.active7),
						day: formatCount(figures.active1),
					})}
				</Stat>
				<Stat label={t("New accounts")} value={formatCount(figures.new)}>
					{t("in this time range")}
				</Stat>
				<Stat label={t("Low credit")} value={formatCount(figures.low)}>
					{t("active accounts below $10")}
				</Stat>
				<Stat label={t("Unused accounts")} value={formatCount(figures.unused)}>
					{t("used before, but not for 30 days")}
				</Stat>
			</div>
		</Panel>
	);
}

const NO_ENTRIES = [{ kind: "top_up", amountNanoUsd: ZERO_USD }];

function ErrorTable({ figures: { errors, total } }: { figures: Figures }) {
	const refused = errors.reduce((sum, row) => sum + (row.refused ? row.requests : 0), 0);
	return (
		<TablePanel
			title={t("Errors")}
			rows={errors}
			rowKey={(row) => row.code}
			empty={<Empty title={t("No errors in this time range.")} />}
			columns={[
				{ label: t("Result"), lead: true, render: (row) => codeText(row.code) },
				{ label: t("Charged"), render: (row) => (row.refused ? t("refused, free") : t("what was delivered")) },
				{ label: t("Requests"), figure: (row) => formatCount(row.requests) },
				{ label: t("Share"), figure: (row) => shareOf(row.requests, (total?.requests ?? 0) + refused) },
			]}
		/>
	);
}
