import { LinkButton } from "../parts/form.tsx";
import { Empty } from "../parts/problem.tsx";
import { TablePanel } from "../parts/table.tsx";
import { Ago, Id } from "../parts/text.tsx";
import { showStripeAmount } from "../shown-money.ts";
import { t } from "../texts.tsx";
import { operatorApi, type PaymentFinding } from "./api.ts";
import { ACCOUNT_COLUMN, useDecision } from "./decision.tsx";

const KINDS: Readonly<Record<PaymentFinding["kind"], string>> = {
	uncredited: t("Paid, not credited"),
	unpaid: t("Credited, not paid"),
	refund: t("Refunds differ"),
	dispute: t("Disputes differ"),
	unfinished: t("Not compared"),
	undecided: t("Not decided"),
};

/** Payments where Stripe and the ledger disagree; each is listed until an operator closes it. */
export function FindingPanel({ rows, onClosed }: { rows: readonly PaymentFinding[]; onClosed: () => void }) {
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
			rowKey={(finding) => finding.id}
			empty={<Empty title={t("All payments match.")} />}
			columns={[
				{ label: t("Payment"), lead: true, render: (finding) => <Id value={finding.id.replace(/^\w+:/, "")} /> },
				{ label: t("Problem"), render: (finding) => KINDS[finding.kind] },
				{ label: t("Details"), render: (finding) => finding.reason },
				ACCOUNT_COLUMN,
				{ label: t("Since"), render: (finding) => <Ago atMs={finding.foundAtMs} /> },
				{
					label: t("Amount"),
					figure: ({ amountCents, currency }) => amountCents !== null && showStripeAmount(amountCents, currency),
				},
				{
					label: t("Action"),
					act: true,
					render: (finding) => <LinkButton onClick={() => choose(finding)}>{t("Close")}</LinkButton>,
				},
			]}
		>
			{dialog}
		</TablePanel>
	);
}
