import { Group, SimpleGrid } from "@mantine/core";
import { useEffect, useState } from "react";
import { api, type LedgerEntry, type OverviewLive, type StatementMonth, type TopUpView } from "../api.ts";
import { stateText } from "../labels.ts";
import { ledgerColumns, topUpColumns } from "../parts/account-tables.tsx";
import { ActButton, LinkButton } from "../parts/form.tsx";
import { Empty, ErrorMessage, LoadState, Notice, Page, State } from "../parts/page.tsx";
import { fromItems, fromList, TablePanel } from "../parts/table.tsx";
import { type List, useAction, useList, useLive, useResource } from "../resource.ts";
import { Link, linkRenderer, useQueryState } from "../router.tsx";
import { useAccount, useMay, useSession } from "../session.tsx";
import { formatCount, locale, plural, rich, showUsd, t } from "../texts.tsx";
import { AutomaticPanel, automaticPollMs } from "./credit-automatic.tsx";
import { AlertPanel, BalancePanel, TopUpPanel } from "./credit-top-up.tsx";

export default function CreditPage() {
	const account = useAccount();
	const may = useMay();
	const credit = useResource(`credit ${account.id}`, () => api.credit(account.id));
	const topUps = useList(`top-ups ${account.id}`, (after) => api.topUps(account.id, after));
	const ledger = useList(`ledger ${account.id}`, (after) => api.ledger(account.id, after));
	const { cardPayments } = useSession().config;
	const automatic = useResource(
		cardPayments ? `auto-top-up ${account.id}` : null,
		() => api.autoTopUp(account.id),
		automaticPollMs,
	);
	function reloadAll() {
		for (const { reload } of [credit, topUps, ledger, automatic]) void reload();
	}

	// The live feed reports credit and decided top-ups. A declined automatic top-up changes no credit: the page polls.
	const [news, setNews] = useState<OverviewLive>();
	useLive<OverviewLive>("overview", api.liveAddress("overview", account.id), (latest) => {
		setNews(latest);
		void credit.reload();
	});
	const [attempt] = automatic.data?.attempts ?? [];
	const change =
		news &&
		[news.balance.balanceNanoUsd + news.balance.spentNanoUsd, news.pendingTopUps, attempt?.id, attempt?.state].join();
	// biome-ignore lint/correctness/useExhaustiveDependencies: only a change reloads
	useEffect(() => {
		// Reloads on the first event too: a top-up may be decided after the lists are loaded and before the feed opens.
		if (change !== undefined) reloadAll();
	}, [change]);

	return (
		<Page title={t("Credit")}>
			<PaymentReturn topUps={topUps.items} wantsKey={news?.checklist.keyMade === false && may("keys.change")} />
			<LoadState of={credit} />
			{(credit.data || !credit.error) && <BalancePanel credit={credit.data} />}
			{may("credit.buy") && (
				<SimpleGrid minColWidth="min(100%, 320px)" autoFlow="auto-fit">
					<TopUpPanel transferDetails={credit.data?.transferDetails} onMade={reloadAll} />
					{(credit.data || !credit.error) && (
						<AlertPanel alert={credit.data?.alert} onChanged={() => void credit.reload()} />
					)}
				</SimpleGrid>
			)}
			{cardPayments && <AutomaticPanel view={automatic} />}
			<TopUpList list={topUps} onChanged={reloadAll} />
			<StatementsPanel accountId={account.id} />
			<TablePanel
				title={t("Ledger")}
				columns={LEDGER_COLUMNS}
				{...fromList(ledger)}
				empty={<Empty title={t("No entries yet.")}>{t("Top-ups, refunds and daily usage appear here.")}</Empty>}
			/>
		</Page>
	);
}

const LEDGER_COLUMNS = ledgerColumns<LedgerEntry>((entry) =>
	entry.kind === "usage" ? (
		<Link to={`/requests?from=${entry.atMs}&to=${entry.atMs + 86_400_000}`}>
			{plural(
				entry.requests ?? 0,
				{ one: "{count} request", other: "{count} requests" },
				{ count: formatCount(entry.requests ?? 0) },
			)}
		</Link>
	) : (
		entry.note
	),
);

const TOP_UP_COLUMNS = topUpColumns<TopUpView>((topUp) => (
	<>
		<State value={topUp.state} label={topUp.state === "pending" ? t("Pending verification") : stateText(topUp.state)} />
		{topUp.whyRejected && <div className="small dim">{topUp.whyRejected}</div>}
	</>
));

function TopUpList({ list, onChanged }: { list: List<TopUpView>; onChanged: () => void }) {
	const account = useAccount();
	const may = useMay();
	const cancel = useAction((id: string) => api.cancelTopUp(account.id, id), onChanged);
	const actsOn = ({ id, state }: TopUpView) => {
		if (state === "rejected") return null;
		if (state === "pending")
			return may("credit.buy") && <LinkButton onClick={() => void cancel.run(id)}>{t("Cancel")}</LinkButton>;
		return (
			<a href={api.receiptAddress(account.id, id)} target="_blank" rel="noreferrer">
				{t("Receipt")}
			</a>
		);
	};
	return (
		<TablePanel
			title={t("Top-ups")}
			{...fromList(list)}
			empty={<Empty title={t("No top-ups yet.")}>{t("Top-ups and their status appear here.")}</Empty>}
			columns={TOP_UP_COLUMNS}
			act={actsOn}
		>
			{cancel.error && <ErrorMessage error={cancel.error} />}
		</TablePanel>
	);
}

const STATES: Readonly<Record<StatementMonth["state"], { label: string; tone: "ok" | "warn" | "off" }>> = {
	closed: { label: t("Closed"), tone: "ok" },
	over: { label: t("Closing"), tone: "warn" },
	running: { label: t("Running"), tone: "off" },
};
const MONTH = new Intl.DateTimeFormat(locale, { year: "numeric", month: "long", timeZone: "UTC" });

function StatementsPanel({ accountId }: { accountId: string }) {
	const months = useResource(`statements ${accountId}`, () => api.statements(accountId));
	const file = (month: string, kind: "pdf" | "csv") => (
		<a
			href={api.statementAddress(accountId, month, `.${kind}`)}
			download
			aria-label={t("{month} as {kind}", { month, kind: kind.toUpperCase() })}
		>
			{kind.toUpperCase()}
		</a>
	);
	return (
		<TablePanel
			title={t("Statements")}
			{...fromItems(months)}
			rowKey={({ month }) => month}
			empty={<Empty title={t("No statements yet.")} />}
			columns={[
				{ label: t("Month"), lead: true, render: ({ month }) => MONTH.format(Date.parse(`${month}-01T00:00:00Z`)) },
				{ label: t("State"), corner: true, render: ({ state }) => <State value={state} {...STATES[state]} /> },
			]}
			act={({ month }) => (
				<>
					<a href={api.statementAddress(accountId, month, "")} target="_blank" rel="noreferrer">
						{t("View")}
					</a>{" "}
					· {file(month, "pdf")} · {file(month, "csv")}
				</>
			)}
			actLabel={t("Files")}
		>
			<p className="small dim panel-note">
				{rich(
					"Months are in UTC and close within hours of their end. Closed statements never change. Edit your company, address and VAT ID in the <link>settings</link>.",
					{ link: linkRenderer("/settings") },
				)}
			</p>
		</TablePanel>
	);
}

/**
 * Shows the payment's result after the return from the payment page. `wantsKey`: the account has no key yet, so the
 * next step is to create one.
 */
function PaymentReturn({ topUps, wantsKey }: { topUps: readonly TopUpView[] | undefined; wantsKey: boolean }) {
	const [query, change] = useQueryState();
	const payment = query.get("payment");
	const topUp = topUps?.find(({ id }) => id === query.get("topup"));
	if (payment === null || topUp === undefined) return null;
	return (
		<Notice kind={topUp.state === "confirmed" || (topUp.state === "pending" && payment === "done") ? "ok" : "warn"}>
			<Group justify="space-between" gap="xs">
				<span>{returnText(topUp, payment === "done")}</span>
				<Group gap="xs">
					{wantsKey && topUp.state === "confirmed" && (
						<ActButton label={t("Create a key")} look="main" to="/keys?create=1" />
					)}
					<ActButton label={t("Close")} onClick={() => change({ payment: null, topup: null })} />
				</Group>
			</Group>
		</Notice>
	);
}

function returnText({ state, amountNanoUsd }: TopUpView, paid: boolean): string {
	if (state === "confirmed")
		return t("Payment confirmed: {amount} was added to your credit.", { amount: showUsd(amountNanoUsd) });
	if (state === "rejected") return t("The payment was not completed. No credit was added.");
	if (state !== "pending") return t("The payment is {state}.", { state: stateText(state).toLowerCase() });
	return paid
		? t("Payment received. Credit is added when it is confirmed, usually within a minute.")
		: t("The payment was not completed. Nothing was charged.");
}
