import { useMemo, useState } from "react";
import { api, type UsageSeries } from "../api.ts";
import { UsageFilters } from "../parts/filters.tsx";
import { ActButton, DownloadButton } from "../parts/form.tsx";
import { Empty, LoadState, Page, Stat } from "../parts/page.tsx";
import { Amount } from "../parts/text.tsx";
import { type Grouping, Tokens, UsagePanel, UsageTable, useGrouping } from "../parts/usage-panel.tsx";
import { readUsageFilter } from "../range.ts";
import { useResource } from "../resource.ts";
import { useQueryState } from "../router.tsx";
import { useAccount } from "../session.tsx";
import { formatCompact, formatCount, t } from "../texts.tsx";

const GROUPS = [
	{ value: "model", label: t("Model"), by: t("By model") },
	{ value: "key", label: t("Key"), by: t("By key") },
	{ value: "project", label: t("Project"), by: t("By project") },
	{ value: "status", label: t("Status"), by: t("By status") },
] as const satisfies readonly Grouping[];

export default function UsagePage() {
	const account = useAccount();
	const [query] = useQueryState();
	const grouping = useGrouping(GROUPS);
	const group = grouping.value;
	// Fixed while the page is open: a new value on each render would load the data again endlessly.
	const [nowMs] = useState(() => Date.now());
	const filter = useMemo(() => ({ ...readUsageFilter(query, nowMs), group }), [query, nowMs, group]);
	const usage = useResource(`usage ${account.id} ${JSON.stringify(filter)}`, () => api.usage(account.id, filter));
	const data = usage.data;

	return (
		<Page title={t("Usage")} aside={<DownloadButton href={api.usageCsvAddress(account.id, filter)} />}>
			<UsageFilters />
			<LoadState of={usage} />
			{(data || !usage.error) && (
				<>
					<UsagePanel
						money={t("Cost")}
						groupings={GROUPS}
						series={data}
						empty={
							<Empty
								title={t("No usage in this time range.")}
								action={<ActButton label={t("Try a model")} to="/playground" />}
							>
								{t("Choose a longer time range, remove a filter, or send a request.")}
							</Empty>
						}
					>
						{data && <Totals series={data} />}
					</UsagePanel>
					<UsageTable
						title={grouping.by}
						lead={grouping.label}
						amount={t("Cost")}
						groups={data?.groups}
						link={(id) => requestsLink(query, group, id || "none")}
					/>
				</>
			)}
		</Page>
	);
}

function Totals({ series: { total } }: { series: UsageSeries }) {
	return (
		<div className="stats">
			<Stat label={t("Cost")} value={<Amount nanoUsd={total.costNanoUsd} />} />
			<Stat label={t("Requests")} value={formatCount(total.requests)} />
			<Stat label={t("Prompt tokens")} value={<Tokens value={total.promptTokens} />}>
				{total.cachedTokens > 0 && t("{tokens} cached", { tokens: formatCompact(total.cachedTokens) })}
			</Stat>
			<Stat label={t("Completion tokens")} value={<Tokens value={total.completionTokens} />} />
		</div>
	);
}

function requestsLink(query: URLSearchParams, group: string, id: string): string {
	const next = new URLSearchParams();
	for (const name of ["range", "from", "to", "model", "key", "project", "status"]) {
		const value = query.get(name);
		if (value !== null) next.set(name, value);
	}
	next.set(group, id);
	return `/requests?${next}`;
}
