import { useMemo, useState } from "react";
import { ZERO_USD } from "../../money/nano-usd.ts";
import type { LedgerEntry, UsageSeries } from "../api.ts";
import { LEDGER_KINDS } from "../parts/account-tables.tsx";
import { ServiceFilters } from "../parts/filters.tsx";
import { DownloadButton } from "../parts/form.tsx";
import { Empty, LoadState, Page, Panel, Stat } from "../parts/page.tsx";
import { Amount } from "../parts/text.tsx";
import { type Grouping, Tokens, UsagePanel, UsageTable, useGrouping } from "../parts/usage-panel.tsx";
import { readUsageFilter } from "../range.ts";
import { ENDING_LABELS } from "../request-words.ts";
import { useResource } from "../resource.ts";
import { useQueryState } from "../router.tsx";
import { formatCount, formatPercent, t } from "../texts.tsx";
import { operatorApi, type RevenueFigures, type RevenueFilter, type ServiceFilter } from "./api.ts";
import { OpenTasks } from "./attention.tsx";
import { ServicePanels } from "./service-panels.tsx";

const GROUPS = [
	{ value: "model", label: t("Model"), by: t("By model") },
	{ value: "account", label: t("Account"), by: t("By account") },
	{ value: "project", label: t("Project"), by: t("By project") },
	{ value: "code", label: t("Result"), by: t("By result") },
] as const satisfies readonly Grouping[];
const RANGE = "30d";
const TOP_ACCOUNTS = 20;
const accountAddress = (id: string) => `/operator/accounts/${id}`;

export function RevenuePage() {
	const [query] = useQueryState();
	// Fixed while the page is open: a new value on each render would load the data again endlessly.
	const [nowMs] = useState(() => Date.now());
	const grouping = useGrouping(GROUPS);
	const service = useMemo((): ServiceFilter => {
		const { from, to, bucket, model } = readUsageFilter(query, nowMs, RANGE);
		return { from, to, bucket, model };
	}, [query, nowMs]);
	const filter: RevenueFilter = { ...service, group: grouping.value };
	const of = JSON.stringify(service);
	const series = useResource(`revenue ${grouping.value} ${of}`, () => operatorApi.revenue(filter));
	const figures = useResource(`figures ${of}`, () => operatorApi.figures(service));
	const top = useResource(`revenue account ${of}`, () => operatorApi.revenue({ ...service, group: "account" }));
	return (
		<Page title={t("Revenue")} aside={<DownloadButton href={operatorApi.revenueCsvAddress(filter)} />}>
			<OpenTasks />
			<ServiceFilters range={RANGE} />
			<LoadState of={figures} />
			<LoadState of={series} />
			{(series.data || !series.error) && (
				<>
					<UsagePanel
						money={t("Revenue")}
						groupings={GROUPS}
						series={named(series.data)}
						empty={
							<Empty title={t("No usage in this time range.")}>
								{t("Choose a longer time range or remove a filter.")}
							</Empty>
						}
					>
						{figures.data && <Totals figures={figures.data} />}
					</UsagePanel>
					<UsageTable
						title={grouping.by}
						lead={grouping.label}
						amount={t("Revenue")}
						groups={named(series.data)?.groups}
						link={(id) => (grouping.value === "account" ? accountAddress(id) : null)}
					/>
				</>
			)}
			{figures.data && <CreditPanel figures={figures.data} />}
			{grouping.value !== "account" && <LoadState of={top} />}
			{grouping.value !== "account" && (top.data || !top.error) && (
				<UsageTable
					title={t("Top accounts")}
					lead={t("Account")}
					amount={t("Revenue")}
					groups={top.data?.groups.filter(({ id }) => id !== "other").slice(0, TOP_ACCOUNTS)}
					link={accountAddress}
				/>
			)}
			<ServicePanels filter={service} />
		</Page>
	);
}

const changeOf = (now: number, before: number): string =>
	`${now >= before ? "+" : "−"}${formatPercent(Math.abs(now - before) / before)}`;

/** Adds labels to the groups of a series whose ids are codes of endings; other codes are shown unchanged. */
const named = (series: UsageSeries | undefined) =>
	series && { ...series, groups: series.groups.map((of) => ({ ...of, label: ENDING_LABELS[of.id] ?? of.label })) };

function Totals({ figures: { total, before } }: { figures: RevenueFigures }) {
	const shown = (name: "requests" | "promptTokens" | "completionTokens" | "costNanoUsd") =>
		before === null || before[name] === 0
			? t("none in the previous period")
			: t("{change} vs. previous period", { change: changeOf(total?.[name] ?? 0, before[name]) });
	return (
		<div className="stats">
			<Stat label={t("Revenue")} value={<Amount nanoUsd={total?.costNanoUsd ?? ZERO_USD} />}>
				{shown("costNanoUsd")}
			</Stat>
			<Stat label={t("Requests")} value={formatCount(total?.requests ?? 0)} note={shown("requests")} />
			<Stat label={t("Prompt tokens")} value={<Tokens value={total?.promptTokens ?? 0} />}>
				{shown("promptTokens")}
				{", "}
				{t("{share} cached", { share: total ? formatPercent(total.cachedTokens / total.promptTokens) : "–" })}
			</Stat>
			<Stat label={t("Completion tokens")} value={<Tokens value={total?.completionTokens ?? 0} />}>
				{shown("completionTokens")}
			</Stat>
		</div>
	);
}

function CreditPanel({ figures }: { figures: RevenueFigures }) {
	return (
		<Panel title={t("Credit and accounts")}>
			<div className="stats">
				<Stat label={t("Prepaid credit")} value={<Amount nanoUsd={figures.prepaidNanoUsd} />}>
					{t("unspent credit of all accounts")}
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
					{t("in the last 28 days ({week} in 7 days, {day} in 1 day)", {
						week: formatCount(figures.active7),
						day: formatCount(figures.active1),
					})}
				</Stat>
				<Stat label={t("New accounts")} value={formatCount(figures.new)} note={t("in this time range")} />
				<Stat label={t("Low credit")} value={formatCount(figures.low)} note={t("active accounts below $10")} />
				<Stat label={t("Unused accounts")} value={formatCount(figures.unused)} note={t("no requests for 30 days")} />
			</div>
		</Panel>
	);
}

const NO_ENTRIES = [{ kind: "top_up", amountNanoUsd: ZERO_USD }];
