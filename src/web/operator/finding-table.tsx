import { Button } from "@mantine/core";
import { useState } from "react";
import { Empty } from "../parts/problem.tsx";
import { DataTable } from "../parts/table.tsx";
import { Ago, Id } from "../parts/text.tsx";
import { Link } from "../router.tsx";
import { t } from "../texts.tsx";
import { operatorApi, type PaymentFinding } from "./api.ts";
import { DecisionDialog } from "./decision.tsx";
import { showStripeAmount } from "./stripe-amount.ts";

const KINDS: Readonly<Record<PaymentFinding["kind"], string>> = {
	uncredited: t("Paid, not credited"),
	unpaid: t("Credited, not paid"),
	refund: t("Refunds differ"),
	dispute: t("Disputes differ"),
	unfinished: t("Not compared"),
	undecided: t("Not decided"),
};

/** Payments where Stripe and the ledger disagree; each is listed until an operator closes it. */
export function FindingTable({ rows, onClosed }: { rows: readonly PaymentFinding[]; onClosed: () => void }) {
	const [open, setOpen] = useState<PaymentFinding>();
	return (
		<>
			<DataTable
				label={t("Card payments that do not agree with the books")}
				rows={rows}
				rowKey={(finding) => finding.id}
				empty={<Empty title={t("All payments agree.")} />}
				columns={[
					{ label: t("Payment"), lead: true, render: (finding) => <Id value={finding.id.replace(/^\w+:/, "")} /> },
					{ label: t("What"), render: (finding) => KINDS[finding.kind] },
					{ label: t("Why"), render: (finding) => finding.reason },
					{
						label: t("Account"),
						render: ({ accountId }) =>
							accountId === null ? "–" : <Link to={`/operator/accounts/${accountId}`}>{accountId}</Link>,
					},
					{ label: t("Since"), render: (finding) => <Ago atMs={finding.foundAtMs} /> },
					{
						label: t("Amount"),
						right: true,
						render: (finding) => (
							<span className="num">
								{finding.amountCents === null ? "–" : showStripeAmount(finding.amountCents, finding.currency)}
							</span>
						),
					},
					{
						label: t("Action"),
						act: true,
						right: true,
						render: (finding) => (
							<Button size="compact-xs" variant="default" onClick={() => setOpen(finding)}>
								{t("Dealt with")}
							</Button>
						),
					},
				]}
			/>
			{open && (
				<DecisionDialog
					title={t("Dealt with by hand")}
					about={<p className="small dim">{open.reason}</p>}
					act={t("Close")}
					reason={{
						label: t("What was done"),
						description: t("A refund at Stripe, an adjustment of the account. Kept in the audit log"),
					}}
					onClose={() => setOpen(undefined)}
					run={async (reason) => {
						await operatorApi.closeFinding(open.id, reason);
						setOpen(undefined);
						onClosed();
					}}
				/>
			)}
		</>
	);
}
