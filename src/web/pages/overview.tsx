import { Button, Group, Skeleton } from "@mantine/core";
import { useState } from "react";
import type { NanoUsd } from "../../money/nano-usd.ts";
import { api } from "../api.ts";
import { formatCompact, formatCount } from "../format.ts";
import { Page, Panel, Stat } from "../parts/page.tsx";
import { Empty, Notice, Reading } from "../parts/problem.tsx";
import { RequestTable } from "../parts/request-table.tsx";
import { DataTable } from "../parts/table.tsx";
import { Amount } from "../parts/text.tsx";
import { UsageChart, useSeriesColors } from "../parts/usage-chart.tsx";
import { resources, useLive, useResource } from "../resource.ts";
import { Link } from "../router.tsx";
import { useAccount, useMay } from "../session.tsx";
import { plural, rich, t } from "../texts.tsx";
import type { Overview, OverviewLive } from "../views.ts";
import { FirstSteps } from "./first-steps.tsx";

export function OverviewPage() {
	const account = useAccount();
	const key = `overview ${account.id}`;
	const overview = useResource(key, () => api.overview(account.id));
	const [wasUnfinished, setUnfinished] = useState(false);
	const live = useLive<OverviewLive>("overview", api.liveAddress("overview", account.id), (news) => {
		resources.set(key, (before) => ({ ...(before as Overview), ...news }));
	});
	const data = overview.data;
	const finished = data !== undefined && Object.values(data.checklist).every(Boolean);
	if (data && !finished && !wasUnfinished) setUnfinished(true);

	return (
		<Page
			title={t("Overview")}
			aside={
				<span
					className="small dim"
					title={t("Figures on this page follow the service by themselves while it is live.")}
				>
					{live ? t("Live") : t("Connecting…")}
				</span>
			}
		>
			<Reading of={overview} />
			{account.state === "suspended" && (
				<Notice kind="warn">
					{t("This account is suspended: its keys are refused. Ask the operator of the service.")}
				</Notice>
			)}
			{data && (!finished || wasUnfinished) && (
				<FirstSteps checklist={data.checklist} pendingTopUps={data.pendingTopUps} />
			)}
			{(data || !overview.error) && <Figures data={data} />}
		</Page>
	);
}

/** Shows placeholders while `data` is undefined. */
function Figures({ data }: { data: Overview | undefined }) {
	return (
		<>
			<BalancePanel data={data} />
			<div className="side-by-side">
				<Panel title={t("Spend, last 30 days")} aside={<Link to="/usage">{t("Usage")}</Link>}>
					{data && data.chart.total.requests === 0 ? (
						<Empty title={t("Nothing spent yet.")}>{t("The cost of each day by model will be drawn here.")}</Empty>
					) : (
						<UsageChart
							series={data?.chart}
							measure="cost"
							groupedBy="model"
							label={t("Spend by day and model, last 30 days")}
						/>
					)}
				</Panel>
				<TopModels data={data} />
			</div>
			<Panel title={t("Newest requests")} aside={<Link to="/requests">{t("All requests")}</Link>} flush>
				<RequestTable
					short
					rows={data?.newest}
					empty={
						<Empty
							title={t("No requests yet.")}
							action={
								<Button component={Link} to="/playground" variant="default" size="xs">
									{t("Try a model")}
								</Button>
							}
						>
							{t("Each request appears here when it ends, with its tokens, duration and cost.")}
						</Empty>
					}
				/>
			</Panel>
		</>
	);
}

function BalancePanel({ data }: { data: Overview | undefined }) {
	const may = useMay();
	const value = (nanoUsd: NanoUsd | undefined) =>
		nanoUsd === undefined ? <Skeleton height={24} width={90} mt={4} /> : <Amount nanoUsd={nanoUsd} />;
	return (
		<Panel
			title={t("Credit")}
			aside={
				may("credit.buy") && (
					<Button component={Link} to="/credit" size="xs">
						{t("Top up")}
					</Button>
				)
			}
		>
			<div className="stats">
				<Stat label={t("Available")} value={value(data?.balance.availableNanoUsd)}>
					{t("for new requests")}
				</Stat>
				<Stat label={t("Held")} value={value(data?.balance.heldNanoUsd)}>
					{may("credit.see") ? <Link to="/credit#held">{t("by running requests")}</Link> : t("by running requests")}
				</Stat>
				<Stat label={t("Spent this month")} value={value(data?.monthSpentNanoUsd)}>
					<Link to="/usage?range=month">{t("where it went")}</Link>
				</Stat>
				<Stat label={t("Spent today")} value={value(data?.todaySpentNanoUsd)}>
					{t("since 00:00 UTC")}
				</Stat>
			</div>
			{data && data.pendingTopUps > 0 && may("credit.see") && (
				<p className="small dim">
					{rich("{link}; the credit appears here when it is confirmed.", {
						link: (
							<Link to="/credit">
								{plural(
									data.pendingTopUps,
									{ one: "One top-up waits for verification", other: "{count} top-ups wait for verification" },
									{ count: data.pendingTopUps },
								)}
							</Link>
						),
					})}
				</p>
			)}
		</Panel>
	);
}

function TopModels({ data }: { data: Overview | undefined }) {
	const color = useSeriesColors(data?.chart);
	return (
		<Panel title={t("Top models")} flush>
			<DataTable
				label={t("Top models of the last 30 days")}
				rows={data?.topModels}
				rowKey={(row) => row.model}
				empty={<Empty title={t("No model used yet.")}>{t("The models that cost most will be listed here.")}</Empty>}
				columns={[
					{
						label: t("Model"),
						lead: true,
						render: (row) => (
							<Group gap="xs" wrap="nowrap">
								<span className="swatch" style={{ background: color(row.model) }} />
								<Link to={`/usage?model=${encodeURIComponent(row.model)}`}>{row.model}</Link>
							</Group>
						),
					},
					{
						label: t("Tokens"),
						right: true,
						render: (row) => (
							<span className="num" title={formatCount(row.tokens)}>
								{formatCompact(row.tokens)}
							</span>
						),
					},
					{ label: t("Cost"), amount: (row) => row.costNanoUsd, corner: true },
				]}
			/>
		</Panel>
	);
}
