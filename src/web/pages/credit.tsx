import { Button, Group, SimpleGrid } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { api } from "../api.ts";
import { formatCount } from "../format.ts";
import { stateText } from "../labels.ts";
import { ledgerColumns, topUpColumns } from "../parts/account-tables.tsx";
import { LinkButton } from "../parts/form.tsx";
import { Page, Panel, State } from "../parts/page.tsx";
import { Empty, Notice, Problem, Reading } from "../parts/problem.tsx";
import { DataTable, fromList } from "../parts/table.tsx";
import { useAction, useList, useLive, useResource } from "../resource.ts";
import { Link, useQueryState } from "../router.tsx";
import { useAccount, useMay, useSession } from "../session.tsx";
import { showUsd } from "../shown-money.ts";
import { plural, t } from "../texts.tsx";
import type { LedgerEntry, OverviewLive, TopUpView } from "../views.ts";
import { AlertPanel } from "./credit-alert.tsx";
import { AutomaticPanel } from "./credit-automatic.tsx";
import { BalancePanel } from "./credit-balance.tsx";
import { StatementsPanel } from "./credit-statements.tsx";
import { TopUpPanel } from "./credit-top-up.tsx";

export default function CreditPage() {
	const account = useAccount();
	const may = useMay();
	const key = `credit ${account.id}`;
	const credit = useResource(key, () => api.credit(account.id));
	const topUps = useList(`top-ups ${account.id}`, (after) => api.topUps(account.id, after));
	const ledger = useList(`ledger ${account.id}`, (after) => api.ledger(account.id, after));
	const { cardPayments } = useSession().config;
	const automatic = useResource(cardPayments ? `auto-top-up ${account.id}` : null, () => api.autoTopUp(account.id));
	const [seen, setSeen] = useState<{ balance: number; pending: number; keyMade: boolean }>();

	// The live feed reports new credit and decided top-ups; the lists are then loaded again.
	useLive<OverviewLive>("overview", api.liveAddress("overview", account.id), (news) => {
		const now = {
			balance: news.balance.balanceNanoUsd + news.balance.spentNanoUsd,
			pending: news.pendingTopUps,
			keyMade: news.checklist.keyMade,
		};
		// The first message also reloads: a decision may fall between loading the lists and opening the feed.
		if (seen?.balance !== now.balance || seen.pending !== now.pending || seen.keyMade !== now.keyMade) {
			setSeen(now);
			void topUps.reload();
			void ledger.reload();
			void automatic.reload();
		}
		void credit.reload();
	});
	// A declined attempt moves no credit, so the live feed does not report its top-up.
	const [newest] = automatic.data?.attempts ?? [];
	const attempt = newest && `${newest.id} ${newest.state}`;
	const shownAttempt = useRef<string>(undefined);
	const { reload: reloadTopUps } = topUps;
	useEffect(() => {
		if (shownAttempt.current !== undefined && shownAttempt.current !== attempt) void reloadTopUps();
		shownAttempt.current = attempt;
	}, [attempt, reloadTopUps]);
	const reloadAll = () => {
		void credit.reload();
		void topUps.reload();
		void ledger.reload();
	};

	return (
		<Page title={t("Credit")}>
			<PaymentReturn topUps={topUps.items} wantsKey={seen?.keyMade === false && may("keys.change")} />
			<Reading of={credit} />
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
			<Panel title={t("Ledger")} flush>
				<DataTable
					label={t("Ledger")}
					columns={LEDGER_COLUMNS}
					{...fromList(ledger)}
					rowKey={(entry) => entry.id}
					empty={
						<Empty title={t("No movements yet.")}>
							{t("Each top-up, refund and day of usage will be a line here.")}
						</Empty>
					}
				/>
			</Panel>
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

function TopUpList(props: { list: ReturnType<typeof useList<TopUpView>>; onChanged: () => void }) {
	const account = useAccount();
	const may = useMay();
	const { list } = props;
	const cancel = useAction(async (id: string) => {
		await api.cancelTopUp(account.id, id);
		props.onChanged();
	});
	return (
		<Panel title={t("Top-ups")} flush>
			{cancel.error && <Problem error={cancel.error} />}
			<DataTable
				label={t("Top-ups")}
				{...fromList(list)}
				rowKey={(topUp) => topUp.id}
				empty={<Empty title={t("No top-ups yet.")}>{t("A top-up and its verification can be followed here.")}</Empty>}
				columns={[
					...TOP_UP_COLUMNS,
					{
						label: t("Action"),
						act: true,
						right: true,
						render: (topUp) => {
							if (topUp.state === "pending") {
								return !may("credit.buy") ? null : (
									<LinkButton onClick={() => void cancel.run(topUp.id)}>{t("Cancel")}</LinkButton>
								);
							}
							if (topUp.state === "rejected") return <span className="dim">–</span>;
							return (
								<a href={api.receiptAddress(account.id, topUp.id)} target="_blank" rel="noreferrer">
									{t("Receipt")}
								</a>
							);
						},
					},
				]}
			/>
		</Panel>
	);
}

/** Result of a payment, shown after the return from the payment page. The top-up's state decides, not the address. */
/** `wantsKey`: the account has no key yet; creating one is the step after the first payment. */
function PaymentReturn({ topUps, wantsKey }: { topUps: readonly TopUpView[] | undefined; wantsKey: boolean }) {
	const [query, change] = useQueryState();
	const payment = query.get("payment");
	const topUp = topUps?.find(({ id }) => id === query.get("topup"));
	if (payment === null || topUp === undefined) return null;
	const dismiss = () => change({ payment: null, topup: null });
	return (
		<Notice kind={topUp.state === "confirmed" || (topUp.state === "pending" && payment === "done") ? "ok" : "warn"}>
			<Group justify="space-between" gap="xs">
				<span>{returnText(topUp, payment === "done")}</span>
				<Group gap="xs">
					{wantsKey && topUp.state === "confirmed" && (
						<Button component={Link} to="/keys?create=1" size="xs">
							{t("Create a key")}
						</Button>
					)}
					<Button size="xs" variant="default" onClick={dismiss}>
						{t("Close")}
					</Button>
				</Group>
			</Group>
		</Notice>
	);
}

function returnText({ state, amountNanoUsd }: TopUpView, paid: boolean): string {
	if (state === "confirmed")
		return t("The payment is verified: {amount} is in your credit.", { amount: showUsd(amountNanoUsd) });
	if (state === "rejected") return t("The payment was not made. No credit was given.");
	if (state !== "pending") return t("The payment is {state}.", { state: stateText(state).toLowerCase() });
	return paid
		? t("The payment was made. The credit appears here as soon as it is verified, usually within a minute.")
		: t("The payment was not made. Nothing was charged.");
}
