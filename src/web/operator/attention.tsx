import { formatDecimal } from "../../money/decimal.ts";
import { api } from "../api.ts";
import { LEDGER_KINDS } from "../parts/account-tables.tsx";
import { LinkButton } from "../parts/form.tsx";
import { DetailList, Empty, LoadState, Panel, Stat, State } from "../parts/page.tsx";
import { TablePanel } from "../parts/table.tsx";
import { Amount, CopyableId, RelativeTime } from "../parts/text.tsx";
import { resourceCache, useLive, useResource } from "../resource.ts";
import { Link } from "../router.tsx";
import { formatCount, rich, showUsd, t } from "../texts.tsx";
import { type OperatorSummary, operatorApi, type PaymentFinding, type PendingAdjustment } from "./api.ts";
import { ACCOUNT_COLUMN, type RowDecision, reasonField, reviewButtons, useDecision } from "./decision.tsx";
import { REPLICA_COLUMNS } from "./deployments.tsx";
import { AgreedPrices, termsText } from "./prices.tsx";
import { ReviewTable } from "./top-ups.tsx";

const KEY = "operator-summary";

/** Shows figures of the service now, and a table for each kind of open task that exists. */
export function OpenTasks() {
	const summary = useResource(KEY, operatorApi.summary);
	useLive<OperatorSummary>("operator", api.liveAddress("operator", null), (news) => {
		resourceCache.set(KEY, () => news);
	});
	const { data } = summary;
	const onDecided = () => void summary.reload();
	return (
		<>
			<LoadState of={summary} />
			{(data || !summary.error) && <Strip data={data} />}
			{data && data.waitingTopUps.length > 0 && (
				<Panel title={t("Top-ups to review")} flush aside={<Link to="/operator/top-ups">{t("All top-ups")}</Link>}>
					<ReviewTable rows={data.waitingTopUps} onDecided={onDecided} />
				</Panel>
			)}
			{data && data.waitingAdjustments.length > 0 && (
				<AdjustmentPanel rows={data.waitingAdjustments} onDecided={onDecided} />
			)}
			{data && data.paymentFindings.length > 0 && <FindingPanel rows={data.paymentFindings} onClosed={onDecided} />}
			{data && data.heldTooLong.length > 0 && (
				<TablePanel
					title={t("Stuck reservations")}
					rows={data.heldTooLong}
					rowKey={(row) => row.requestId}
					columns={[
						{ label: t("Request"), lead: true, render: (row) => <CopyableId value={row.requestId} /> },
						ACCOUNT_COLUMN,
						{ label: t("Model"), render: (row) => row.model },
						{ label: t("Instance"), render: (row) => row.instanceId },
						{ label: t("Since"), render: (row) => <RelativeTime atMs={row.admittedAtMs} /> },
						{ label: t("Held"), amount: (row) => row.reservedNanoUsd, corner: true },
					]}
				/>
			)}
			{data && data.replicasNotUp.length > 0 && (
				<TablePanel
					title={t("Unavailable replicas")}
					aside={<Link to="/operator/deployments">{t("All deployments")}</Link>}
					rows={data.replicasNotUp}
					rowKey={(row) => `${row.modelId} ${row.alias}`}
					columns={REPLICA_COLUMNS.toSpliced(1, 0, { label: t("Model"), render: (row) => row.modelId })}
				/>
			)}
		</>
	);
}

function Strip({ data }: { data: OperatorSummary | undefined }) {
	const checks = data?.reconciliation;
	return (
		<Panel>
			<div className="stats">
				<Stat label={t("Pending top-ups")} value={data ? formatCount(data.topUpsWaiting) : "–"}>
					<Link to="/operator/top-ups">{t("Review")}</Link>
				</Stat>
				<Stat label={t("Instances")} value={data ? t("{live} live", { live: formatCount(data.instances.live) }) : "–"}>
					<Link to="/operator/instances">
						{data && data.instances.gone > 0
							? t("{gone} unresponsive or dead", { gone: formatCount(data.instances.gone) })
							: t("none unresponsive or dead")}
					</Link>
				</Stat>
				<Stat
					label={t("Ledger checks")}
					value={checks ? <CheckState ok={checks.ok} /> : data ? <span className="dim">{t("not checked")}</span> : "–"}
				>
					<Link to="/operator/reconciliation">
						{checks?.greenSinceMs
							? rich("passing since {since}", { since: <RelativeTime atMs={checks.greenSinceMs} /> })
							: t("Details")}
					</Link>
				</Stat>
				<Stat label={t("Accounts")} value={data ? formatCount(data.accounts) : "–"}>
					<Link to="/operator/accounts">{t("Search")}</Link>
				</Stat>
			</div>
		</Panel>
	);
}

/** Shows whether a check of the ledger, or all checks of a run, passed. */
export const CheckState = ({ ok }: { ok: boolean }) => (
	<State value={ok ? "ok" : "failed"} label={ok ? t("Passed") : t("Failed")} />
);

function AdjustmentPanel(props: { rows: readonly PendingAdjustment[]; onDecided: () => void }) {
	const [dialog, choose] = useDecision<RowDecision<PendingAdjustment>>(
		({ row, isConfirm }) => ({
			title: isConfirm ? t("Confirm the adjustment") : t("Reject the adjustment"),
			about: (
				<DetailList
					of={{
						[t("Account")]: row.accountEmail,
						...(row.terms === null
							? {
									[t("Amount")]: <Amount nanoUsd={row.amountNanoUsd} />,
									[t("Type")]: LEDGER_KINDS[row.kind === "promotion" ? row.kind : "adjustment"],
								}
							: { [t("Prices")]: <AgreedPrices of={[{ ...row.terms, id: row.id }]} /> }),
						[t("Last day (UTC)")]: row.lastDay,
						[t("Reason")]: row.reason,
						[t("Requested by")]: row.firstBy,
					}}
				/>
			),
			act: !isConfirm
				? t("Reject")
				: row.terms === null
					? t("Confirm {amount}", { amount: showUsd(row.amountNanoUsd) })
					: t("Confirm"),
			...(isConfirm ? {} : { danger: true, field: reasonField() }),
			run: async (reason) =>
				void (await (isConfirm ? operatorApi.confirmAdjustment(row.id) : operatorApi.rejectAdjustment(row.id, reason))),
		}),
		props.onDecided,
	);
	return (
		<TablePanel
			title={t("Adjustments awaiting a second operator")}
			label={t("Adjustments")}
			rows={props.rows}
			empty={<Empty title={t("No pending adjustments.")} />}
			columns={[
				{ ...ACCOUNT_COLUMN, lead: true },
				{ label: t("Reason"), render: ({ terms, reason }) => (terms ? `${termsText(terms)}. ${reason}` : reason) },
				{ label: t("Requested by"), render: (row) => row.firstBy },
				{ label: t("Requested"), render: (row) => <RelativeTime atMs={row.firstAtMs} /> },
				{ label: t("Amount"), amount: (row) => (row.terms ? null : row.amountNanoUsd), sign: true, corner: true },
			]}
			act={reviewButtons(choose)}
		>
			{dialog}
		</TablePanel>
	);
}

const KINDS: Readonly<Record<PaymentFinding["kind"], string>> = {
	uncredited: t("Paid, not credited"),
	unpaid: t("Credited, not paid"),
	refund: t("Refunds differ"),
	dispute: t("Disputes differ"),
	unfinished: t("Not compared yet"),
	undecided: t("Awaiting decision"),
};

/** Payments for which Stripe and the books differ, until an operator closes them. */
function FindingPanel({ rows, onClosed }: { rows: readonly PaymentFinding[]; onClosed: () => void }) {
	const [dialog, choose] = useDecision<PaymentFinding>(
		({ id, reason }) => ({
			title: t("Close the payment difference"),
			about: <p className="small dim">{reason}</p>,
			act: t("Close"),
			field: {
				label: t("Resolution"),
				description: t("For example, a refund at Stripe or a credit adjustment. Saved in the audit log"),
			},
			run: async (resolution) => void (await operatorApi.closeFinding(id, resolution)),
		}),
		onClosed,
	);
	return (
		<TablePanel
			title={t("Card payments that differ from the ledger")}
			rows={rows}
			empty={<Empty title={t("All payments match.")} />}
			columns={[
				{
					label: t("Payment"),
					lead: true,
					render: (finding) => <CopyableId value={finding.id.replace(/^\w+:/, "")} />,
				},
				{ label: t("Problem"), render: (finding) => KINDS[finding.kind] },
				{ label: t("Details"), render: (finding) => finding.reason },
				ACCOUNT_COLUMN,
				{ label: t("Since"), render: (finding) => <RelativeTime atMs={finding.foundAtMs} /> },
				{
					label: t("Amount"),
					figure: ({ amountCents, currency }) => amountCents !== null && showStripeAmount(amountCents, currency),
				},
			]}
			act={(finding) => <LinkButton onClick={() => choose(finding)}>{t("Close")}</LinkButton>}
		>
			{dialog}
		</TablePanel>
	);
}

/** Currencies without decimals whose amounts Stripe nevertheless sends in hundredths. */
const STRIPE_HUNDREDTHS = ["ISK", "UGX"];

/** Formats an amount in Stripe's smallest unit of the currency: "12.50 EUR", "1250 JPY". */
export function showStripeAmount(units: number, currency: string | null): string {
	const code = (currency ?? "").toUpperCase();
	const places = placesOf(code);
	return `${places === 0 ? units : formatDecimal(units, places, places)} ${code}`.trim();
}

function placesOf(code: string): number {
	// Unknown currencies get two decimals, as most currencies have.
	if (!/^[A-Z]{3}$/.test(code) || STRIPE_HUNDREDTHS.includes(code)) return 2;
	return (
		new Intl.NumberFormat("en", { style: "currency", currency: code }).resolvedOptions().maximumFractionDigits ?? 2
	);
}
