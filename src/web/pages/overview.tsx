import { Box, Group, Skeleton, Stack, ThemeIcon, VisuallyHidden } from "@mantine/core";
import { type ReactNode, useState } from "react";
import type { NanoUsd } from "../../money/nano-usd.ts";
import { api, type Checklist, type Overview, type OverviewLive } from "../api.ts";
import { lazy } from "../lazy.tsx";
import { ActButton } from "../parts/form.tsx";
import { Icon } from "../parts/icons.tsx";
import { Empty, LoadState, Notice, Page, Panel, Stat } from "../parts/page.tsx";
import { RequestTable } from "../parts/request-table.tsx";
import { TablePanel } from "../parts/table.tsx";
import { Amount } from "../parts/text.tsx";
import { seriesColors } from "../parts/time-series.ts";
import { UsageChart } from "../parts/usage-chart.tsx";
import { resourceCache, useLive, useResource } from "../resource.ts";
import { Link } from "../router.tsx";
import { useAccount, useMay, useSession } from "../session.tsx";
import { formatCompact, formatCount, plural, rich, showUsd, t } from "../texts.tsx";

const ToolChoice = lazy(() => import("../snippets/tool-choice.tsx"), <Skeleton height={260} />);

export default function OverviewPage() {
	const account = useAccount();
	const key = `overview ${account.id}`;
	const overview = useResource(key, () => api.overview(account.id));
	const [wasUnfinished, setUnfinished] = useState(false);
	const live = useLive<OverviewLive>("overview", api.liveAddress("overview", account.id), (news) => {
		resourceCache.set(key, (before) => ({ ...(before as Overview), ...news }));
	});
	const data = overview.data;
	const isOperator = useSession().me?.user.operator === true;
	const finished = data !== undefined && Object.values(data.checklist).every(Boolean);
	if (data && !finished && !wasUnfinished) setUnfinished(true);

	return (
		<Page
			title={t("Overview")}
			aside={
				<span className="small dim" title={t("The figures update automatically while this page is live.")}>
					{live ? t("Live") : t("Connecting…")}
				</span>
			}
		>
			<LoadState of={overview} />
			{account.state === "suspended" && (
				<Notice kind="warn">
					{t("This account is suspended: requests with its keys fail. Contact the operator.")}
				</Notice>
			)}
			{data && !isOperator && (!finished || wasUnfinished) && (
				<FirstSteps checklist={data.checklist} pendingTopUps={data.pendingTopUps} />
			)}
			{(data || !overview.error) && <Figures data={data} />}
		</Page>
	);
}

function Figures({ data }: { data: Overview | undefined }) {
	return (
		<>
			<BalancePanel data={data} />
			<div className="side-by-side">
				<Panel title={t("Spend, last 30 days")} aside={<Link to="/usage">{t("Usage")}</Link>}>
					{data?.chart.total.requests === 0 ? (
						<Empty title={t("Nothing spent yet.")}>{t("The daily cost by model appears here.")}</Empty>
					) : (
						<UsageChart series={data?.chart} measure="cost" label={t("Spend by day and model, last 30 days")} />
					)}
				</Panel>
				<TopModels data={data} />
			</div>
			<Panel title={t("Recent requests")} aside={<Link to="/requests">{t("All requests")}</Link>} flush>
				<RequestTable
					short
					rows={data?.newest}
					empty={
						<Empty title={t("No requests yet.")} action={<ActButton label={t("Try a model")} to="/playground" />}>
							{t("Requests appear here when they finish, with tokens, duration and cost.")}
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
		<Panel title={t("Credit")} aside={may("credit.buy") && <ActButton label={t("Top up")} look="main" to="/credit" />}>
			<div className="stats">
				<Stat label={t("Available")} value={value(data?.balance.availableNanoUsd)} note={t("for new requests")} />
				<Stat label={t("Held")} value={value(data?.balance.heldNanoUsd)}>
					{may("credit.see") ? <Link to="/credit#held">{t("by running requests")}</Link> : t("by running requests")}
				</Stat>
				<Stat label={t("Spent this month")} value={value(data?.monthSpentNanoUsd)}>
					<Link to="/usage?range=month">{t("view usage")}</Link>
				</Stat>
				<Stat label={t("Spent today")} value={value(data?.todaySpentNanoUsd)} note={t("since 00:00 UTC")} />
			</div>
			{data && data.pendingTopUps > 0 && may("credit.see") && (
				<p className="small dim">
					{rich("{link}. Credit is added when the top-up is confirmed.", {
						link: (
							<Link to="/credit">
								{plural(
									data.pendingTopUps,
									{ one: "One top-up is pending verification", other: "{count} top-ups are pending verification" },
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
	const color = seriesColors(data?.chart.groups);
	return (
		<TablePanel
			title={t("Top models")}
			label={t("Top models of the last 30 days")}
			rows={data?.topModels}
			rowKey={(row) => row.model}
			empty={<Empty title={t("No model used yet.")}>{t("The models with the highest cost appear here.")}</Empty>}
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
					figure: ({ tokens }) => <span title={formatCount(tokens)}>{formatCompact(tokens)}</span>,
				},
				{ label: t("Cost"), amount: (row) => row.costNanoUsd, corner: true },
			]}
		/>
	);
}

function FirstSteps({ checklist, pendingTopUps }: { checklist: Checklist; pendingTopUps: number }) {
	const { config } = useSession();
	const may = useMay();
	const finished = Object.values(checklist).every(Boolean);
	const minimum = showUsd(config.topUpMinNanoUsd);
	const waiting = pendingTopUps > 0 && !checklist.toppedUp;
	return (
		<Panel title={finished ? t("All set") : t("First steps")}>
			<Stack component="ol" className="bare checklist">
				<Step number={1} done={checklist.signedIn} what={t("Signed in")} />
				<Step
					number={2}
					done={checklist.toppedUp}
					what={waiting ? t("Top-up pending") : t("Top-up confirmed")}
					why={
						waiting
							? t("The operator is verifying the payment. This page updates automatically.")
							: t("API access starts with the first confirmed top-up of at least {minimum}.", { minimum })
					}
					action={
						may("credit.buy") && (
							<ActButton
								label={waiting ? t("See the top-up") : t("Top up")}
								look={waiting ? "plain" : "main"}
								to="/credit"
							/>
						)
					}
				/>
				<Step
					number={3}
					done={checklist.keyMade}
					what={t("API key created")}
					why={t("Use one key per application and environment. The secret is shown once.")}
					action={
						may("keys.change") && (
							<ActButton label={t("Create a key")} look={checklist.toppedUp ? "main" : "plain"} to="/keys?create=1" />
						)
					}
				/>
				<Step
					number={4}
					done={checklist.firstRequest}
					what={t("First request sent")}
					why={t("Send a request from the playground or from your own tool.")}
					action={may("requests.send") && <ActButton label={t("Use the playground")} to="/playground" />}
				>
					{!checklist.firstRequest && checklist.keyMade && <ToolChoice />}
				</Step>
			</Stack>
		</Panel>
	);
}

function Step(props: {
	number: number;
	done: boolean;
	what: string;
	why?: string;
	action?: ReactNode;
	children?: ReactNode;
}) {
	const { number, done, what, why, action, children } = props;
	return (
		<li>
			<Group align="flex-start" gap="sm">
				<ThemeIcon size={22} radius="xl" variant={done ? "filled" : "default"} color="green.9" aria-hidden="true">
					{done ? <Icon name="check" size={14} /> : number}
				</ThemeIcon>
				<Box flex="1 1 200px">
					<strong>{what}</strong>
					<VisuallyHidden> {done ? t("(done)") : t("(to do)")}</VisuallyHidden>
					{!done && why && <p className="dim">{why}</p>}
				</Box>
				{!done && action}
			</Group>
			{!done && children && <Box mt="sm">{children}</Box>}
		</li>
	);
}
